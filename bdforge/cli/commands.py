"""The command line: thin, every command calls one function of the packages."""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bdforge import show
from bdforge.cli import estimate as estimates
from bdforge.cli import insts, isa, plot, tune, weights
from bdforge.cli.bench import TimedRuns, run_problems
from bdforge.cli.checks import Permissive, checks, tell
from bdforge.cli.ending import BAD_INPUT
from bdforge.cli.timing import PRODUCTS, Timed, share, without_timing
from bdforge.devices import DEVICES, device_named
from bdforge.emulator import emulate
from bdforge.emulator.observe import Timeline
from bdforge.emulator.scheduler import SCHEDULES
from bdforge.emulator.verify import verify_design
from bdforge.files import new_file, read_text, write_whole
from bdforge.messages import listed, word
from bdforge.mlir import Era, convert, era_of, parse, print_module
from bdforge.operators.gemm import Problem, SequenceOptions, load_spec, manifest, plan_gemm, render
from bdforge.routing.write import write_routes
from bdforge.runtime import BuiltDesign, load_kernels
from bdforge.runtime.arrays import load_arrays, save_arrays
from bdforge.runtime.xrt import difference, run_mlir
from bdforge.screen import say, screen
from bdforge.toolchain.doctor import examine
from bdforge.txn.insts import read_words

DIALECT = "Form of the text: march up to mlir-aie 1.3.4, 1.4 from then on."

app = typer.Typer(
    name="bdforge", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Explicit, checked and emulated designs for AMD's NPU.",
)  # fmt: skip

app.add_typer(insts.app)
app.add_typer(isa.app)
app.add_typer(estimates.app)
app.add_typer(weights.app)
app.add_typer(tune.app)
app.add_typer(plot.app)


Wait = Annotated[str | None, typer.Option(help="How runs wait: column or wide; the design's way without.")]
InFlight = Annotated[int | None, typer.Option(help="Steps at a time, 1 to 4 (wide: 1); 0 takes the most.")]


def _shape(text: str) -> Problem:
    try:
        m, k, n = (int(part) for part in text.replace("x", ",").split(","))
        if min(m, k, n) < 1:
            raise ValueError
    except ValueError:
        raise typer.BadParameter(f"{word(text)!r} is not M,K,N, three positive numbers") from None
    return Problem(m, k, n)


@app.command()
def run(
    design: Annotated[
        Path, typer.Argument(help="Folder of a built design, such as build/strix_halo/gemm_i8_i2_bitnet.")
    ],
    shape: Annotated[list[str] | None, typer.Option(help="M,K,N instead of the design's problems; repeatable.")] = None,
    weights: Annotated[Path | None, typer.Option(help="Ternary weights: .safetensors or .gguf.")] = None,
    tensor: Annotated[list[str] | None, typer.Option(help="Tensors of that file, fused along N; repeatable.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random data.")] = 0,
    poison: Annotated[bool, typer.Option("--poison", help="Reading memory that nobody wrote is an error.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Time the run (emulated) and tell where it goes.")] = False,
    efficiency: Annotated[
        float,
        typer.Option(
            "--kernel-efficiency", callback=share, help="Share of the ideal kernel schedule that is reached, to 1."
        ),
    ] = 1.0,
    timeline: Annotated[
        Path | None, typer.Option(help="New file for a timeline in emulated time that Perfetto opens.")
    ] = None,
    wait: Wait = None,
    in_flight: InFlight = None,
) -> None:
    """Run a GEMM design on the emulated array and compare every element with numpy."""
    problems = [_shape(text) for text in shape or []]
    wants_time = timing or timeline is not None
    if not wants_time:
        without_timing({"--kernel-efficiency": efficiency != 1})
    if tensor and weights is None:
        raise typer.BadParameter("--tensor names matrices of a file; give it with --weights")
    timed = TimedRuns(efficiency, timeline and new_file(timeline)) if wants_time else None
    built = BuiltDesign.load(design).waiting(SequenceOptions.given(wait, in_flight))
    raise typer.Exit(run_problems(built, problems, weights, tensor or [], seed, timed, poison=poison))


