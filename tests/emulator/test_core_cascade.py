"""Cascades between neighbouring cores: order, capacity, both forms of the text, diagnosis."""

from itertools import pairwise

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import CoreError, Deadlock
from bdforge.array.mlir import MlirError
from bdforge.devices.limits import CASCADE_FIFO_VALUES
from support.array_text import Task, acquire, bd, buffer, core, flow, lock, module, program, release, tile
from support.differences import same

RNG = np.random.default_rng(4)
VALUES = RNG.integers(-(2**31), 2**31, (6, 16)).astype(np.int32)
ROUNDS = len(VALUES)


def dense(array: np.ndarray) -> str:
    return f'dense<"0x{array.tobytes().hex().upper()}">'


def chain(places: list[tuple[int, int]], links: str, device: str) -> str:
    """Cores that pass vectors on; each adds its number to every lane. The first reads @first, the last writes @last."""
    at, kind = [f"{column}{row}" for column, row in places], "memref<6x16xi32>, vector<16xi32>"
    gets = [f"vector.load %first[%i, %c0] : {kind}", *["aie.get_cascade() : vector<16xi32>"] * (len(at) - 1)]
    puts = [*["aie.put_cascade(%w : vector<16xi32>)"] * (len(at) - 1), f"vector.store %w, %last[%i, %c0] : {kind}"]
    cores = [
        core(
            where, f"%v = {get}", f"%mine = arith.constant dense<{number}> : vector<16xi32>",
            "%w = arith.addi %v, %mine : vector<16xi32>", put, times=ROUNDS,
        )
        for number, (where, get, put) in enumerate(zip(at, gets, puts, strict=True))
    ]  # fmt: skip
    return module(
        device, *(tile(*place) for place in places), links,
        f'%first = aie.buffer(%t{at[0]}) {{sym_name = "first"}} : memref<6x16xi32> = {dense(VALUES)}',
        f'%last = aie.buffer(%t{at[-1]}) {{sym_name = "last"}} : memref<6x16xi32>', *cores,
    )  # fmt: skip


def flows(places: list[tuple[int, int]]) -> str:
    return "\n".join(f"aie.cascade_flow(%t{a}{b}, %t{c}{d})" for (a, b), (c, d) in pairwise(places))


ROUTES = {
    "south": [(1, 5), (1, 4), (1, 3), (1, 2)],
    "east": [(0, 2), (1, 2), (2, 2), (3, 2)],
    "corner": [(0, 4), (0, 3), (1, 3)],
    "two": [(2, 3), (3, 3)],
}


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 1}], ids=str)
def test_values_pass_through_a_chain_of_cores_in_order(route, device, options):
    places = ROUTES[route]
    result = bdforge.emulate(chain(places, flows(places), device), **options)
    same(result.buffers["last"], VALUES + sum(range(len(places))))


FACING = """aie.configure_cascade(%t04, North, South)
      aie.configure_cascade(%t03, North, East)
      aie.configure_cascade(%t13, West, South)"""


def test_the_lowered_form_joins_sides_that_face_each_other():
    route = ROUTES["corner"]
    for links in (FACING, f"{FACING}\n{flows(route)}"):
        same(bdforge.emulate(chain(route, links, "npu2")).buffers["last"], VALUES + 3)


def test_sides_that_do_not_face_each_other_are_no_cascade():
    links = FACING.replace("(%t03, North, East)", "(%t03, West, East)")
    message = r"core \(0, 4\): puts on the cascade, but no aie.cascade_flow leads away from core \(0, 4\) \(.*:\d+"
    with pytest.raises(CoreError, match=message):
        bdforge.emulate(chain(ROUTES["corner"], links, "npu2"))


TYPES = {
    "vector<16xi32>": "vector<64xi8>",
    "vector<64xi8>": "vector<32xbf16>",
    "vector<32xbf16>": "vector<16xf32>",
    "vector<8xi64>": "i512",
    "i512": "vector<4x4xi32>",
}


