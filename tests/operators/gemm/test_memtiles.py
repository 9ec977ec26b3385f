"""The order in which a memtile's channels take and give buffers, written out by hand for small designs."""

from typing import Any

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import plan_gemm, spec_from
from support.built_designs import spec_content

INT8 = ("int8", "int8", "int8", "int8")
DESIGNS: dict[str, dict[str, Any]] = {
    "two rows, a slab of two slices": {"rows": 2, "columns": 2, "k_mt": 32},
    "both rows of A in one memtile": {"rows": 2, "columns": 1},
    "A from two shims, B row by row": {
        "types": INT8, "layouts": "row row row", "rows": 1, "columns": 2, "k_mt": 32, "a_shims": 2,
        "epilogue": {"shift": 3},
    },
    "one tile of C": {"rows": 2, "columns": 2, "c_memtile_buffers": 1},
    "C in two pieces": {"m": 32, "rows": 2, "columns": 2, "c_pieces": 2},
    "C in three pieces": {"m": 24, "rows": 2, "columns": 2, "c_pieces": 3},
    "three pieces, one at a time": {"m": 24, "rows": 1, "columns": 1, "c_pieces": 3, "c_memtile_buffers": 1},
}  # fmt: skip

ORDERS = {
    ("two rows, a slab of two slices", "S2MM 0"): "b_ping b_pong",
    ("two rows, a slab of two slices", "S2MM 1"): "a0_ping a0_pong",
    ("two rows, a slab of two slices", "S2MM 2"): "c0_ping c0_pong",
    ("two rows, a slab of two slices", "S2MM 3"): "c1_ping c1_pong",
    ("two rows, a slab of two slices", "MM2S 0"): "b_ping b_pong",
    ("two rows, a slab of two slices", "MM2S 1"): "a0_ping a0_ping a0_pong a0_pong",
    ("two rows, a slab of two slices", "MM2S 2"): "c0_ping c1_ping c0_pong c1_pong",
    ("both rows of A in one memtile", "S2MM 1"): "a0_ping a1_ping a0_pong a1_pong",
    ("both rows of A in one memtile", "MM2S 1"): "a0_ping a0_pong",
    ("both rows of A in one memtile", "MM2S 3"): "a1_ping a1_pong",
    ("A from two shims, B row by row", "S2MM 1"): "a0_ping a0_pong",
    ("A from two shims, B row by row", "MM2S 0"): "b_ping b_ping b_pong b_pong",
    ("A from two shims, B row by row", "MM2S 1"):
        "a0_ping 1.a0_ping a0_ping 1.a0_ping a0_pong 1.a0_pong a0_pong 1.a0_pong",
    ("one tile of C", "S2MM 2"): "c0_ping",
    ("one tile of C", "MM2S 2"): "c0_ping c1_ping",
    ("C in two pieces", "MM2S 2"): "c0_ping c0_pong c1_ping c1_pong",
    ("C in three pieces", "S2MM 2"): "c0_ping c0_pong",
    ("C in three pieces", "MM2S 2"):
        "c0_ping c0_pong c0_ping c1_ping c1_pong c1_ping c0_pong c0_ping c0_pong c1_pong c1_ping c1_pong",
    ("three pieces, one at a time", "MM2S 2"): "c0_ping c0_ping c0_ping",
}  # fmt: skip
"""Buffers of column 0 by design and channel; those of column 1 with `1.` before them."""


@pytest.mark.parametrize("case", ORDERS, ids=" ".join)
def test_a_memtiles_channel_takes_its_buffers_in_order(case: tuple[str, str]):
    design, name = case
    content = spec_content(**{"m": 16, "k": 16, "n": 32, **DESIGNS[design]})
    plan = plan_gemm(spec_from(content, "small"), device_named("strix_halo"))
    memtile = next(tile for tile in plan.design.tiles if tile.name == "mem_0")
    channel = next(c for c in memtile.channels if f"{c.direction} {c.index}" == name)
    order = [bd.buffer.name.removeprefix("mem_0_").replace("mem_1_", "1.") for bd in channel.bds]
    assert " ".join(order) == ORDERS[case]
    filled = channel.direction == "S2MM"
    for bd in channel.bds:  # what is filled was free and is full then, and the other way round
        kinds = [use.lock.name.rpartition("_")[2] for use in (bd.acquire, bd.release) if use]
        assert kinds == (["free", "full"] if filled else ["full", "free"]), bd.buffer.name


def test_a_slab_is_counted_in_slices():
    plan = plan_gemm(
        spec_from(spec_content(16, 16, 32, k_mt=48, rows=2, columns=2), "small"), device_named("strix_halo")
    )
    memtile = next(tile for tile in plan.design.tiles if tile.name == "mem_0")
    counts = {f"{c.direction} {c.index}": [bd.acquire.count for bd in c.bds if bd.acquire] for c in memtile.channels}
    assert counts["S2MM 1"] == [3, 3]  # a whole slab
    assert counts["MM2S 1"] == [1] * 6  # slice by slice
    assert {lock.init for lock in memtile.locks if "a0" in lock.name} == {6, 0}


@pytest.mark.parametrize(("shims", "parts", "m", "fits"), [(2, 2, 16, True), (2, 3, 48, True), (2, 3, 24, False)])
def test_rows_of_a_tile_divide_into_parts_and_shims_at_once(shims: int, parts: int, m: int, fits: bool):
    """Rows of 8 in each part: what 2 shims and 2 parts both divide is 2 rows of micro-tiles, not 4."""
    content = spec_content(m, 16, 32, rows=1, columns=2, a_shims=shims, rho=parts)
    try:
        plan_gemm(spec_from(content, "small"), device_named("strix_halo"))
        refused = ""
    except ValueError as error:
        refused = str(error)
    assert (
        "" if fits else "tile.m = 24 is not a multiple of 48, which mm_i8_i2_i32 needs (8 in each of 6 parts)"
    ) in refused
    assert bool(refused) is not fits
