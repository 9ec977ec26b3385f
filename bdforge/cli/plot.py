"""`bdforge plot`: pictures of bounds, sweeps, access orders and utilisation."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bd_patterns import Pattern
from bdforge.cli.estimate import ManyShapes
from bdforge.cli.options import (
    DEFAULT_PRODUCT,
    LARGE,
    SIZE_MAX,
    BLayout,
    Force,
    Kernel,
    ProductName,
    Shape,
    SpecOption,
    new_drawing,
    number,
    problem,
    sizes,
    whole_numbers,
)
from bdforge.common.screen import say
from bdforge.devices import device_named
from bdforge.devices.types import order_named, type_named
from bdforge.operators.gemm import GemmPlan, GemmProblem, GemmSpec, load_spec, plan_gemm
from bdforge.operators.gemm.memtiles import c_out_channel
from bdforge.operators.gemm.slabs import A_CHANNELS, B_CHANNEL
from bdforge.perf import GemmCase, PerfError, measured_rows
from bdforge.perf.bounds.case import case_of
from bdforge.perf.plots.figure import PlotError, save
from bdforge.perf.plots.pattern_plot import pattern_picture
from bdforge.perf.plots.roofline import Point, intensity, modelled_point, published_points, roofline
from bdforge.perf.plots.sweep_plot import kmt_sweep, sweep
from bdforge.perf.plots.timeline_plot import timeline
from bdforge.perf.plots.utilisation import utilisation
from bdforge.perf.timed import timed
from bdforge.perf.tune.shapes import shapes
from bdforge.perf.tune.time_model import Basis, basis_named, kernel_on

plot = typer.Typer(name="plot", no_args_is_help=True, help="Pictures, as PNG or SVG (needs the extra `plot`).")
app = typer.Typer()
app.add_typer(plot)


def new_plot(*names: str) -> Any:
    """An option for a picture; PlotError for a file that is none."""
    return new_drawing(PlotError, *names)


def draw(make: Callable[[], Any], out: Path) -> None:
    save(make, out)
    say(f"wrote {out}")


_Out = Annotated[Path, new_plot("--out", "-o")]
_Design = Annotated[Path | None, typer.Option(help="Design spec, such as designs/gemm_i8_i2_bitnet.toml.")]


@plot.command(name="roofline")
def roofline_command(
    out: _Out,
    design: Annotated[
        list[Path] | None, typer.Option(help="Design spec whose problems are modelled; repeatable.")
    ] = None,
    many: ManyShapes = None,
    device: ProductName = DEFAULT_PRODUCT,
    types: Annotated[str | None, typer.Option(help="Types of A and B for the peak; a design's by default.")] = None,
    kernel: Kernel = "compiled",
    emulate: Annotated[bool, typer.Option("--emulate", help="Time the problems on the emulated array too.")] = False,
    published: Annotated[bool, typer.Option(help="Published measurements on the same kind of array.")] = True,
    force: Force = False,
) -> None:
    """Peak and bandwidth of a device, with modelled, emulated and published GEMMs below them."""
    basis, chosen = basis_named(kernel), device_named(device)
    specs = [load_spec(path) for path in design or []]
    given = [type_named(name).name for name in types.split(",")] if types else []
    if given and len(given) != 2:
        raise typer.BadParameter(f"{types!r} is not the types of A and B, such as int8,int2", param_hint="--types")
    a, b = given or ([specs[0].a, specs[0].b] if specs else ["int8", "int8"])
    points = published_points(measured_rows(), device) if published else []
    for spec in specs:
        plan = plan_gemm(spec, chosen)
        for one in [p for p, _ in shapes(many)] if many else _problems(spec):
            points += _points(plan, one, basis, emulate)
    draw(lambda: roofline(device, a, b, points), out)


@plot.command(name="kmt")
def kmt_command(
    out: _Out,
    design: _Design = None,
    shape: Shape = None,
    device: ProductName = DEFAULT_PRODUCT,
    tile: Annotated[str | None, typer.Option(help="MxKxN of a core's tile, instead of a design.")] = None,
    types: Annotated[str, typer.Option(help="Types of A, B and C, with --tile.")] = "int8,int8,int32",
    b_layout: BLayout = "column",
    kernel: Kernel = "fitted",
    force: Force = False,
) -> None:
    """Speed over the depth of a memtile's slab: longer contiguous runs in DRAM."""
    if (design is None) == (tile is None):
        raise typer.BadParameter("give either --design or --tile")
    basis = basis_named(kernel)
    if design is not None:
        spec = load_spec(design)
        chosen = _one_problem(spec, shape)
        plan = plan_gemm(spec, device_named(device))
        plan.check(chosen)
        case = case_of(spec, plan.device, chosen)
    else:
        case = _tile_case(tile or "", types, b_layout, device, shape)
    found, measured = sweep(case, basis), _published_depths(case)
    draw(lambda: kmt_sweep(found, measured), out)