@pytest.mark.parametrize("put", TYPES)
def test_any_512_bits_may_pass(put):
    """Bits that go in as one type come out as another."""
    get, data = TYPES[put], np.arange(64, dtype=np.int8)
    convert = f"%p = vector.bitcast %v : vector<64xi8> to {put}"
    if put == "i512":
        convert = "%p = arith.constant 5 : i512"
    bytes_, vector = "memref<64xi8>", "vector<64xi8>"
    text = module(
        "npu2", tile(0, 3), tile(0, 2), "aie.cascade_flow(%t03, %t02)", buffer("y", "02", 64, element="i8"),
        f'%x = aie.buffer(%t03) {{sym_name = "x"}} : {bytes_} = {dense(data)}',
        core("03", f"%v = vector.load %x[%c0] : {bytes_}, {vector}", convert, *[f"aie.put_cascade(%p : {put})"] * 2),
        core(
            "02", f"%g = aie.get_cascade() : {get}", f"%v = aie.get_cascade() : {vector}",
            f"vector.store %v, %y[%c0] : {bytes_}, {vector}",
        ),
    )  # fmt: skip
    expected = np.frombuffer((5).to_bytes(64, "little"), np.int8) if put == "i512" else data
    same(bdforge.emulate(text).buffers["y"], expected)


def test_other_sizes_are_refused():
    text = chain(ROUTES["two"], flows(ROUTES["two"]), "npu2")
    body = "%s = arith.constant dense<0> : vector<8xi32>\naie.put_cascade(%s : vector<8xi32>)\naie.end"
    text = text.replace("aie.end", body, 1)
    with pytest.raises(CoreError, match=r"aie.put_cascade: a cascade moves 512 bits at a time; vector<8xi32> has 256"):
        bdforge.emulate(text)


MANY = """scf.while : () -> () {
      scf.condition(%yes)
    } do {
      aie.put_cascade(%v : vector<16xi32>)
      %n = memref.load %count[%c0] : memref<1xi32>
      %m = arith.addi %n, %one : i32
      memref.store %m, %count[%c0] : memref<1xi32>
      scf.yield
    }"""
AWAITED = """aie.runtime_sequence(%c: memref<16xi32>) {
    aiex.npu.dma_memcpy_nd(%c[0, 0, 0, 0][1, 1, 1, 16][0, 0, 0, 1]) {id = 0 : i64, metadata = @c} : memref<16xi32>
    aiex.npu.dma_wait {symbol = @c}
  }"""


def full(waits: str, sends: str = "true", behind: str = "", last: str = "", sequence: str = "") -> str:
    """Core (0, 3) fills a cascade, then does `behind`; core (0, 2) `waits`, gets a value, and then does `last`."""
    return module(
        "npu2", tile(0, 3), tile(0, 2), tile(0, 0), buffer("count", "03", 1), buffer("out", "02", 16),
        lock("go", "02", 0), lock("done", "02", 1), "aie.cascade_flow(%t03, %t02)", flow("02 DMA : 0", "00 DMA : 0"),
        "aie.shim_dma_allocation @c (%t00, S2MM, 0)", sequence,
        core(
            "03", "%one = arith.constant 1 : i32", "%v = arith.constant dense<3> : vector<16xi32>",
            f"%yes = arith.constant {sends}", MANY, behind,
        ),
        core("02", waits, "%w = aie.get_cascade() : vector<16xi32>", last),
        program("02", Task("MM2S", 0, ["\n".join([acquire("go", 2), bd("out", 16), release("done")])])),
    )  # fmt: skip


def test_a_full_cascade_stops_its_source():
    assert bdforge.emulate(full(acquire("go"))).buffers["count"][0] == 2 * CASCADE_FIFO_VALUES


def test_an_empty_cascade_is_named_in_a_deadlock():
    """The DMA waits for a core that waits for its neighbour, whose program has ended."""
    message = r"core \(0, 2\) waits for a value on the cascade from core \(0, 3\) \(.*:\d+:\d+\)"
    with pytest.raises(Deadlock, match=message):
        bdforge.emulate(full("", "false", last=release("go", 2), sequence=AWAITED), [np.zeros(16, np.int32)])


def test_a_circle_through_a_cascade_is_named():
    """Core (0, 3) fills the cascade before it releases what core (0, 2) waits for."""
    with pytest.raises(Deadlock) as caught:
        bdforge.emulate(full(acquire("go", 3), behind=release("go", 3), sequence=AWAITED), [np.zeros(16, np.int32)])
    text = str(caught.value)
    assert "core (0, 3) waits for core (0, 2) to take a value from the cascade" in text
    assert "core (0, 2) waits for lock go" in text
    assert "in a circle" in text


def test_a_cascade_does_not_jump():
    with pytest.raises(MlirError, match="no neighbours"):
        bdforge.emulate(chain([(0, 5), (0, 3)], flows([(0, 5), (0, 3)]), "npu2"))
