"""Memory and locks of neighbouring tiles: which a core reaches, and that they work."""

import pytest

import bdforge
from bdforge.array.mlir import MlirError
from support.array_text import acquire, buffer, core, lock, module, release, tile

HERE = (2, 3)
REACHED = {"own": (2, 3), "west": (1, 3), "north": (2, 4), "south": (2, 2)}
BEYOND = {"east": (3, 3), "further west": (0, 3), "further north": (2, 5), "diagonal": (1, 4)}


def reader(place: tuple[int, int], at: tuple[int, int] = HERE, device: str = "npu2", what: str = "both") -> str:
    """A core waits for a lock of `place`, squares a buffer there and releases a second lock of it."""
    there = f"{place[0]}{place[1]}"
    locks = "" if what == "memory" else f"{acquire('go')}\n{release('done', 3)}"
    access = (
        ""
        if what == "lock"
        else """%x = memref.load %data[%c0] : memref<4xi32>
        %y = arith.muli %x, %x : i32
        memref.store %y, %data[%c1] : memref<4xi32>"""
    )
    return module(
        device, *(tile(*each) for each in {at, place}), buffer("data", there, 4, [9, 0, 0, 0]),
        lock("go", there, 3, 1), lock("done", there, 4), core(f"{at[0]}{at[1]}", locks, access),
    )  # fmt: skip


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("side", REACHED)
def test_a_core_reaches_its_own_west_north_and_south_memory(side, device):
    assert bdforge.emulate(reader(REACHED[side], device=device)).buffers["data"].tolist() == [9, 81, 0, 0]


@pytest.mark.parametrize("what", ["memory", "lock"])
@pytest.mark.parametrize("side", BEYOND)
def test_other_tiles_are_out_of_reach(side, what):
    with pytest.raises(MlirError, match=r":\d+:\d+: .*\(2, 3\), which reaches its own memory and that of the core"):
        bdforge.emulate(reader(BEYOND[side], what=what))


@pytest.mark.parametrize("what", ["memory", "lock"])
def test_the_memtile_below_is_out_of_reach(what):
    with pytest.raises(MlirError, match=r"tile \(2, 1\) is used by the aie.core of tile \(2, 2\)"):
        bdforge.emulate(reader((2, 1), at=(2, 2), what=what))


def test_a_buffer_out_of_reach_is_seen_through_views_and_calls():
    text = reader((3, 3), what="lock").replace("aie.lock(%t33", "aie.lock(%t23")
    assert bdforge.emulate(text)
    part = "memref<2xi32, strided<[1], offset: 1>>"
    view = f"%v = memref.subview %data[1] [2] [1] : memref<4xi32> to {part}\n        aie.end"
    with pytest.raises(MlirError, match="reaches its own memory"):
        bdforge.emulate(text.replace("aie.end", view))


NUMBERS = {"south": 0, "west": 16, "north": 32, "own": 48}


def localized(text: str, numbers: dict[str, int]) -> str:
    """Locks as aie-localize-locks writes them: by their number in the core."""
    for name, number in numbers.items():
        text = text.replace(
            f"aie.use_lock(%{name}", f"%n{name} = arith.constant {number} : index aie.use_lock(%n{name}"
        )
    return text


@pytest.mark.parametrize("side", NUMBERS)
def test_locks_by_their_number_in_the_core_are_those_of_the_neighbours(side):
    first = NUMBERS[side]
    text = localized(reader(REACHED[side]), {"go": first + 3, "done": first + 4})
    assert text.count("arith.constant") == 4
    assert bdforge.emulate(text).buffers["data"].tolist() == [9, 81, 0, 0]


@pytest.mark.parametrize(
    ("number", "at", "message"),
    [
        (64, HERE, "lock 64 is outside 0 to 63"),
        (3, (2, 2), r"lock 3 would be one of the memtile \(2, 1\)"),
        (19, (0, 3), "outside"),
    ],
)
def test_numbers_of_locks_out_of_reach_are_refused(number, at, message):
    with pytest.raises(MlirError, match=message):
        bdforge.emulate(localized(reader(at, at=at), {"go": number}))
