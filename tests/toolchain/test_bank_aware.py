"""What aiecc's default, bank-aware placement does to a text: a small model of it, and why ours are immune.

Seen with mlir-aie of 2026: a buffer with an address moves up by its own size, with or without `mem_bank`; those without
one are spread over the banks; a tile that says `allocation_scheme = "basic-sequential"` keeps what it is given.
"""

import re
from collections import defaultdict

import pytest

from bdforge.devices import DEVICES
from bdforge.operators import render
from bdforge.operators.gemm import GemmPlan, GemmProblem, load_spec, plan_gemm, sequence
from support.built_designs import ROOT, named_designs

BITS = {"i8": 8, "i16": 16, "i32": 32, "bf16": 16, "f32": 32}
TILE = re.compile(r"%(\w+) = aie\.tile\(\d+, (\d+)\)(.*)")
BUFFER = re.compile(r'%\w+ = aie\.buffer\(%(\w+)\) \{(.*?)sym_name = "(\w+)"\} : memref<(\d+)x(\w+)>')


def bank_aware(text: str) -> dict[str, int]:
    """Where the default puts each buffer of a rendered text, by name; text in, no code of bdforge."""
    tiles = {name: (int(row), told) for name, row, told in TILE.findall(text)}
    stack = int(re.findall(r"stack_size = (\d+)", text)[0])
    placed: dict[str, int] = {}
    ends: dict[tuple[str, int], int] = defaultdict(int)
    turn: dict[str, int] = defaultdict(int)
    for tile, told, name, count, kind in BUFFER.findall(text):
        size, (row, attributes) = int(count) * BITS[kind] // 8, tiles[tile]
        address = re.search(r"address = (\d+)", told)
        if address and 'allocation_scheme = "basic-sequential"' in attributes:
            placed[name] = int(address[1])
        elif address:
            placed[name] = int(address[1]) + size
        else:
            banks, bank_bytes = (8, 0x10000) if row == 1 else (4, 0x4000)
            bank = turn[tile] % banks
            base = max(bank * bank_bytes, stack if row > 1 and bank == 0 else 0)
            placed[name] = base + ends[tile, bank]
            ends[tile, bank] += size
            turn[tile] += 1
    return placed


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("plan", [*named_designs().values()][::4], ids=[*named_designs()][::4], indirect=True)
def test_the_default_keeps_every_address_of_named_designs(plan: GemmPlan):
    """And with them the words: parameters are written where the cores read them."""
    placed = bank_aware(render(plan, []))
    assert placed == plan.design.buffer_addresses
    columns = sum(one.columns for one in plan.spec.outputs) or plan.spec.tile.n
    problem = GemmProblem(plan.spec.tile.m, plan.spec.tile.k, columns)
    writes = {
        getattr(operation, "address", None)
        for operation in sequence(plan, problem.M, problem.K, problem.N).operations()
    }
    for tile in (tile for tile in plan.design.tiles if tile.core):
        assert tile.column << 25 | tile.row << 20 | placed[f"{tile.name}_rtp"] in writes


@pytest.mark.parametrize("gone", ['allocation_scheme = "basic-sequential", ', r"address = \d+ : i32, "])
def test_without_either_of_the_two_the_default_moves_parameters(gone: str):
    """The model can tell: a text that lacks the attribute or the addresses does not keep its words."""
    plan = plan_gemm(load_spec(ROOT / "designs/gemm_i8_i2_bitnet.toml"), DEVICES["strix_halo"])
    placed, kept = bank_aware(re.sub(gone, "", render(plan, []))), plan.design.buffer_addresses
    rtps = [f"{tile.name}_rtp" for tile in plan.design.tiles if tile.core]
    assert all(placed[name] != kept[name] for name in rtps)
