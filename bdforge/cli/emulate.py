"""`bdforge emulate` and `bdforge verify`: any explicit design, run or only checked."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bdforge.array.emulator import Result, emulate
from bdforge.array.emulator.dram_order import DRAM
from bdforge.array.emulator.module_choice import approximation_named
from bdforge.array.emulator.observe import PerfettoTrace
from bdforge.array.emulator.scheduler import SCHEDULES, STEP_BUDGET
from bdforge.array.emulator.verification import Verification, verify_design
from bdforge.array.images.read import is_image
from bdforge.array.mlir import parse
from bdforge.array.txn.insts import read_words
from bdforge.array.txn.lower import lower_module
from bdforge.cli.design_texts import DesignFile, SpecProduct, is_made, named_text
from bdforge.cli.ending import BAD_INPUT
from bdforge.cli.json_output import VerifiedDesign
from bdforge.cli.machine_code import Break, Elf, Profile, elfs_of, looked_at, show_cores, show_profiles
from bdforge.cli.options import (
    AsJson,
    Budget,
    Force,
    Html,
    Insts,
    Module,
    Permissive,
    Poison,
    Seed,
    SequenceName,
    Shapes,
    Timing,
    new_path,
    print_warnings,
    whole_number,
)
from bdforge.cli.page import PageOfRun, recorded, zeros
from bdforge.cli.progress import emulating, working
from bdforge.cli.timing import KernelCycles, Macs, Product, Timed, TimelineFile
from bdforge.common.array_files import load_arrays, new_arrays, save_array
from bdforge.common.files import TEXT_BYTES_MAX, decoded, read_bytes
from bdforge.common.messages import InputError, listed
from bdforge.common.screen import say, screen
from bdforge.common.watched import part
from bdforge.devices.capacities import KNOWN
from bdforge.devices.txn_format.codec import encode
from bdforge.runtime import load_kernels
from bdforge.runtime.xrt import difference, run_words

app = typer.Typer()


OutFolder = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for new files: the arrays after the run.")]
Trace = Annotated[Path | None, new_path("New file for a timeline of order, not time, that Perfetto opens.", "--trace")]
Objects = Annotated[
    list[Path] | None, typer.Option("--object", help="Compiled kernels whose .stack_sizes are checked; repeatable.")
]
Capacity = Annotated[
    Any,
    typer.Option(
        parser=lambda text: text if text == KNOWN else whole_number(text), metavar="WORDS",
        help=f"Words that streams hold for a receiver that takes none: 0, or more, or what is {KNOWN} of the array.",
    ),
]  # fmt: skip
Dram = Annotated[
    str, typer.Option(help=f"What reads find of tasks whose token was not awaited yet: {', '.join(DRAM)} bytes.")
]
Xclbin = Annotated[
    Path | None, typer.Option(help="The same design, built: run it on the NPU too and compare all host buffers.")
]


def _approximate(name: str) -> str:
    approximation_named(name)
    return name


Approximate = Annotated[
    str,
    typer.Option(
        callback=_approximate,
        help="What becomes of machine code's functions whose bits are not published: off, nearest, low or high, the "
        "last two at the bounds of their errors.",
    ),
]


@app.command(name="emulate")
def emulate_command(
    design: Annotated[Path, typer.Argument(help="A design as for `verify`, or a CDO, PDI or xclbin.")],
    arg: Annotated[list[Path] | None, typer.Option(help="A .npy file for each host buffer, in order.")] = None,
    out: OutFolder = None,
    force: Force = False,
    kernels: Annotated[Path | None, typer.Option(help="Kernels: lib.so or module.py.")] = None,
    sequence: SequenceName = None,
    shape: Shapes = None,
    module: Module = None,
    insts: Insts = None,
    permissive: Permissive = None,
    schedule: Annotated[str, typer.Option(help=f"Order of what is possible: {', '.join(SCHEDULES)}.")] = "in-order",
    dram: Dram = "fresh",
    seed: Seed = 0,
    capacity: Capacity = KNOWN,
    budget: Budget = STEP_BUDGET,
    trace: Trace = None,
    html: Html = None,
    poison: Poison = False,
    objects: Objects = None,
    elf: Elf = None,
    break_: Break = None,
    profile: Profile = False,
    timing: Timing = False,
    device: Product = None,
    kernel_cycles: KernelCycles = None,
    macs: Macs = None,
    timeline: TimelineFile = None,
    xclbin: Xclbin = None,
    approximate: Approximate = "off",
) -> None:
    """Run any explicit design on the emulated array."""
    timed, files = Timed.given(timing, timeline, device, kernel_cycles or [], macs), arg or []
    if kernels is not None:
        part()
    targets = [] if out is None else new_arrays(out, files, force=force)
    (text, name, image), arrays = _read(design, device, shape, insts is None), load_arrays(files)
    shown = PageOfRun.of(html, text, name, sequence, module, insts is not None)
    arrays = arrays or zeros(shown)
    given = [array.copy() for array in arrays]
    words = None if insts is None else read_words(insts)
    observed = _order_kept(trace), recorded(shown, permissive or [], force)
    with observed[0] as order, observed[1] as record, emulating(design.name, screen(stderr=True)):
        result = emulate(
            text, arrays, load_kernels(kernels) if kernels else None, sequence,
            instructions=words, file=name, schedule=schedule, seed=seed, permissive=permissive or [],
            observers=[*order, *record], device=module, poison=poison, capacity=capacity, budget=budget, dram=dram,
            approximate=approximate, timing=None if timed is None else timed.options, objects=objects or [],
            breakpoints=looked_at(break_ or []), elfs=elfs_of(elf or [], text, name), image=image,
        )  # fmt: skip
    print_warnings(result.warnings)
    _save(targets, arrays)
    _tell_cores(result, profile, image is not None)
    if timed is not None and result.timing is not None:
        timed.show(result.timing, design.name)
    say(f"{design}: ended (emulated), {len(arrays)} host buffers, {len(result.buffers)} named tile buffers")
    if xclbin is not None:
        run_words(xclbin, *_stream(text, name, str(design), sequence, words), given)
        _compared(xclbin, difference(arrays, given, result.approximated))


def _tell_cores(result: Result, profile: bool, is_image: bool) -> None:
    if profile:
        show_profiles(result.cores)
    elif is_image and result.cores:
        show_cores(result.cores)


def _save(targets: list[Path], arrays: list[np.ndarray]) -> None:
    for target, array in zip(targets, arrays, strict=False):
        save_array(target, array)
        say(f"wrote {target}")


def _stream(
    text: str, name: str, design: str, sequence: str | None, words: bytes | None
) -> tuple[str, str, np.ndarray]:
    """The array that a sequence is for, the design, and the words of the sequence or those given."""
    target, operations = lower_module(parse(text, name), sequence)
    return target.mlir, design, encode(operations, target) if words is None else np.frombuffer(words, "<u4")


@contextmanager
def _order_kept(path: Path | None) -> Iterator[list[PerfettoTrace]]:
    """Observers that note what happens in order, for a file that is written at the end: what led to a fault, too."""
    if path is None:
        yield []
        return
    order = PerfettoTrace()
    try:
        yield [order]
    finally:
        if order.tracks:
            order.write(path)
            say(f"wrote {path}", err=True)


def _read(design: Path, device: str | None, shape: list[str] | None, runs: bool) -> tuple[str, str, bytes | None]:
    """A text and its name, or an image without a text."""
    if is_made(design) or shape:
        return *named_text(design, device, shape, runs), None
    data = read_bytes(design, most=TEXT_BYTES_MAX)
    return ("", str(design), data) if is_image(data) else (decoded(data, design), str(design), None)


def _compared(xclbin: Path, wrong: str) -> None:
    """Say how the NPU's host buffers compare with the emulated ones; the exit code is 1 when they differ."""
    say(f"{xclbin}: {wrong or 'ended on the NPU, every element as emulated'}", err=bool(wrong))
    raise typer.Exit(1 if wrong else 0)


@app.command(name="verify")
def verify_command(
    design: DesignFile, shape: Shapes = None, device: SpecProduct = None, permissive: Permissive = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Check a design without running it: dialect, memory, BDs, runtime sequences, routes."""
    try:
        with working(design):
            found = verify_design(*named_text(design, device, shape), permissive or [])
    except InputError as fault:
        found = Verification((str(fault),), (), "")
    if as_json:
        VerifiedDesign.of(str(design), found).print()
        raise typer.Exit(BAD_INPUT if found.faults else 0)
    print_warnings(found.warnings)
    if found.faults:
        say(listed((f"bdforge: {fault}" for fault in found.faults), "\n"), err=True)
        raise typer.Exit(BAD_INPUT)
    say(f"{design}: {found.summary}")
