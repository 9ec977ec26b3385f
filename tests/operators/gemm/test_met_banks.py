"""How much a core's operands share banks: placements by hand, and accesses counted one by one."""

from dataclasses import replace
from itertools import product

import pytest

from bdforge.design.model import Tile
from bdforge.design.tile_memory import Buffer
from bdforge.devices import AIE2P, TileKind
from bdforge.operators.gemm.met_banks import meets
from bdforge.perf.assembled.counted_core import core_costs
from support.built_designs import small_gemm

CORE = AIE2P.limits(TileKind.CORE)
KB = 1024


def core(a: tuple[int, int], b: tuple[int, int], c: tuple[int, ...], sizes: tuple[int, int, int]) -> Tile:
    """A core with buffers of A, B and C at addresses, of sizes, all in KiB."""
    held = [
        Buffer(f"core_0_2_{name}_{turn}", size * KB, "i8", address=at * KB)
        for name, places, size in zip("abc", (a, b, c), sizes, strict=True)
        for turn, at in zip(("ping", "pong"), places, strict=False)
    ]
    return Tile("core_0_2", 0, 2, TileKind.CORE, tuple(held))


@pytest.mark.parametrize(("tile", "rho", "expected"), [
    pytest.param(core((0, 16), (8, 24), (32,), (8, 8, 32)), 1, (0, 0, 100), id="C alone, A with its B"),
    pytest.param(core((0, 16), (24, 8), (32,), (8, 8, 32)), 1, (0, 0, 0), id="A with the other B"),
    pytest.param(core((0, 16), (24, 8), (32,), (8, 8, 32)), 2, (0, 0, 50), id="each part of A with each B"),
    pytest.param(core((0, 60), (16, 4), (20,), (4, 4, 40)), 1, (15, 15, 0), id="12 of 40 KB with each for a turn"),
    pytest.param(core((0, 16), (4, 20), (24,), (4, 4, 16)), 1, (25, 25, 100), id="8 of 16 KB with both of pong"),
    pytest.param(core((16, 48), (0, 4), (16,), (8, 4, 32)), 2, (50, 0, 0), id="the first part of C with A's ping"),
    pytest.param(core((8, 48), (0, 4), (12,), (8, 4, 8)), 1, (25, 50, 50), id="4 of 8 KB, B in all turns"),
    pytest.param(core((0, 16), (8, 24), (32, 40), (8, 8, 8)), 1, (0, 0, 100), id="two of C in a bank of their own"),
])  # fmt: skip
def test_shares_are_those_of_bytes_in_the_same_bank(tile: Tile, rho: int, expected: tuple[int, ...]):
    """B of two buffers, A of two in `rho` parts, C of which each call has a part; banks of 16 KB."""
    assert meets(small_gemm(32, rho=rho).spec, tile, CORE) == expected


@pytest.mark.parametrize(("rho", "fed"), [(1, False), (2, False), (3, False), (4, False), (1, True), (2, True)])
def test_shares_are_what_accesses_of_many_steps_count(rho: int, fed: bool):
    """Turns as a core takes them, tile after tile of C with 4 steps of K; an access for each KiB of an operand."""
    tile = core((0, 13), (3, 33), (19,), (3, 7, 12))
    a, b, c = ([buffer for buffer in tile.buffers if f"_{name}_" in buffer.name] for name in "abc")
    met, turns, every = [0, 0, 0], [0, 0], [0, 0, 0]
    for _ in range(4):
        for _, part in product(range(4), range(rho)):
            size = 12 * KB // rho
            at = [_accesses(a[turns[0] % 2]), _accesses(b[turns[1] % 2]), _accesses(c[0], part * size, size)]
            for i, (one, other) in enumerate(((0, 2), (1, 2), (0, 1))):
                met[i] += sum(x == y for x in at[one] for y in at[other]) * 12 // len(at[other])
                every[i] += len(at[one]) * 12
            turns = [turns[0] + 1, turns[1] + (part == rho - 1)]
        turns[1] += fed
    spec = small_gemm(8 * rho, rho=rho).spec
    if fed:
        spec = replace(spec, epilogue=replace(spec.epilogue, scale=True))
    found = meets(spec, tile, CORE)
    assert found == pytest.approx([100 * part / whole for part, whole in zip(met, every, strict=True)], abs=1)


def _accesses(buffer: Buffer, start: int = 0, size: int = 0) -> list[int]:
    """Banks of an access for each KiB."""
    first = (buffer.address or 0) + start
    return [at // (16 * KB) for at in range(first, first + (size or buffer.bytes), KB)]


@pytest.mark.slow
@pytest.mark.parametrize(("tile", "rho", "share"), [((64, 128, 160), 2, 0.02), ((96, 72, 96), 1, 0.13)])
def test_kernels_keep_clear_of_banks_that_operands_share(tile: tuple[int, int, int], rho: int, share: float):
    """Where C shares banks: blocks of 4 x 1 micro-tiles, which load A in every cycle, would wait 12 % of the first."""
    plan = small_gemm(*tile, rows=1, columns=1, rho=rho, k_mt=2 * tile[1])
    assert any(plan.met)
    assert f"MEETS={','.join(map(str, plan.met))}" in plan.kernels.defines
    costs = core_costs(plan)
    assert costs.step.stalls[costs.multiply] <= share * costs.step.issue[costs.multiply]