@app.command(name="emulate")
def emulate_command(
    design: Annotated[Path, typer.Argument(help="MLIR text with an aie.device.")],
    arg: Annotated[list[Path] | None, typer.Option(help="A .npy file for each host buffer, in order.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the arrays after the run (new files only).")] = None,
    kernels: Annotated[Path | None, typer.Option(help="Kernels: lib.so or module.py.")] = None,
    sequence: Annotated[str | None, typer.Option(help="Runtime sequence, when there are several.")] = None,
    device: Annotated[str | None, typer.Option(help="aie.device, when there are several.")] = None,
    insts: Annotated[Path | None, typer.Option(help="Instruction words to run instead of a sequence.")] = None,
    permissive: Permissive = None,
    schedule: Annotated[str, typer.Option(help=f"Order of what is possible: {', '.join(SCHEDULES)}.")] = "in-order",
    seed: Annotated[int, typer.Option(help="Seed of the random schedule.")] = 0,
    trace: Annotated[
        Path | None, typer.Option(help="New file for a timeline of order, not time, that Perfetto opens.")
    ] = None,
    poison: Annotated[bool, typer.Option("--poison", help="Reading memory that nobody wrote is an error.")] = False,
    objects: Annotated[
        list[Path] | None, typer.Option("--object", help="Compiled kernels whose .stack_sizes are checked; repeatable.")
    ] = None,
    timing: Annotated[bool, typer.Option("--timing", help="Time the run (emulated) and tell where it goes.")] = False,
    product: Annotated[
        str | None, typer.Option(help=f"Whose clock and DRAM, by default those of the array: {PRODUCTS}.")
    ] = None,
    kernel_cycles: Annotated[
        list[str] | None, typer.Option(help="NAME=CYCLES of one call of a linked kernel; repeatable.")
    ] = None,
    macs: Annotated[int | None, typer.Option(help="MACs of the whole run, for TOPS.", min=1)] = None,
    timeline: Annotated[
        Path | None, typer.Option(help="New file for a timeline in emulated time that Perfetto opens.")
    ] = None,
    xclbin: Annotated[
        Path | None, typer.Option(help="The same design, built: run it on the NPU too and compare all host buffers.")
    ] = None,
) -> None:
    """Run any explicit design on the emulated array."""
    order = None if trace is None else Timeline()
    wants_time = timing or timeline is not None
    if not wants_time:
        without_timing({"--product": product, "--kernel-cycles": kernel_cycles, "--macs": macs})
    timed = Timed.of(product, kernel_cycles or [], macs, timeline) if wants_time else None
    files = arg or []
    text, arrays = read_text(design), load_arrays(files)
    given = [array.copy() for array in arrays]
    words = None if insts is None else _words(insts)
    for path in (trace, timeline):
        if path is not None:
            new_file(path)
    try:
        result = emulate(
            text, arrays, load_kernels(kernels) if kernels else None, sequence,
            instructions=words, file=str(design), schedule=schedule, seed=seed, permissive=permissive or [],
            observers=[] if order is None else [order], device=device, poison=poison,
            timing=None if timed is None else timed.options, objects=objects or [],
        )  # fmt: skip
    finally:  # what led to a fault is worth most
        if trace is not None and order is not None and order.tracks:
            order.write(trace)
            say(f"wrote {trace}", err=True)
    tell(result.warnings)
    if out is not None:
        for path in save_arrays(out, files, arrays):
            say(f"wrote {path}")
    if timed is not None and result.timing is not None:
        timed.show(result.timing, design.name)
    say(f"{design}: ended (emulated), {len(arrays)} host buffers, {len(result.buffers)} named tile buffers")
    if xclbin is not None:
        stream = None if words is None else np.frombuffer(words, "<u4")
        run_mlir(xclbin, text, str(design), given, sequence=sequence, words=stream)
        _compared(xclbin, difference(arrays, given))


