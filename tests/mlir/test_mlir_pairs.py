"""Limits of the verifier: the last value is read, the first beyond is refused by name; whose memory is reached."""

import pytest
from mlir_pairs import PAIRS

from bdforge.array.mlir import MlirError, parse


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, pair in PAIRS.items() for value in pair.good])
def test_values_up_to_the_last_are_read(name: str, value: int):
    parse(PAIRS[name].text(value))


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, pair in PAIRS.items() for value in pair.bad])
def test_the_first_value_beyond_is_refused_by_name(name: str, value: int):
    text, words = PAIRS[name].text(value), PAIRS[name].words
    with pytest.raises(MlirError) as caught:
        parse(text)
    assert words in caught.value.message


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
    for place in PLACES:
        text = used(user, what, *place)
        if place in NEAR[user]:
            parse(text)
            continue
        at = "(1, 1)" if user == "memtile_dma" else "(1, 3)"
        with pytest.raises(MlirError) as caught:
            parse(text)
        words = f"this {what} of tile {place} is used by the aie.{user} of tile {at}, which reaches "
        assert words in caught.value.message, place
