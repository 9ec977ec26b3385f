"""`bdforge sweep`: a design over many sizes that its array takes whole, by layout of B."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.table import Table

from bdforge.cli.options import (
    DEFAULT_PRODUCT,
    Force,
    Jobs,
    Kernel,
    Layouts,
    ProductName,
    Scheduler,
    layouts,
    new_path,
    whole_numbers,
    workers_of,
    write,
)
from bdforge.cli.plot import draw, new_plot
from bdforge.cli.progress import doing
from bdforge.common.screen import new_table, put, screen
from bdforge.devices import device_named
from bdforge.devices.types import TYPES, Order
from bdforge.operators.gemm import load_spec
from bdforge.perf.plots.layouts import layouts_picture
from bdforge.perf.size_sweep import Swept, native_problems, ratios, sweep, write_csv
from bdforge.perf.tune.time_model import basis_named

app = typer.Typer()


@app.command(name="sweep")
def sweep_command(
    design: Annotated[Path, typer.Argument(help="Design spec, such as designs/gemm_i8_i8_i32_96x64x96.toml.")],
    b_layouts: Layouts = "",
    sizes: Annotated[
        str, typer.Option(help="M, K and N each from these, to the nearest that the array takes whole.")
    ] = "512,1024,2048,3072,4096,6144,8192",
    device: ProductName = DEFAULT_PRODUCT,
    kernel: Kernel = "compiled",
    out: Annotated[Path | None, new_path("New CSV file: a line for each problem.", "--out", "-o")] = None,
    picture: Annotated[Path | None, new_plot("--picture")] = None,
    force: Force = False,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
) -> None:
    """Model a design for all combinations of sizes that need no padding, with each layout of B in DRAM.

    Those are row and column by default, or packed for a type that DMAs cannot reorder.
    """
    spec, basis = load_spec(design), basis_named(kernel)
    chosen = layouts(b_layouts or ("packed" if TYPES[spec.b].packed_only else "row,column"))
    problems = native_problems(spec, whole_numbers(sizes, "--sizes", 1))
    workers = workers_of(jobs, scheduler)
    with doing(workers, "problems") as (ended,):
        swept = sweep(spec, device_named(device), chosen, problems, basis, workers, ended)
    title = f"{spec.name} on {device}: {len(problems)} problems without padding, {basis} kernel (modelled)"
    put(screen(), _table(swept, chosen, title))
    if out is not None:
        write(out, write_csv(swept), force, f": {len(swept)} rows, modelled")
    if picture is not None:
        draw(lambda: layouts_picture(swept, title), picture)


def _table(swept: Sequence[Swept], chosen: Sequence[Order], title: str) -> Table:
    table = new_table(title, "layout of B", ">TOPS: least", ">middle", ">most", f"over {chosen[0]}", "binds most often")
    for layout in chosen:
        found = [one.found for one in swept if one.layout == layout]
        tops = sorted(estimate.tops for estimate in found)
        won = sorted(ratios(swept, chosen[0], layout))
        over = "" if layout == chosen[0] else f"{won[0]:.2f} to {won[-1]:.2f}, {median(won):.2f} in the middle"
        bound, times = Counter(estimate.bound for estimate in found).most_common(1)[0]
        figures = (f"{value:.2f}" for value in (tops[0], median(tops), tops[-1]))
        table.add_row(layout, *figures, over, f"{bound} ({times / len(found):.0%})")
    return table
