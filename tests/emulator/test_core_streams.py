"""A core's own stream ports: words between cores and DMAs without memory in between."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import CoreError, Deadlock, LoadError
from support.array_text import Task, acquire, bd, buffer, core, flow, lock, module, program, release, tile
from support.differences import same

RNG = np.random.default_rng(5)
WORDS = RNG.integers(-(2**31), 2**31, 24).astype(np.int32)


PORT = "%port = arith.constant 0 : i32"


def get(name: str, kind: str = "i32") -> str:
    return f"%{name} = aie.get_stream(%port : i32) : {kind}"


def put(name: str, kind: str = "i32") -> str:
    return f"aie.put_stream(%port : i32, %{name} : {kind})"


def pipeline(device: str = "npu2") -> str:
    """A DMA feeds a core's port; the core doubles and puts; a second core receives and stores."""
    return module(
        device, tile(0, 2), tile(1, 3), tile(0, 4), buffer("x", "02", 24, WORDS), buffer("y", "04", 24),
        flow("02 DMA : 0", "13 Core : 0"), flow("13 Core : 0", "04 Core : 0"),
        program("02", Task("MM2S", 0, [bd("x", 24)])),
        core("13", PORT, get("v"), "%w = arith.addi %v, %v : i32", put("w"), times=24),
        core("04", PORT, get("v"), "memref.store %v, %y[%i] : memref<24xi32>", times=24),
    )  # fmt: skip


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("options", [{}, *({"schedule": "random", "seed": seed} for seed in range(3))], ids=str)
def test_words_go_through_the_ports_of_cores(device, options):
    got = bdforge.emulate(pipeline(device), **options).buffers["y"]
    same(got, WORDS + WORDS)


WIDE = module(
    "npu2", tile(0, 2), tile(0, 3), tile(0, 4), buffer("f", "03", 1, element="f32"), buffer("w", "03", 8),
    buffer("d", "04", 5), flow("02 Core : 0", "03 Core : 0"), flow("02 Core : 0", "04 DMA : 1"),
    core(
        "02", PORT, "%v = arith.constant 1.5 : f32", "%i = arith.constant -2 : i128", put("v", "f32"), put("i", "i128"),
    ),
    core(
        "03", PORT, get("v", "f32"), "memref.store %v, %f[%c0] : memref<1xf32>", get("i", "i128"),
        "%high = arith.constant 96 : i128", "%s = arith.shrui %i, %high : i128", "%t = arith.trunci %s : i128 to i32",
        "%u = arith.trunci %i : i128 to i32", "memref.store %t, %w[%c0] : memref<8xi32>",
        "memref.store %u, %w[%c1] : memref<8xi32>",
    ),
    program("04", Task("S2MM", 1, [bd("d", 5)])),
)  # fmt: skip


def test_a_core_sends_to_a_core_and_a_dma_at_once():
    """32 and 128 bits at a time; the low word travels first."""
    buffers = bdforge.emulate(WIDE).buffers
    assert buffers["f"][0] == 1.5
    assert buffers["w"][:2].tolist() == [-1, -2]
    bits = np.float32(1.5).view(np.int32)
    assert buffers["d"].tolist() == [bits, -2, -1, -1, -1]


SEQUENCE = """aie.runtime_sequence(%o: memref<4xi32>) {
    aiex.npu.dma_memcpy_nd(%o[0, 0, 0, 0][1, 1, 1, 4][0, 0, 0, 1]) {id = 0 : i64, metadata = @out} : memref<4xi32>
    aiex.npu.dma_wait {symbol = @out}
  }"""


def awaited(stream: str, way: str = "") -> bdforge.Result:
    """A run whose host waits for what a core sends when it has used its port."""
    text = module(
        "npu2", tile(0, 2), tile(0, 0), buffer("y", "02", 4), lock("full", "02", 0), way,
        flow("02 DMA : 0", "00 DMA : 0"), "aie.shim_dma_allocation @out (%t00, S2MM, 0)",
        core("02", PORT, stream, release("full")),
        program("02", Task("MM2S", 0, ["\n".join([acquire("full"), bd("y", 4)])])), SEQUENCE,
    )  # fmt: skip
    return bdforge.emulate(text, [np.zeros(4, np.int32)])


STUCK = {
    "no flow leads to it": ("", get("v")),
    "waits for 4 words from shim (0, 0) MM2S 0": (flow("00 DMA : 0", "02 Core : 0"), get("v", "i128")),
    "none leads away from it": ("", put("port")),
}


@pytest.mark.parametrize("message", STUCK)
def test_a_core_that_waits_at_its_port_is_named_in_a_deadlock(message):
    way, stream = STUCK[message]
    with pytest.raises(Deadlock) as caught:
        awaited(stream, way)
    waits = [line.strip() for line in str(caught.value).splitlines()]
    of_core = [line for line in waits if line.startswith(("core (0, 2) waits", "core (0, 2) has"))]
    assert of_core
    assert message in of_core[0]


def test_ports_that_cores_do_not_have_are_refused():
    with pytest.raises(CoreError, match=r"a core has 1 stream port each way; there is no 2 \(.*:\d+:\d+\)"):
        awaited("%two = arith.constant 2 : i32\naie.put_stream(%two : i32, %port : i32)")
    for start, message in (("02 Core : 1", "Core 0 to 0, not 1"), ("00 Core : 0", "no slave port Core")):
        with pytest.raises(LoadError, match=rf":\d+:\d+: .*{message}"):
            awaited("", flow(start, "02 DMA : 0"))


@pytest.mark.parametrize(("kind", "value"), [("i8", "2"), ("i16", "2"), ("i64", "2"), ("f16", "2.0"), ("f64", "2.0")])
def test_a_core_stream_carries_words_only(kind, value):
    with pytest.raises(CoreError, match=rf"aie.put_stream: a core's stream carries i32, f32 or i128, not {kind}"):
        awaited(f"%h = arith.constant {value} : {kind}\n{put('h', kind)}")
