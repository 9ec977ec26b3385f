"""`bdforge balance`: from the fastest tile of one core to the balanced design, with the numbers of each step."""

from math import isfinite
from typing import Annotated

import typer

from bdforge.cli.options import BLayout, Kernel, ProductName, problem, with_schedule
from bdforge.common.screen import new_table, put, say, screen
from bdforge.devices import device_named
from bdforge.devices.types import order_named
from bdforge.perf.tune.balanced_tiles import FIXED, Balance, Tile, balance
from bdforge.perf.tune.space import search_space
from bdforge.perf.tune.time_model import basis_named

app = typer.Typer()
_RANKED = 5


@app.command(name="balance")
def balance_command(
    shape: Annotated[str, typer.Option(help="MxKxN of the problem.")] = "4096x4096x4096",
    types: Annotated[str, typer.Option(help="Types of A, B, C and, if need be, the accumulator.")] = "int8,int8,int32",
    b_layout: BLayout = "column",
    device: ProductName = "strix_halo",
    kernel: Kernel = "fitted",
) -> None:
    """Walk the published step from the ranking of one core's tiles to the balanced design (modelled)."""
    whole, basis, order = problem(shape), basis_named(kernel), order_named(b_layout)
    space = search_space(device_named(device), types, whole.K, b_layouts=(order,), fixed=FIXED)
    found = with_schedule(lambda: balance(space, basis, whole))
    _tell(found, f"{whole} {types} on {device}, {basis} kernel")
    best = found.steps[-1]
    fixed = " ".join(f"--fix {name}={getattr(best, name)}" for name in "mkn")
    given = f"--device {device} --types {types} --shapes {whole} --layouts {order}"
    say(f"slabs and buffers for it: bdforge tune {given} --symmetric {fixed}")


def _tell(found: Balance, what: str) -> None:
    first, best = found.ranked[0], found.steps[-1]
    one = new_table(f"1. One core: the fastest of {len(found.ranked):,} tiles whose A and B come in time", *_CORE)
    for tile in found.ranked[:_RANKED]:
        one.add_row(str(tile), f"{tile.macs_per_cycle:.1f}", f"{tile.kernel_cycles:.0f}", f"{tile.stream_cycles:.0f}")
    needed = f"m = {found.balanced_m:.0f} with its n" if isfinite(found.balanced_m) else "which no m gives its n"
    moves = (
        f"2. The array: {first} computes {first.compute_us:.0f} us and moves for {first.memory_us:.0f} us: "
        f"{first.bound} binds.\n   It does {first.intensity:.0f} operations per byte; to compute all the time it would "
        f"need {found.ridge:.0f}, {needed}.\n"
    )
    walk = new_table(f"3. Down the ranking, while the longer of both gets shorter ({what}, modelled)", *_ARRAY)
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


def _row(tile: Tile) -> tuple[str, ...]:
    figures = (f"{tile.macs_per_cycle:.1f}", f"{tile.compute_us:.0f}", f"{tile.memory_us:.0f}", f"{tile.intensity:.0f}")
    return str(tile), *figures, tile.bound
