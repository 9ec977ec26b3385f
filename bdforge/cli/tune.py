"""`bdforge tune`: the fastest design for some problems; `bdforge balance`: the published way to a balanced one."""

import re
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bdforge.cli.estimate import ManyShapes
from bdforge.cli.options import (
    DEFAULT_PRODUCT,
    BLayout,
    Force,
    Jobs,
    Kernel,
    Layouts,
    Out,
    ProductName,
    Scheduler,
    Tokens,
    Types,
    layouts,
    number,
    print_or_write,
    problem,
    workers_of,
)
from bdforge.cli.progress import doing
from bdforge.common.files import read_toml
from bdforge.common.messages import clip
from bdforge.common.screen import new_table, put, say, screen
from bdforge.common.tasks import Workers
from bdforge.devices import device_named
from bdforge.devices.types import order_named
from bdforge.operators import Spec, SpecError, load_spec, operator_of
from bdforge.operators.gemm import GemmSpec
from bdforge.operators.registry import own_kinds
from bdforge.operators.specs import STACK_BYTES
from bdforge.perf import PerfError
from bdforge.perf.tune.balanced_tiles import FIXED, Balance, RankedTile, balance
from bdforge.perf.tune.candidate_search import KEPT, Search
from bdforge.perf.tune.choice_reasons import LIFTS, verdicts
from bdforge.perf.tune.free_numbers import tune_numbers
from bdforge.perf.tune.shapes import Weighted
from bdforge.perf.tune.shapes import shapes as many_shapes
from bdforge.perf.tune.space import FIXABLE, search_space
from bdforge.perf.tune.time_model import basis_named, check_basis
from bdforge.perf.tune.tuned_design import choice_line, design_name, design_toml, numbers_toml
from bdforge.perf.tune.tuner import FINALISTS, FINALISTS_MOST, Tuned, tune

_POSITIVE = re.compile("[1-9][0-9]{0,8}")
app = typer.Typer()
Stack = Annotated[int, number("Bytes of a core that are kept for its stack.", least=0, most=1 << 15)]
_TYPES, _MODEL = "int8,int2,int32", "bitnet-2b"


@app.command(name="tune")
def tune_command(
    design: Annotated[
        Path | None, typer.Argument(help="Design whose free numbers are chosen for its problems; of any operator.")
    ] = None,
    device: ProductName = DEFAULT_PRODUCT,
    types: Types = _TYPES,
    shapes: ManyShapes = _MODEL,
    tokens: Tokens = None,
    b_layouts: Layouts = "packed,row,column",
    a_layout: Annotated[str, typer.Option(help="Layout of A: row or column.")] = "row",
    c_layout: Annotated[str, typer.Option(help="Layout of C: row or column.")] = "row",
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Only tiles with A as high as C (rho 1), as published balanced designs.")
    ] = False,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            help=f"NAME=VALUE,...: only these values, of {', '.join(FIXABLE)} or what the design's operator declares; "
            "repeatable."
        ),
    ] = None,
    stays: Annotated[
        bool, typer.Option("--stays", help="Designs whose panels of packed B stay in the memtiles.")
    ] = False,
    kernel: Kernel = "compiled",
    stack: Stack = STACK_BYTES,
    out: Out = None,
    force: Force = False,
    finalists: Annotated[
        int, number("How many of the best to emulate; 0 leaves it to the model.", most=FINALISTS_MOST)
    ] = FINALISTS,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
) -> None:
    """Search every design that can be built for the fastest one on some problems, and write it with the reasons.

    A search that was interrupted goes on when the same command is given again.
    """
    spec = None if design is None else load_spec(design)
    workers = workers_of(jobs, scheduler, spec is None or spec.kind in own_kinds())
    if spec is not None and (types != _TYPES or shapes != _MODEL or tokens or stays):
        raise typer.BadParameter("--types, --shapes, --tokens and --stays go without a design, which says them itself")
    if design is not None and spec is not None and not isinstance(spec, GemmSpec):
        _tune_numbers(design, spec, device, fix or [], finalists, workers, (out, force))
        return
    fixed = _fixed([*(fix or []), *(["rho=1"] if symmetric else [])], FIXABLE)
    if isinstance(spec, GemmSpec):
        types, weighted = f"{spec.a},{spec.b},{spec.c},{spec.accumulator}", tuple((p, 1) for p in spec.problems)
        a_layout, c_layout, stays = spec.layouts.a, spec.layouts.c, spec.buffers.residency == "b"
    else:
        weighted = many_shapes(_MODEL if shapes is None else shapes, tokens)
    if not weighted:
        raise PerfError(f"{design}: has no problems to be fast at; add [[problems]]")
    wanted = _wanted(device, types, weighted, layouts(b_layouts), (a_layout, c_layout), kernel, fixed, stays, stack)
    wanted = replace(wanted, kept=max(KEPT, finalists))
    print_or_write(design_toml(_searched(wanted, workers, finalists)), out, force)


