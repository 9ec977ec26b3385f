"""A core's own stream ports: words between cores and DMAs without memory in between."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import CoreError, Deadlock, LoadError
from support.differences import same

RNG = np.random.default_rng(5)
WORDS = RNG.integers(-(2**31), 2**31, 24).astype(np.int32)


def dense(array: np.ndarray) -> str:
    return f'dense<"0x{array.tobytes().hex().upper()}">'


def pipeline(device: str = "npu2") -> str:
    """A DMA feeds a core's port; the core doubles and puts; a second core receives and stores."""
    return f"""module {{ aie.device({device}) {{
      %a = aie.tile(0, 2)
      %b = aie.tile(1, 3)
      %c = aie.tile(0, 4)
      %x = aie.buffer(%a) {{sym_name = "x"}} : memref<24xi32> = {dense(WORDS)}
      %y = aie.buffer(%c) {{sym_name = "y"}} : memref<24xi32>
      aie.flow(%a, DMA : 0, %b, Core : 0)
      aie.flow(%b, Core : 0, %c, Core : 0)
      aie.mem(%a) {{
        %0 = aie.dma_start(MM2S, 0, ^bd, ^end)
      ^bd:
        aie.dma_bd(%x : memref<24xi32>, 0, 24)
        aie.next_bd ^end
      ^end:
        aie.end
      }}
      aie.core(%b) {{
        %port = arith.constant 0 : i32
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %n = arith.constant 24 : index
        scf.for %i = %c0 to %n step %c1 {{
          %v = aie.get_stream(%port : i32) : i32
          %w = arith.addi %v, %v : i32
          aie.put_stream(%port : i32, %w : i32)
        }}
        aie.end
      }}
      aie.core(%c) {{
        %port = arith.constant 0 : i32
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %n = arith.constant 24 : index
        scf.for %i = %c0 to %n step %c1 {{
          %v = aie.get_stream(%port : i32) : i32
          memref.store %v, %y[%i] : memref<24xi32>
        }}
        aie.end
      }}
    }} }}"""


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_words_go_through_the_ports_of_cores(device):
    got = bdforge.emulate(pipeline(device)).buffers["y"]
    same(got, WORDS + WORDS)


def test_a_stream_of_cores_does_not_depend_on_the_schedule():
    for seed in range(3):
        got = bdforge.emulate(pipeline(), schedule="random", seed=seed).buffers["y"]
        same(got, WORDS + WORDS)


WIDE = """module { aie.device(npu2) {
  %a = aie.tile(0, 2)
  %b = aie.tile(0, 3)
  %c = aie.tile(0, 4)
  %f = aie.buffer(%b) {sym_name = "f"} : memref<1xf32>
  %w = aie.buffer(%b) {sym_name = "w"} : memref<8xi32>
  %d = aie.buffer(%c) {sym_name = "d"} : memref<5xi32>
  %full = aie.lock(%c, 0) {init = 0 : i32}
  aie.flow(%a, Core : 0, %b, Core : 0)
  aie.flow(%a, Core : 0, %c, DMA : 1)
  aie.core(%a) {
    %port = arith.constant 0 : i32
    %v = arith.constant 1.5 : f32
    %i = arith.constant -2 : i128
    aie.put_stream(%port : i32, %v : f32)
    aie.put_stream(%port : i32, %i : i128)
    aie.end
  }
  aie.core(%b) {
    %port = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %v = aie.get_stream(%port : i32) : f32
    memref.store %v, %f[%c0] : memref<1xf32>
    %i = aie.get_stream(%port : i32) : i128
    %one = arith.constant 96 : i128
    %s = arith.shrui %i, %one : i128
    %t = arith.trunci %s : i128 to i32
    %u = arith.trunci %i : i128 to i32
    memref.store %t, %w[%c0] : memref<8xi32>
    %c1 = arith.constant 1 : index
    memref.store %u, %w[%c1] : memref<8xi32>
    aie.end
  }
  aie.mem(%c) {
    %0 = aie.dma_start(S2MM, 1, ^bd, ^end)
  ^bd:
    aie.use_lock(%full, AcquireGreaterEqual, 1) {acq_en = false}
    aie.dma_bd(%d : memref<5xi32>, 0, 5)
    aie.use_lock(%full, Release, 1)
    aie.next_bd ^end
  ^end:
    aie.end
  }
} }"""


