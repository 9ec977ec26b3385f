"""The order in which a memtile's channels take and give buffers, written out by hand for small designs."""

from typing import Any

import numpy as np
import pytest

from support.built_designs import small_gemm
from support.differences import same

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
    plan = small_gemm(**DESIGNS[design])
    memtile = next(tile for tile in plan.design.tiles if tile.name == "mem_0")
    channel = next(c for c in memtile.channels if f"{c.direction} {c.index}" == name)
    order = [bd.buffer.name.removeprefix("mem_0_").replace("mem_1_", "1.") for bd in channel.bds]
    assert " ".join(order) == ORDERS[case]
    filled = channel.direction == "S2MM"
    for bd in channel.bds:  # what is filled was free and is full then, and the other way round
        kinds = [use.lock.name.rpartition("_")[2] for use in (bd.acquire, bd.release) if use]
        assert kinds == (["free", "full"] if filled else ["full", "free"]), bd.buffer.name


def test_a_slab_is_counted_in_slices():
    plan = small_gemm(k_mt=48)
    memtile = next(tile for tile in plan.design.tiles if tile.name == "mem_0")
    counts = {f"{c.direction} {c.index}": [bd.acquire.count for bd in c.bds if bd.acquire] for c in memtile.channels}
    assert counts["S2MM 1"] == [3, 3]  # a whole slab
    assert counts["MM2S 1"] == [1] * 6  # slice by slice
    assert {lock.init for lock in memtile.locks if "a0" in lock.name} == {6, 0}


def slices(slab: np.ndarray, axis: int) -> list[np.ndarray]:
    """Both halves of a slab that is twice as deep as a tile."""
    return np.split(slab, 2, axis)


def tiled(matrix: np.ndarray, order: tuple[int, int, int, int]) -> np.ndarray:
    """8 x 8 micro-tiles of lines; `order` of [blocks of lines][lines][blocks along them][along them]."""
    rows, columns = matrix.shape
    return matrix.reshape(rows // 8, 8, columns // 8, 8).transpose(order).ravel()


TILES = (0, 2, 1, 3)  # block of lines by block of lines
FLAT = np.arange(1 << 12)
ROWS, COLUMNS = FLAT[: 16 * 32].reshape(16, 32), FLAT[: 32 * 16].reshape(32, 16)
BLOCKS, THREE = FLAT[: 2 * 8 * 72].reshape(2, -1), FLAT[: 3 * 32].reshape(3, 32)
SENT: dict[str, tuple[dict[str, Any], str, np.ndarray]] = {
    # A of 16 rows, B of 32 columns, 16 deep in slabs of 32; what leaves of one buffer by which channel.
    "row-major A": ({}, "MM2S 1", np.concatenate([tiled(part, TILES) for part in slices(ROWS, 1)])),
    "column-major A": (
        {"layouts": "column row row"}, "MM2S 1",
        np.concatenate([tiled(part, (2, 0, 1, 3)) for part in slices(COLUMNS, 0)]),
    ),
    "A of block floats": (
        {"types": ("bfp16", "bfp16", "f32"), "layouts": "row packed row", "k": 32, "k_mt": 64}, "MM2S 1",
        np.concatenate([part.ravel() for part in slices(BLOCKS, 1)]),
    ),
    "row-major B": (
        {}, "MM2S 0",
        np.concatenate([tiled(part, (2, 0, 1, 3)) for part in slices(FLAT[: 32 * 32].reshape(32, 32), 0)]),
    ),
    "column-major B": (
        {"layouts": "row column row"}, "MM2S 0",
        np.concatenate([tiled(part, TILES) for part in slices(FLAT[: 32 * 32].reshape(32, 32), 1)]),
    ),
    "packed B": ({"layouts": "row packed row"}, "MM2S 0", FLAT[: 16 * 32]),
    "row-major C": ({}, "MM2S 2", FLAT[: 16 * 32].reshape(2, 4, 8, 8).transpose(0, 2, 1, 3).ravel()),
    "column-major C": (
        {"layouts": "row row column"}, "MM2S 2", FLAT[: 16 * 32].reshape(2, 4, 8, 8).transpose(1, 2, 0, 3).ravel(),
    ),
    "C in two pieces": (
        {"c_pieces": 2, "layouts": "row packed row"}, "MM2S 2",
        FLAT[: 8 * 32].reshape(1, 4, 8, 8).transpose(0, 2, 1, 3).ravel(),
    ),
    "C of three rows": (
        {"m": 8, "m_used": 3, "layouts": "row packed row"}, "MM2S 2",
        FLAT[: 8 * 32].reshape(4, 8, 8).transpose(1, 0, 2)[:3].ravel(),
    ),
    "A of three rows": (
        {"m": 8, "m_used": 3, "layouts": "row packed row"}, "MM2S 1",
        np.concatenate([part.reshape(3, 2, 8).transpose(1, 0, 2).ravel() for part in slices(THREE, 1)]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SENT)
def test_a_memtile_sends_slabs_in_the_order_of_the_kernel_and_c_in_lines(name: str):
    changes, channel, wanted = SENT[name]
    facts = {"m": 16, "k": 16, "n": 32, "k_mt": 32, "rows": 1, "columns": 1, "types": ("int8", "int8", "int32"),
             "layouts": "row row row"}  # fmt: skip
    plan = small_gemm(**dict[str, Any](facts) | changes)
    memtile = next(tile for tile in plan.design.tiles if tile.name == "mem_0")
    found = next(c for c in memtile.channels if f"{c.direction} {c.index}" == channel)
    first = found.bds[0].buffer
    bds = [bd for bd in found.bds if bd.buffer is first][: 1 if "pieces" in name else None]
    same(np.concatenate([bd.pattern.order() for bd in bds]), wanted)
    assert {bd.padding for bd in bds} == ({((0, 0), (0, 0), (0, 5), (0, 0))} if name == "A of three rows" else {()})