def _searched(wanted: Search, workers: Workers, finalists: int) -> Tuned:
    """A search with its progress and its result on the terminal."""
    with doing(workers, "tile heights searched", "finalists emulated") as (ended, emulating):
        tuned = tune(wanted, workers, finalists=finalists, ended=ended, emulating=emulating)
    _report(tuned, screen(stderr=True))
    return tuned


def _tune_numbers(
    path: Path, spec: Spec, device: str, fix: list[str], finalists: int, workers: Workers,
    written: tuple[Path | None, bool],
) -> None:  # fmt: skip
    """Choose the free numbers of a design of any operator but GEMM."""
    product, console = device_named(device), screen(stderr=True)
    fixed = _fixed(fix, tuple(operator_of(spec).free(spec, product)))
    with doing(workers, "choices", "finalists emulated") as (ended, emulating):
        tuned = tune_numbers(
            read_toml(path, SpecError), path.stem, product, fixed=fixed, finalists=finalists,
            workers=workers, ended=ended, emulating=emulating,
        )  # fmt: skip
    console.print(f"{tuned.legal:,} designs of {tuned.examined:,} choices can be built; the fastest, microseconds:")
    for choice in tuned.best[:8]:
        console.print(f"  {choice_line(choice)}", soft_wrap=True)
    print_or_write(numbers_toml(tuned, path.stem), *written)


