"""Cascades between neighbouring cores: order, capacity, both forms of the text, diagnosis."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import CoreError, Deadlock, LoadError
from bdforge.array.mlir import MlirError
from bdforge.devices.limits import CASCADE_FIFO_VALUES
from support.differences import same

RNG = np.random.default_rng(4)
VALUES = RNG.integers(-(2**31), 2**31, (6, 16)).astype(np.int32)
ROUNDS = len(VALUES)


def dense(array: np.ndarray) -> str:
    return f'dense<"0x{array.tobytes().hex().upper()}">'


def chain(places: list[tuple[int, int]], links: str, device: str) -> str:
    """Cores that pass vectors on; each adds its number to every lane. The first reads @first, the last writes @last."""
    tiles = "\n".join(f"%t{k} = aie.tile({c}, {r})" for k, (c, r) in enumerate(places))
    last = len(places) - 1
    cores = []
    for k in range(len(places)):
        read = "vector.load %first[%i, %c0] : memref<6x16xi32>, vector<16xi32>"
        get = read if k == 0 else "aie.get_cascade() : vector<16xi32>"
        put = "vector.store %w, %last[%i, %c0] : memref<6x16xi32>, vector<16xi32>"
        cores.append(f"""aie.core(%t{k}) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %n = arith.constant {ROUNDS} : index
          %mine = arith.constant dense<{k}> : vector<16xi32>
          scf.for %i = %c0 to %n step %c1 {{
            %v = {get}
            %w = arith.addi %v, %mine : vector<16xi32>
            {put if k == last else "aie.put_cascade(%w : vector<16xi32>)"}
          }}
          aie.end
        }}""")
    return f"""module {{ aie.device({device}) {{
      {tiles}
      %first = aie.buffer(%t0) {{sym_name = "first"}} : memref<6x16xi32> = {dense(VALUES)}
      %last = aie.buffer(%t{last}) {{sym_name = "last"}} : memref<6x16xi32>
      {links}
      {chr(10).join(cores)}
    }} }}"""


def flows(count: int) -> str:
    return "\n".join(f"aie.cascade_flow(%t{k}, %t{k + 1})" for k in range(count - 1))


ROUTES = {
    "south": [(1, 5), (1, 4), (1, 3), (1, 2)],
    "east": [(0, 2), (1, 2), (2, 2), (3, 2)],
    "corner": [(0, 4), (0, 3), (1, 3)],
    "two": [(2, 3), (3, 3)],
}


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("route", ROUTES)
def test_values_pass_through_a_chain_of_cores_in_order(route, device):
    places = ROUTES[route]
    result = bdforge.emulate(chain(places, flows(len(places)), device))
    same(result.buffers["last"], VALUES + sum(range(len(places))))


def test_a_chain_does_not_depend_on_the_schedule():
    text = chain(ROUTES["south"], flows(4), "npu2")
    for seed in range(3):
        result = bdforge.emulate(text, schedule="random", seed=seed)
        same(result.buffers["last"], VALUES + 6)


def test_the_lowered_form_joins_sides_that_face_each_other():
    links = """aie.configure_cascade(%t0, North, South)
      aie.configure_cascade(%t1, North, East)
      aie.configure_cascade(%t2, West, South)"""
    result = bdforge.emulate(chain(ROUTES["corner"], links, "npu2"))
    same(result.buffers["last"], VALUES + 3)
    both = f"{links}\n{flows(3)}"
    same(bdforge.emulate(chain(ROUTES["corner"], both, "npu2")).buffers["last"], VALUES + 3)


def test_sides_that_do_not_face_each_other_are_no_cascade():
    links = """aie.configure_cascade(%t0, North, South)
      aie.configure_cascade(%t1, West, East)
      aie.configure_cascade(%t2, West, South)"""
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
    text = f"""module {{ aie.device(npu2) {{
      %a = aie.tile(0, 3)
      %b = aie.tile(0, 2)
      %x = aie.buffer(%a) {{sym_name = "x"}} : memref<64xi8> = {dense(data)}
      %y = aie.buffer(%b) {{sym_name = "y"}} : memref<64xi8>
      aie.cascade_flow(%a, %b)
      aie.core(%a) {{
        %c0 = arith.constant 0 : index
        %v = vector.load %x[%c0] : memref<64xi8>, vector<64xi8>
        {convert}
        aie.put_cascade(%p : {put})
        aie.put_cascade(%p : {put})
        aie.end
      }}
      aie.core(%b) {{
        %c0 = arith.constant 0 : index
        %g = aie.get_cascade() : {get}
        %v = aie.get_cascade() : vector<64xi8>
        vector.store %v, %y[%c0] : memref<64xi8>, vector<64xi8>
        aie.end
      }}
    }} }}"""
    expected = np.frombuffer((5).to_bytes(64, "little"), np.int8) if put == "i512" else data
    same(bdforge.emulate(text).buffers["y"], expected)


def test_other_sizes_are_refused():
    text = chain(ROUTES["two"], flows(2), "npu2")
    body = "%s = arith.constant dense<0> : vector<8xi32>\naie.put_cascade(%s : vector<8xi32>)\naie.end"
    text = text.replace("aie.end", body, 1)
    with pytest.raises(CoreError, match=r"aie.put_cascade: a cascade moves 512 bits at a time; vector<8xi32> has 256"):
        bdforge.emulate(text)


FULL = """module { aie.device(npu2) {
  %a = aie.tile(0, 3)
  %b = aie.tile(0, 2)
  %shim = aie.tile(0, 0)
  %count = aie.buffer(%a) {sym_name = "count"} : memref<1xi32>
  %go = aie.lock(%b, 0) {init = 0 : i32, sym_name = "go"}
  %done = aie.lock(%b, 1) {init = 0 : i32, sym_name = "done"}
  %out = aie.buffer(%b) {sym_name = "out"} : memref<16xi32>
  aie.cascade_flow(%a, %b)
  aie.flow(%b, DMA : 0, %shim, DMA : 0)
  aie.shim_dma_allocation @c (%shim, S2MM, 0)
  aie.core(%a) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %v = arith.constant dense<3> : vector<16xi32>
    %yes = arith.constant true
    scf.while : () -> () {
      scf.condition(%yes)
    } do {
      aie.put_cascade(%v : vector<16xi32>)
      %n = memref.load %count[%c0] : memref<1xi32>
      %m = arith.addi %n, %one : i32
      memref.store %m, %count[%c0] : memref<1xi32>
      scf.yield
    }
    aie.end
  }
  aie.core(%b) {
    aie.use_lock(%go, AcquireGreaterEqual, 1)
    %w = aie.get_cascade() : vector<16xi32>
    aie.end
  }
  aie.mem(%b) {
    %0 = aie.dma_start(MM2S, 0, ^bd, ^end)
  ^bd:
    aie.use_lock(%go, AcquireGreaterEqual, 2)
    aie.dma_bd(%out : memref<16xi32>, 0, 16)
    aie.use_lock(%done, Release, 1)
    aie.next_bd ^end
  ^end:
    aie.end
  }
SEQUENCE
} }"""


def test_a_full_cascade_stops_its_source():
    text = FULL.replace("SEQUENCE", "")
    assert bdforge.emulate(text).buffers["count"][0] == 2 * CASCADE_FIFO_VALUES


WAITING = """aie.runtime_sequence(%c: memref<16xi32>) {
    aiex.npu.dma_memcpy_nd(%c[0, 0, 0, 0][1, 1, 1, 16][0, 0, 0, 1]) {id = 0 : i64, metadata = @c} : memref<16xi32>
    aiex.npu.dma_wait {symbol = @c}
  }"""


def test_an_empty_cascade_is_named_in_a_deadlock():
    """The DMA waits for a core that waits for its neighbour, whose program has ended."""
    text = FULL.replace("SEQUENCE", WAITING)
    text = text.replace("aie.use_lock(%go, AcquireGreaterEqual, 1)\n    %w", "%w")
    text = text.replace("arith.constant true", "arith.constant false")
    text = text.replace("    aie.end\n  }\n  aie.mem", "    aie.use_lock(%go, Release, 2)\n    aie.end\n  }\n  aie.mem")
    message = r"core \(0, 2\) waits for a value on the cascade from core \(0, 3\) \(.*:\d+:\d+\)"
    with pytest.raises(Deadlock, match=message):
        bdforge.emulate(text, [np.zeros(16, np.int32)])


def test_a_circle_through_a_cascade_is_named():
    """Core (0, 3) fills the cascade before it releases what core (0, 2) waits for."""
    text = FULL.replace("SEQUENCE", WAITING)
    text = text.replace("AcquireGreaterEqual, 1)\n    %w", "AcquireGreaterEqual, 3)\n    %w").replace(
        "    aie.end\n  }\n  aie.core(%b)", "    aie.use_lock(%go, Release, 3)\n    aie.end\n  }\n  aie.core(%b)"
    )
    with pytest.raises(Deadlock) as caught:
        bdforge.emulate(text, [np.zeros(16, np.int32)])
    text = str(caught.value)
    assert "core (0, 3) waits for core (0, 2) to take a value from the cascade" in text
    assert "core (0, 2) waits for lock go" in text
    assert "in a circle" in text


@pytest.mark.parametrize(("places", "way"), [([(1, 2), (1, 3)], "north"), ([(1, 2), (0, 2)], "west")])
def test_a_cascade_runs_south_or_east(places, way):
    with pytest.raises(LoadError, match=rf":\d+:\d+: .*a cascade runs to the core south or east .* is {way}"):
        bdforge.emulate(chain(places, flows(2), "npu2"))


def test_a_core_has_one_cascade_each_way():
    fork = chain([(0, 3), (0, 2), (1, 3)], "aie.cascade_flow(%t0, %t1)\naie.cascade_flow(%t0, %t2)", "npu2")
    with pytest.raises(LoadError, match=r"core \(0, 3\) has one cascade output, which leads to core \(0, 2\)"):
        bdforge.emulate(fork)
    join = chain([(1, 3), (0, 2), (1, 2)], "aie.cascade_flow(%t0, %t2)\naie.cascade_flow(%t1, %t2)", "npu2")
    with pytest.raises(LoadError, match=r"core \(1, 2\) has one cascade input, which comes from core \(1, 3\)"):
        bdforge.emulate(join)


def test_a_cascade_does_not_jump():
    with pytest.raises(MlirError, match="no neighbours"):
        bdforge.emulate(chain([(0, 5), (0, 3)], flows(2), "npu2"))
