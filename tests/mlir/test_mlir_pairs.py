"""Limits of the verifier: the last value is read, the first beyond is refused by name; whose memory is reached."""

import pytest
from mlir_pairs import PAIRS
from mlir_texts import fault


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("name", PAIRS)
def test_values_up_to_the_last_are_read_and_those_beyond_refused_by_name(name: str):
    pair = PAIRS[name]
    for value in pair.good:
        assert fault(pair.text(value)) == "accepted", value
    for value in pair.bad:
        assert pair.words in fault(pair.text(value)), value


def used(user: str, what: str, column: int, row: int) -> str:
    """The program of (1, 3), a core or its DMA, or of memtile (1, 1), with a buffer or lock of another tile."""
    home = (1, 1) if user == "memtile_dma" else (1, 3)
    other = "" if (column, row) == home else f"%h = aie.tile({column}, {row})\n"
    there = "%h" if other else "%t"
    tiles = f"%t = aie.tile{home}\n{other}%b = aie.buffer({there}) : memref<4xi32>\n%l = aie.lock({there})\n"
    own = "%own = aie.buffer(%t) : memref<4xi32>\n"
    if user == "core":
        use = "aie.use_lock(%l, Release, 1)" if what == "lock" else "%v = memref.load %b[%i] : memref<4xi32>"
        body = f"aie.core(%t) {{\n%i = arith.constant 0 : index\n{use}\naie.end\n}}"
    else:
        use = "aie.dma_bd(%b : memref<4xi32>)"
        use = f"aie.use_lock(%l, Acquire, 1)\n{use.replace('%b', '%own')}" if what == "lock" else use
        body = (
            f"aie.{user}(%t) {{\naie.dma_start(S2MM, 3, ^bd, ^end)\n^bd:\n{use}\naie.next_bd ^end\n^end:\naie.end\n}}"
        )
    return f"aie.device(npu2) {{\n{tiles}{own}{body}\n}}"


NEAR = {
    "core": {(1, 3), (1, 4), (1, 2), (0, 3)},
    "mem": {(1, 3)},
    "memtile_dma": {(1, 1), (0, 1), (2, 1)},
}
PLACES = [(column, row) for column in range(4) for row in range(1, 6)]


@pytest.mark.parametrize("what", ["lock", "buffer"])
@pytest.mark.parametrize("user", NEAR)
def test_programs_reach_their_neighbours_alone(user: str, what: str):
    at = "(1, 1)" if user == "memtile_dma" else "(1, 3)"
    for place in PLACES:
        words = f"this {what} of tile {place} is used by the aie.{user} of tile {at}, which reaches "
        assert ("accepted" if place in NEAR[user] else words) in fault(used(user, what, *place)), place