def test_a_core_sends_to_a_core_and_a_dma_at_once():
    """32 and 128 bits at a time; the low word travels first."""
    buffers = bdforge.emulate(WIDE.replace("(%full, Release, 1)", "(%full, Release, 0)")).buffers
    assert buffers["f"][0] == 1.5
    assert buffers["w"][:2].tolist() == [-1, -2]
    bits = np.float32(1.5).view(np.int32)
    assert buffers["d"].tolist() == [bits, -2, -1, -1, -1]


WAITS = """module {{ aie.device(npu2) {{
  %a = aie.tile(0, 2)
  %shim = aie.tile(0, 0)
  %y = aie.buffer(%a) : memref<4xi32>
  %full = aie.lock(%a, 0) {{init = 0 : i32, sym_name = "full"}}
  {flow}
  aie.flow(%a, DMA : 0, %shim, DMA : 0)
  aie.shim_dma_allocation @out (%shim, S2MM, 0)
  aie.core(%a) {{
    %port = arith.constant 0 : i32
    {stream}
    aie.use_lock(%full, Release, 1)
    aie.end
  }}
  aie.mem(%a) {{
    %0 = aie.dma_start(MM2S, 0, ^bd, ^end)
  ^bd:
    aie.use_lock(%full, AcquireGreaterEqual, 1)
    aie.dma_bd(%y : memref<4xi32>, 0, 4)
    aie.use_lock(%full, Release, 0)
    aie.next_bd ^end
  ^end:
    aie.end
  }}
  aie.runtime_sequence(%o: memref<4xi32>) {{
    aiex.npu.dma_memcpy_nd(%o[0, 0, 0, 0][1, 1, 1, 4][0, 0, 0, 1]) {{id = 0 : i64, metadata = @out}} : memref<4xi32>
    aiex.npu.dma_wait {{symbol = @out}}
  }}
}} }}"""

STUCK = {
    "no flow leads to it": ("", "%v = aie.get_stream(%port : i32) : i32"),
    "waits for 4 words from shim (0, 0) MM2S 0": (
        "aie.flow(%shim, DMA : 0, %a, Core : 0)",
        "%v = aie.get_stream(%port : i32) : i128",
    ),
    "none leads away from it": ("", "aie.put_stream(%port : i32, %port : i32)"),
}


@pytest.mark.parametrize("message", STUCK)
def test_a_core_that_waits_at_its_port_is_named_in_a_deadlock(message):
    flow, stream = STUCK[message]
    with pytest.raises(Deadlock) as caught:
        bdforge.emulate(WAITS.format(flow=flow, stream=stream), [np.zeros(4, np.int32)])
    waits = [line.strip() for line in str(caught.value).splitlines()]
    core = [line for line in waits if line.startswith(("core (0, 2) waits", "core (0, 2) has"))]
    assert core
    assert message in core[0]


def test_ports_that_cores_do_not_have_are_refused():
    stream = "%two = arith.constant 2 : i32\naie.put_stream(%two : i32, %port : i32)"
    with pytest.raises(CoreError, match=r"a core has 1 stream port each way; there is no 2 \(.*:\d+:\d+\)"):
        bdforge.emulate(WAITS.format(flow="", stream=stream), [np.zeros(4, np.int32)])
    with pytest.raises(LoadError, match=r":\d+:\d+: .*Core 0 to 0, not 1"):
        bdforge.emulate(WAITS.format(flow="aie.flow(%a, Core : 1, %a, DMA : 0)", stream=""), [np.zeros(4, np.int32)])
    with pytest.raises(LoadError, match=r":\d+:\d+: .*no slave port Core"):
        bdforge.emulate(WAITS.format(flow="aie.flow(%shim, Core : 0, %a, DMA : 0)", stream=""), [np.zeros(4, np.int32)])


@pytest.mark.parametrize(("kind", "value"), [("i8", "2"), ("i16", "2"), ("i64", "2"), ("f16", "2.0"), ("f64", "2.0")])
def test_a_core_stream_carries_words_only(kind, value):
    stream = f"%h = arith.constant {value} : {kind}\naie.put_stream(%port : i32, %h : {kind})"
    with pytest.raises(CoreError, match=rf"aie.put_stream: a core's stream carries i32, f32 or i128, not {kind}"):
        bdforge.emulate(WAITS.format(flow="", stream=stream), [np.zeros(4, np.int32)])