def _compared(xclbin: Path, wrong: str) -> None:
    """Say how the NPU's host buffers compare with the emulated ones; the exit code is 1 when they differ."""
    say(f"{xclbin}: {wrong or 'ended on the NPU, every element as emulated'}", err=bool(wrong))
    raise typer.Exit(1 if wrong else 0)


def _words(path: Path) -> bytes:
    return read_words(path)


@app.command(name="verify")
def verify_command(
    design: Annotated[Path, typer.Argument(help="MLIR text with an aie.device.")], permissive: Permissive = None
) -> None:
    """Check a design without running it: dialect, memory, BDs, runtime sequences, routes."""
    found = verify_design(read_text(design), str(design), permissive or [])
    tell(found.warnings)
    if found.faults:
        say(listed((f"bdforge: {fault}" for fault in found.faults), "\n"), err=True)
        raise typer.Exit(BAD_INPUT)
    say(f"{design}: {found.summary}")


@app.command(name="render")
def render_command(
    design: Annotated[Path, typer.Argument(help="Design spec, such as designs/gemm_i8_i2_bitnet.toml.")],
    device: Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")] = "strix_halo",
    shape: Annotated[list[str] | None, typer.Option(help="M,K,N instead of the design's problems; repeatable.")] = None,
    with_manifest: Annotated[bool, typer.Option("--manifest", help="Print the manifest instead of the MLIR.")] = False,
    wait: Wait = None,
    in_flight: InFlight = None,
    dialect: Annotated[Era, typer.Option(help=DIALECT)] = Era.MARCH,
) -> None:
    """Print a design's MLIR (or its manifest)."""
    spec = load_spec(design)
    plan = plan_gemm(spec, device_named(device))
    if options := SequenceOptions.given(wait, in_flight):
        plan = plan.waiting(options)
    problems = [_shape(text) for text in shape or []] or spec.problems
    say(json.dumps(manifest(plan, problems), indent=2) if with_manifest else render(plan, problems, dialect), nl=False)


@app.command(name="convert")
def convert_command(
    design: Annotated[Path, typer.Argument(help="MLIR text of either form.")],
    dialect: Annotated[Era, typer.Option(help=DIALECT)],
) -> None:
    """Print a design's MLIR in the form of the dialect that another mlir-aie reads; comments stay."""
    say(convert(read_text(design), dialect, str(design)), nl=False)


@app.command(name="show")
def show_command(
    design: Annotated[Path, typer.Argument(help="MLIR text with an aie.device.")],
    out: Annotated[Path | None, typer.Option(help="Picture of the array: a .png or .svg file.")] = None,
    device: Annotated[str | None, typer.Option(help="aie.device to draw, when there are several.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the picture.")] = False,
) -> None:
    """Print a design's tiles, memory and switches, and draw its array."""
    say(show.command(design, out, device, force, screen().width), nl=False)


@app.command(name="route")
def route_command(
    design: Annotated[Path, typer.Argument(help="MLIR text with an aie.device.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="New file for the text, not the screen.")] = None,
) -> None:
    """Route a design's flows and print it in physical form: with the settings of its stream switches."""
    module = parse(read_text(design), str(design))
    write_routes(module)
    text = convert(print_module(module), era_of(module) or Era.MARCH)
    if out is None:
        say(text, nl=False)
        return
    write_whole(new_file(out), text)
    say(f"wrote {out}")


app.command(name="checks")(checks)


@app.command()
def doctor() -> None:
    """Tell what running on a real NPU needs, what of it is here, and how to get the rest."""
    findings = examine()
    for finding in findings:
        word = ("missing" if finding.needed else "check") if not finding.present else "bad" if finding.fault else "ok"
        say(f"{word:7}  {finding.name}: {finding.detail}")
        if finding.fault:
            say(f"         {finding.fault}")
        if not finding.present or finding.fault:
            say(f"         {finding.remedy}")
    missing = sum(not finding.present and finding.needed for finding in findings)
    say(f"{missing} missing; the emulated array needs none of them" if missing else "all there")
