"""Memory and locks of neighbouring tiles: which a core reaches, and that they work."""

import numpy as np
import pytest

import bdforge
from bdforge.array.mlir import MlirError
from support.differences import same

HERE = (2, 3)
REACHED = {"own": (2, 3), "west": (1, 3), "north": (2, 4), "south": (2, 2)}
BEYOND = {"east": (3, 3), "further west": (0, 3), "further north": (2, 5), "diagonal": (1, 4)}


def reader(place: tuple[int, int], core: tuple[int, int] = HERE, device: str = "npu2", what: str = "both") -> str:
    """A core waits for a lock of `place`, squares a buffer there and releases a second lock of it."""
    lock = "aie.use_lock(%go, AcquireGreaterEqual, 1)\naie.use_lock(%done, Release, 3)" if what != "memory" else ""
    access = """%x = memref.load %data[%c0] : memref<4xi32>
        %y = arith.muli %x, %x : i32
        memref.store %y, %data[%c1] : memref<4xi32>"""
    home = f"aie.tile({place[0]}, {place[1]})"
    text = f"""module {{ aie.device({device}) {{
      %here = aie.tile({core[0]}, {core[1]})
      %there = {home}
      %data = aie.buffer(%there) {{sym_name = "data"}} : memref<4xi32> = dense<[9, 0, 0, 0]>
      %go = aie.lock(%there, 3) {{init = 1 : i32}}
      %done = aie.lock(%there, 4) {{init = 0 : i32}}
      aie.core(%here) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        {lock}
        {access if what != "lock" else ""}
        aie.end
      }}
    }} }}"""
    return text if place != core else text.replace(f"%there = {home}", "").replace("%there", "%here")


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
        bdforge.emulate(reader((2, 1), core=(2, 2), what=what))


def test_a_buffer_out_of_reach_is_seen_through_views_and_calls():
    text = reader((3, 3), what="lock").replace("%go = aie.lock(%there", "%go = aie.lock(%here")
    text = text.replace("%done = aie.lock(%there", "%done = aie.lock(%here")
    assert bdforge.emulate(text)
    part = "memref<2xi32, strided<[1], offset: 1>>"
    view = f"%v = memref.subview %data[1] [2] [1] : memref<4xi32> to {part}\n        aie.end"
    with pytest.raises(MlirError, match="reaches its own memory"):
        bdforge.emulate(text.replace("aie.end", view))


PINGPONG = """module {{ aie.device({device}) {{
  %a = aie.tile(1, 2)
  %b = aie.tile(1, 3)
  %data = aie.buffer(%a) {{sym_name = "data"}} : memref<2xi32>
  %sum = aie.buffer(%b) {{sym_name = "sum"}} : memref<8xi32>
  %free = aie.lock(%a, 0) {{init = 1 : i32, sym_name = "free"}}
  %full = aie.lock(%a, 1) {{init = 0 : i32, sym_name = "full"}}
  aie.core(%a) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {{
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      %w = arith.index_cast %i : index to i32
      %s = arith.muli %w, %w : i32
      memref.store %s, %data[%c0] : memref<2xi32>
      aie.use_lock(%full, Release, 1)
    }}
    aie.end
  }}
  aie.core(%b) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {{
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      %v = memref.load %data[%c0] : memref<2xi32>
      memref.store %v, %sum[%i] : memref<8xi32>
      aie.use_lock(%free, Release, 1)
    }}
    aie.end
  }}
}} }}"""


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_neighbours_hand_over_a_buffer_by_locks(device):
    for seed in range(3):
        result = bdforge.emulate(PINGPONG.format(device=device), schedule="random", seed=seed)
        same(result.buffers["sum"], np.arange(8) ** 2)


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
    ("number", "core", "message"),
    [
        (64, HERE, "lock 64 is outside 0 to 63"),
        (3, (2, 2), r"lock 3 would be one of the memtile \(2, 1\)"),
        (19, (0, 3), "outside"),
    ],
)
def test_numbers_of_locks_out_of_reach_are_refused(number, core, message):
    with pytest.raises(MlirError, match=message):
        bdforge.emulate(localized(reader(core, core=core), {"go": number}))
