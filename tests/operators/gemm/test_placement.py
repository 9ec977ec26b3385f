"""Addresses, banks and BD ids of plans: in the text, aligned, apart."""

import re
from collections import Counter
from itertools import combinations

import pytest

from bdforge.design.model import Tile
from bdforge.devices import AIE2P, DEVICES, TileKind
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, load_spec, plan_gemm
from support.built_designs import ROOT, each_named, named_plans
from support.family import GROUPS, SEED, SIZE, group

CORE = AIE2P.limits(TileKind.CORE)
BANK = {TileKind.CORE: 0x4000, TileKind.MEMTILE: 0x10000}
MEMORY = {TileKind.CORE: 0x10000, TileKind.MEMTILE: 0x80000}


@pytest.fixture(scope="module")
def family() -> list[GemmPlan]:
    return [member.plan for index in range(0, GROUPS, 8) for member in group(index, SIZE, SEED)]


def holders(plan: GemmPlan) -> list[Tile]:
    return [tile for tile in plan.design.tiles if tile.buffers]


def banks(tile: Tile, name: str) -> set[int]:
    buffer = tile.buffer(name)
    assert buffer.address is not None
    last = buffer.address + buffer.bytes - 1
    return set(range(buffer.address // BANK[tile.kind], last // BANK[tile.kind] + 1))


@pytest.mark.slow
def test_buffers_are_aligned_apart_and_above_the_stack(family):
    for plan in (*named_plans(), *family):
        for tile in holders(plan):
            end = plan.spec.buffers.stack_bytes if tile.kind is TileKind.CORE else 0
            for buffer in sorted(tile.buffers, key=lambda b: b.address or 0):
                assert buffer.address is not None
                assert buffer.address % 64 == 0
                assert buffer.address >= end, (plan.spec.name, buffer)
                end = buffer.address + buffer.bytes
                assert set(buffer.banks) == banks(tile, buffer.name)
            assert end <= MEMORY[tile.kind]


def test_bds_are_numbered_within_what_their_channel_may_use(family):
    for plan in (*named_plans(), *family):
        for tile in holders(plan):
            ids = [(bd.bd_id, channel.index % 2) for channel in tile.channels for bd in channel.bds]
            assert max(Counter(ids).values()) == 1
            limit = 16 if tile.kind is TileKind.CORE else 48
            assert {i for i, _ in ids} <= set(range(limit))
            if tile.kind is TileKind.MEMTILE:
                assert all((i in range(24, 48)) == odd for i, odd in ids)


def addressed(text: str, plan: GemmPlan) -> None:
    """Every tile, buffer, lock, BD of a text says where it is."""
    tiles = re.findall(r"%(\w+) = aie.tile\((\d+), (\d+)\) \{(.*)\}", text)
    assert len(tiles) == len(re.findall(r"aie\.tile\(", text)) == len(plan.design.tiles)
    ids = {"0": 15, "1": 26, "2": 27, "3": 29, "4": 30, "5": 31}
    assert all(f"pkt_id = {ids[row]}>" in told for *_, row, told in tiles)
    assert all(('allocation_scheme = "basic-sequential"' in told) == (row != "0") for *_, row, told in tiles)
    buffers = re.findall(r"aie\.buffer\(%(\w+)\) \{address = (\d+) : i32, sym_name = \"(\w+)\"\}", text)
    told = {name: int(address) for _, address, name in buffers}
    assert told == {b.name: b.address for tile in plan.design.tiles for b in tile.buffers}
    assert len(buffers) == len(re.findall(r"aie\.buffer\(", text))
    assert len(re.findall(r"aie\.lock\(%\w+, \d+\)", text)) == len(re.findall(r"aie\.lock\(", text))
    assert len(re.findall(r"aie\.dma_bd\(.*\) \{bd_id = \d+ : i32\}", text)) == len(re.findall(r"aie\.dma_bd\(", text))


@pytest.mark.daily(every=6)
@each_named
def test_a_named_designs_text_leaves_nothing_to_a_tool(plan):
    addressed(render(plan, []), plan)


def test_no_member_of_the_family_leaves_anything_to_a_tool(family):
    for plan in family:
        addressed(render(plan, []), plan)


@each_named
def test_ping_and_pong_are_in_different_banks_where_memory_allows(plan):
    """In cores and, by the banks of mlir-aie, in memtiles. No named design is so full that it must share."""
    for tile in holders(plan):
        for buffer in tile.buffers:
            if buffer.name.endswith("_ping") and any(b.name == f"{buffer.name[:-4]}pong" for b in tile.buffers):
                assert not banks(tile, buffer.name) & banks(tile, f"{buffer.name[:-4]}pong"), (tile.name, buffer)


def test_the_flagships_operands_share_one_bank_crosswise_only():
    """4096 of stack, A 8192 twice, B 2048 twice, C 16384 fill banks so that C is alone and no A is with its B."""
    plan = plan_gemm(load_spec(ROOT / "designs/gemm_i8_i2_bitnet.toml"), DEVICES["strix_halo"])
    tile = next(tile for tile in plan.design.tiles if tile.core)
    found = {name: banks(tile, f"core_0_2_{name}") for name in ("a_ping", "a_pong", "b_ping", "b_pong", "c_ping")}
    assert [len(found[name]) for name in found] == [1] * 5
    pairs = {(x, y) for x, y in combinations(found, 2) if found[x] & found[y]}
    assert pairs in ({("a_ping", "b_pong")}, {("a_pong", "b_ping")})