def _fixed(entries: list[str], names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Values by field of `names` from NAME=VALUE,VALUE."""
    found: dict[str, tuple[int, ...]] = {}
    for entry in entries:
        name, _, values = entry.partition("=")
        numbers = values.split(",")
        if name not in names or name in found or not all(_POSITIVE.fullmatch(number) for number in numbers):
            raise typer.BadParameter(
                f"{clip(entry)!r} is not NAME=VALUE,..., each name once, such as rho=1 or k=64,128; names are "
                f"{', '.join(names)}",
                param_hint="--fix",
            )
        found[name] = tuple(int(number) for number in numbers)
    return found


def _wanted(
    device: str, types: str, weighted: tuple[Weighted, ...], b_layouts: tuple[str, ...], others: tuple[str, str],
    kernel: str, fixed: dict[str, tuple[int, ...]], stays: bool, stack: int,
) -> Search:  # fmt: skip
    a, c = map(order_named, others)
    if "packed" in (a, c):
        raise typer.BadParameter("A and C are row or column; only B is packed")
    deepest = max(problem.K for problem, _ in weighted)
    orders = {"b_layouts": b_layouts, "a_layout": a, "c_layout": c, "residency": "b" if stays else "none"}
    space = search_space(device_named(device), types, deepest, **orders, fixed=fixed, stack_bytes=stack)
    if deepest > space.kernel.depth_limit:
        raise PerfError(f"K = {deepest} exceeds {space.kernel.depth_limit}, beyond which sums may overflow; split K")
    basis = basis_named(kernel)
    check_basis(space.types, space.device.generation, basis)
    return Search(space, basis, weighted)


def _report(tuned: Tuned, console: Console) -> None:
    resumed = f", {tuned.resumed_parts} parts taken over" if tuned.resumed_parts else ""
    console.print(
        f"{tuned.legal:,} designs of {tuned.examined:,} that fit a core, modelled in {tuned.seconds:.1f} s{resumed}; "
        f"emulation {tuned.emulation_seconds:.1f} s"
    )
    found = verdicts(tuned.wanted, tuned.best.ranked.candidate)
    speeds = (f">TOPS, {basis} kernel" for basis in found[0].estimates)
    title = f"{design_name(tuned.best.ranked.candidate)} (modelled)"
    table = new_table(title, "=problem", ">times", *speeds, "bound", "lifted by")
    for verdict in found:
        bound = next(iter(verdict.estimates.values())).bound
        tops = [f"{estimate.tops:.2f}" for estimate in verdict.estimates.values()]
        table.add_row(str(verdict.problem), str(verdict.count), *tops, bound, LIFTS[bound])
    put(console, _ranking(tuned), table)


def _ranking(tuned: Tuned) -> Table:
    title = f"The fastest for {len(tuned.wanted.problems)} problems, in microseconds for all of them"
    table = new_table(title, "design", ">modelled", ">corrected by emulation", ">emulated / modelled")
    for finalist in tuned.finalists[:8]:
        emulated = finalist.emulated
        shown = (f"{finalist.time_us:.0f}", f"{emulated.ratio:.3f}") if emulated else (finalist.passed_over or "-", "-")
        table.add_row(design_name(finalist.ranked.candidate), f"{finalist.ranked.time_us:.0f}", *shown)
    return table


_RANKED = 5


@app.command(name="balance")
def balance_command(
    shape: Annotated[str, typer.Option(help="MxKxN of the problem.")] = "4096x4096x4096",
    types: Types = "int8,int8,int32",
    b_layout: BLayout = "column",
    device: ProductName = DEFAULT_PRODUCT,
    kernel: Kernel = "fitted",
    stack: Stack = STACK_BYTES,
) -> None:
    """Walk the published step from the ranking of one core's tiles to the balanced design (modelled)."""
    whole, basis, order = problem(shape), basis_named(kernel), order_named(b_layout)
    space = search_space(device_named(device), types, whole.K, b_layouts=(order,), fixed=FIXED, stack_bytes=stack)
    found = balance(space, basis, whole)
    _print_balance(found, f"{whole} {types} on {device}, {basis} kernel")
    best = found.steps[-1]
    fixed = " ".join(f"--fix {name}={getattr(best, name)}" for name in "mkn")
    given = f"--device {device} --types {types} --shapes {whole} --layouts {order} --stack {stack}"
    say(f"slabs and buffers for it: bdforge tune {given} --symmetric {fixed}")


def _print_balance(found: Balance, what: str) -> None:
    first, best = found.ranked[0], found.steps[-1]
    one = new_table(f"1. One core: the fastest of {len(found.ranked):,} tiles of whole blocks", *_CORE)
    for tile in found.ranked[:_RANKED]:
        one.add_row(str(tile), f"{tile.macs_per_cycle:.1f}", f"{tile.kernel_cycles:.0f}", f"{tile.stream_cycles:.0f}")
    needed = f"m = {found.balanced_m:.0f} with its n" if isfinite(found.balanced_m) else "which no m gives its n"
    moves = (
        f"2. The array: {first} computes {first.compute_us:.0f} us and moves for {first.memory_us:.0f} us: "
        f"{first.bound} binds.\n   It does {first.intensity:.0f} operations per byte; to compute all the time it would "
        f"need {found.ridge:.0f}, {needed}.\n"
    )
    walk = new_table(
        f"3. Down the depths, the most MACs of each, while the longer of both gets shorter ({what}, modelled)", *_ARRAY
    )
    for tile in found.steps:
        walk.add_row(*_row(tile))
    put(
        screen(),
        one,
        moves,
        walk,
        f"balanced: {best}, {best.time_us:.0f} us, {best.time_us / first.time_us:.2f} of the first",
    )


_CORE = ("=tile", ">MACs per cycle", ">kernel cycles", ">stream cycles")
_ARRAY = ("=tile", ">MACs per cycle", ">computing us", ">moving us", ">operations per byte", "bound")


def _row(tile: RankedTile) -> tuple[str, ...]:
    figures = (f"{tile.macs_per_cycle:.1f}", f"{tile.compute_us:.0f}", f"{tile.memory_us:.0f}", f"{tile.intensity:.0f}")
    return str(tile), *figures, tile.bound
