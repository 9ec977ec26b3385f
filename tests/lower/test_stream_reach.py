"""What the words of a shim's channel pass and reach: switches on their way, memtiles, what these send, cores."""

import pytest

from bdforge.array.images.read import read_image
from bdforge.array.lower.array_state import ArrayState
from bdforge.array.lower.stream_reach import shim_reach
from bdforge.array.lower.tile_use import TilePart
from bdforge.runtime.toolchain.assembled import built_image
from support.array_text import acquire, bd, buffer, core, flow, lock, module, program, release, ring, tile

N = 8
SWITCHES = {TilePart(0, row, switch=True) for row in range(3)}
TILES = {TilePart(0, row) for row in range(3)}
AT_CORE = [
    buffer("x", "02", N, address=2048), lock("free", "02", 0, 1), lock("full", "02", 1),
    core("02", acquire("full"), release("free")),
    program("02", ring("S2MM", 0, acquire("free"), bd("x", N), release("full"))),
]  # fmt: skip


def stored(held: str, sends: tuple[str, str]) -> list[str]:
    """A memtile that fills a buffer by S2MM 1, with locks of `held`, and sends it by MM2S 3, with those of `sends`."""
    return [
        buffer("m", "01", N, address=0), lock("m_free", held, 3, 1), lock("m_full", held, 4), lock("other", "01", 7, 1),
        program("01", ring("S2MM", 1, acquire("m_free"), bd("m", N), release("m_full")),
                ring("MM2S", 3, acquire(sends[0]), bd("m", N), release(sends[1]))),
        flow("00 DMA : 1", "01 DMA : 1"), flow("01 DMA : 3", "02 DMA : 0"),
    ]  # fmt: skip


CASES = {
    "straight to a core": ([flow("00 DMA : 1", "02 DMA : 0")], SWITCHES | (TILES - {TilePart(0, 1)})),
    "by a memtile": (stored("01", ("m_full", "m_free")), SWITCHES | TILES),
    "to a memtile that sends something else": (
        stored("01", ("other", "other")), {part for part in SWITCHES | TILES if part.row < 2},
    ),
    "to a memtile that shares a neighbour's locks": (stored("11", ("m_full", "m_free")), None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_reach(case: str):
    parts, wanted = CASES[case]
    text = module("npu2", *(tile(*at) for at in ((0, 0), (0, 1), (1, 1), (0, 2))), *AT_CORE, *parts)
    (configuration,) = read_image(built_image(text, "small.mlir", [], []).xclbin).configurations
    found = shim_reach(ArrayState(configuration))
    assert found == ({} if wanted is None else {(0, 1): frozenset(wanted)})