@plot.command(name="pattern")
def pattern_command(
    out: _Out,
    visits: Annotated[str | None, typer.Option("--sizes", help="Sizes, outermost first, such as 4,2,8,8.")] = None,
    strides: Annotated[str | None, typer.Option(help="Strides in elements, outermost first.")] = None,
    offset: Annotated[int, number("First element.", most=LARGE)] = 0,
    width: Annotated[int | None, number("Elements of a row of the buffer.", least=1)] = None,
    design: _Design = None,
    operand: Annotated[str, typer.Option(help="Whose way out of a design's memtile: a, b or c.")] = "a",
    device: ProductName = DEFAULT_PRODUCT,
    force: Force = False,
) -> None:
    """The order in which a DMA visits the elements of a buffer: sizes and strides, or a design's reorder."""
    if (design is None) == (visits is None or strides is None):
        raise typer.BadParameter("give either --sizes and --strides, or --design")
    if design is not None:
        title, pattern, natural = _reorder(plan_gemm(load_spec(design), device_named(device)), operand)
    else:
        title, natural = "", None
        pattern = Pattern(_numbers(visits, "--sizes"), _numbers(strides, "--strides"), offset)
    draw(lambda: pattern_picture(pattern, width or natural, title), out)


@plot.command(name="timeline")
def timeline_command(
    out: _Out,
    file: Annotated[Path, typer.Argument(help="What --timeline of `bdforge run` or `emulate` wrote.")],
    force: Force = False,
) -> None:
    """What cores and DMA channels do and wait for over a timed run, and a composition's steps above."""
    draw(lambda: timeline(file), out)


@plot.command(name="utilisation")
def utilisation_command(
    out: _Out,
    design: SpecOption,
    shape: Shape = None,
    device: ProductName = DEFAULT_PRODUCT,
    kernel: Kernel = "compiled",
    force: Force = False,
) -> None:
    """What each tile of the array did in a timed run (emulated; kernels only take time)."""
    basis, spec = basis_named(kernel), load_spec(design)
    chosen = _one_problem(spec, shape)
    report = timed(plan_gemm(spec, device_named(device)), chosen, basis)
    draw(lambda: utilisation(report, f"{spec.name}: {chosen} on {device}, {basis} kernel"), out)


def _problems(spec: GemmSpec) -> tuple[GemmProblem, ...]:
    if not spec.problems:
        raise PerfError(f"{spec.name}: has no problems; give a shape")
    return spec.problems


def _one_problem(spec: GemmSpec, shape: str | None) -> GemmProblem:
    return problem(shape) if shape else _problems(spec)[0]


def _points(plan: GemmPlan, one: GemmProblem, basis: Basis, emulate: bool) -> list[Point]:
    plan.check(one)
    case, name = case_of(plan.spec, plan.device, one), f"{plan.spec.name} {one}"
    found = [modelled_point(case, name, kernel=kernel_on(plan, case, basis))]
    if emulate and (tops := timed(plan, one, basis).tops) is not None:
        found.append(Point("emulated", "", intensity(case), tops))
    return found


def _tile_case(tile: str, types: str, b_layout: str, device: str, shape: str | None) -> GemmCase:
    (m, k, n), names = sizes(tile), [type_named(name).name for name in types.split(",")]
    if len(names) != 3:
        raise typer.BadParameter(
            f"{types!r} is not the types of A, B and C, such as int8,int8,int32", param_hint="--types"
        )
    if shape is None:
        raise typer.BadParameter("give the problem, such as 1024x2560x2560", param_hint="--shape")
    (a, b, c), array = names, device_named(device)
    whole = problem(shape)
    return GemmCase(
        device=device, a=a, b=b, c=c, m=m, k=k, n=n, k_mt=k, rows=array.core_rows, columns=array.columns,
        M=whole.M, K=whole.K, N=whole.N, b_layout=order_named(b_layout),
    )  # fmt: skip


def _published_depths(case: GemmCase) -> list[tuple[int, float]]:
    """(k_mt, TOPS) of published measurements of this very tile on this kind of array."""

    def same(other: GemmCase) -> bool:
        facts = ("a", "b", "c", "m", "k", "n", "M", "K", "N", "b_layout")
        return case.array.mlir == other.array.mlir and all(getattr(case, f) == getattr(other, f) for f in facts)

    return [(r.case.k_mt, r.tops) for r in measured_rows() if r.tops and same(r.case) and r.case.bd_overlap]


def _reorder(plan: GemmPlan, operand: str) -> tuple[str, Pattern, int]:
    """Title, pattern and elements of a row (of C: a micro-tile): how a memtile sends the first slice or tile."""
    channels = {"a": A_CHANNELS[0], "b": B_CHANNEL, "c": c_out_channel(plan.spec)}
    if operand not in channels:
        raise typer.BadParameter(f"{operand!r} is not a, b or c", param_hint="--operand")
    memtile = next(tile for tile in plan.design.tiles if tile.row == 1)
    way = ("MM2S", channels[operand])
    channel = next((channel for channel in memtile.channels if (channel.direction, channel.index) == way), None)
    if channel is None:
        raise PlotError(f"{plan.spec.name}: runtime sequences send {operand.upper()}; there is no reorder to draw")
    bd = channel.bds[0]
    if bd.linear:
        raise PlotError(f"{plan.spec.name}: {operand.upper()} leaves its memtile in order; there is no reorder to draw")
    tile, k_mt = plan.spec.tile, plan.spec.buffers.k_mt
    widths = {
        "a": k_mt if plan.spec.layouts.a == "row" else tile.m,
        "b": k_mt if plan.spec.layouts.b == "column" else tile.n,
        "c": plan.kernel.r * plan.kernel.t,
    }
    return f"{plan.spec.name}: {channel.role}, first of {len(channel.bds)} BDs", bd.pattern, widths[operand]


def _numbers(text: str | None, option: str) -> tuple[int, ...]:
    return tuple(whole_numbers(text or "", option, -SIZE_MAX))
