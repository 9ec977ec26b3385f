"""Several configurations of one array in a run: what stays, what starts anew, and which device comes first."""

from types import SimpleNamespace

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock, DmaError, LoadError, Result
from bdforge.array.emulator import core_machine as machine
from bdforge.array.emulator.module_choice import choose
from bdforge.array.mlir import parse
from support.differences import same
from support.two_devices import module, run_of
from support.txn_vectors import encode_mlir

A = np.array([5, -3, 0, 2**31 - 1, 7, 8, 9, 10], np.int32)
BOTH = module(run_of("first", "a", "b"), run_of("second", "b", "c"))


def run(text: str, sequence: str | None = "whole", **options) -> tuple[np.ndarray, np.ndarray, Result]:
    b, c = np.zeros((2, 8), np.int32)
    result = bdforge.emulate(text, [A.copy(), b, c], sequence=sequence, **options)
    return b, c, result


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("options", [{}, *({"schedule": "random", "seed": seed} for seed in range(4))], ids=str)
def test_one_configuration_after_the_other_computes_on_shared_host_buffers(device, options):
    b, c, result = run(module(run_of("first", "a", "b"), run_of("second", "b", "c"), device=device), **options)
    same(b, A + np.int32(1))
    same(c, (A + np.int32(1)) * np.int32(3))
    assert result.warnings == ()


def test_cores_and_dmas_start_anew_with_every_configuration():
    """The cores count their starts in memory that no initial value overwrites."""
    steps = [run_of("first", "a", "b"), run_of("second", "b", "c"), run_of("first", "c", "b")]
    b, _, result = run(module(*steps))
    same(b, (A + np.int32(1)) * np.int32(3) + np.int32(1))
    assert result.buffers["count"] == [3]


def test_initial_values_are_written_on_every_load():
    _, _, result = run(module(run_of("first", "a", "b"), run_of("first", "b", "c")))
    assert result.buffers["fresh"] == [11]
    assert result.buffers["count"] == [2]


def test_buffers_of_all_configurations_can_be_inspected():
    _, c, result = run(BOTH)
    assert {"x", "first::x", "second::y"} <= result.buffers.keys()
    same(result.buffers["y"], c)
    same(result.buffers["first::y"], c)  # the same memory: what is there now


@pytest.mark.parametrize(
    ("loads", "buffers"),
    [
        ("a", {"x": "a"}),
        ("ab", {"a::x": "a", "b::x": "b", "x": "b"}),
        ("aba", {"a::x": "a", "b::x": "b", "x": "a"}),
        ("aa", {"x": "a"}),
        ("abc", {"a::x": "a", "b::x": "b", "c::x": "c", "x": "c"}),
    ],
)
def test_plain_names_are_of_the_device_that_was_loaded_last(loads: str, buffers: dict[str, str], monkeypatch):
    monkeypatch.setattr(machine, "LoadedDevice", lambda device, *_: SimpleNamespace(views=lambda: {"x": device.symbol}))
    first, *others = (SimpleNamespace(symbol=symbol) for symbol in loads)
    found = machine.Machine(None, first, {}, SimpleNamespace(restart=lambda: None))  # type: ignore[arg-type]
    for device in others:
        found.load(device)  # type: ignore[arg-type]
    same(found.buffers(), buffers)


def test_words_reconfigure_as_their_mlir_does():
    words = encode_mlir(BOTH, sequence="main::whole")
    b, c, _ = run(BOTH, instructions=words, sequence=None)
    same(b, A + np.int32(1))
    same(c, (A + np.int32(1)) * np.int32(3))


MODES = {
    "none": ("0 : i32", '"none"'), "write32": ("1 : i32",), "ctrlpkt": ("2 : i32", '"ctrlpkt"'),
}  # fmt: skip


@pytest.mark.parametrize(("mode", "spelled"), [(mode, one) for mode, all_ in MODES.items() for one in all_])
def test_however_a_device_is_loaded_it_is_the_same(mode: str, spelled: str):
    """The words of single writes and of control packets need machine code, so that they have none here."""
    text = module(run_of("first", "a", "b"), run_of("second", "b", "c"))
    head, tail = text.rsplit("aiex.configure @second", 1)
    close = tail.index("}") + 1
    text = f"{head}aiex.configure @second{tail[:close]} {{expand_mode = {spelled}}}{tail[close:]}"
    _, c, result = run(text)
    same(c, (A + np.int32(1)) * np.int32(3))
    if mode == "none":
        assert result.warnings == ()
        encode_mlir(text, sequence="main::whole")
        return
    assert result.warnings == (f"@second is loaded by {mode}: here at once, as a PDI is, in a PDI's time",)
    with pytest.raises(Exception, match=f"expand_mode = {mode} stands for what configures @second"):
        encode_mlir(text, sequence="main::whole")


def test_load_pdi_loads_the_device_that_it_names():
    steps = """
      aiex.npu.load_pdi {device_ref = @second}
      aiex.npu.write32 {address = 0x201000 : ui32, value = 77 : ui32}"""
    _, _, result = run(module(steps))
    assert result.buffers["fresh"] == [11]
    assert result.buffers["count"] == [77]
    assert result.buffers["y"][0] == 0


def test_words_of_two_loads_without_ids_are_ambiguous():
    """Their words are equal; with the text, or with ids, each is the device that it names."""
    steps = "\n aiex.npu.load_pdi {device_ref = @first}\n aiex.npu.load_pdi {device_ref = @second}"
    run(module(steps))
    text = module(steps.replace("first", "first, id = 3 : i32").replace("second", "second, id = 4 : i32"))
    run(text, instructions=encode_mlir(text, sequence="main::whole"), sequence=None)
    text = module(steps)
    with pytest.raises(LoadError, match="configurations @first, @second are all loaded as id 0; give each"):
        run(text, instructions=encode_mlir(text, sequence="main::whole"), sequence=None)


def test_a_load_without_a_known_device_is_an_error():
    with pytest.raises(LoadError, match=r"configuration of id 9 is no aie.device of this module \(<string>:4:7\)"):
        run(module("\n      aiex.npu.load_pdi {id = 9 : i32}"))


def test_a_sequence_that_others_call_is_not_the_one_to_start_with():
    """@whole is the only sequence that nobody calls; naming another starts with its device."""
    b = np.zeros(8, np.int32)
    bdforge.emulate(BOTH, [A, b, b])
    same(b, (A + np.int32(1)) * np.int32(3))
    bdforge.emulate(BOTH, [A, b], sequence="second::go")
    same(b, A * np.int32(3))
    bdforge.emulate(BOTH, [A, b], device="first")
    same(b, A + np.int32(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence": "go"}, "choose one of the runtime sequences main::whole, first::go, second::go"),
        ({"sequence": "third::go"}, "there is no runtime sequence 'third::go'; there is main::whole, first::go"),
        ({"device": "third"}, "there is no device 'third'; there is main, first, second"),
        ({"device": "first", "sequence": "whole"}, "there is no runtime sequence 'whole'; there is first::go"),
    ],
)
def test_a_choice_that_fits_nothing_or_too_much_is_named(options, message):
    with pytest.raises(LoadError, match=message):
        bdforge.emulate(BOTH, [A, A, A], **options)


DEVICE = "aie.device(npu2_1col) @{} {{\n{}\n}}\n"
SEQUENCE = "aie.runtime_sequence @{}() {{\n{}\n}}\n"
LOADS = {  # what the first of three sequences does, and which is started then
    "nothing": ("", None),
    "loads another device": ("aiex.npu.load_pdi {device_ref = @two}", None),
    "loads its own device": ("aiex.npu.load_pdi {device_ref = @one}", None),
    "configures another device": ("aiex.configure @two {\n}", None),
    "runs one of another device": ("aiex.configure @two {\naiex.run @go() : ()\n}", None),
    "runs one of its own": ("aiex.configure @one {\naiex.run @stay() : ()\n}", None),
    "runs one of each": (
        "aiex.configure @one {\naiex.run @stay() : ()\n}\naiex.configure @two {\naiex.run @go() : ()\n}", "one::go",
    ),
    "runs one of its own and loads another device": (
        "aiex.configure @one {\naiex.run @stay() : ()\n}\naiex.npu.load_pdi {device_ref = @two}", "one::go",
    ),
    "runs one of its own and loads its own device": (
        "aiex.configure @one {\naiex.run @stay() : ()\n}\naiex.npu.load_pdi {device_ref = @one}", None,
    ),
    "runs itself, and one of its own": (
        "aiex.configure @one {\naiex.run @stay() : ()\n}\naiex.configure @one {\naiex.run @go() : ()\n}", "two::go",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "started"), LOADS.values(), ids=LOADS)
def test_sequences_that_others_need_are_not_started_by_themselves(body: str, started: str | None):
    first = SEQUENCE.format("go", body) + SEQUENCE.format("stay", "")
    parsed = parse(DEVICE.format("one", first) + DEVICE.format("two", SEQUENCE.format("go", "")), "d.mlir")
    if started is None:
        with pytest.raises(LoadError, match="choose one of the runtime sequences one::go, one::stay, two::go"):
            choose(parsed, None, None, "d.mlir")
        return
    device, sequence = choose(parsed, None, None, "d.mlir")
    assert sequence is not None
    assert f"{device.symbol}::{sequence.symbol}" == started


GATE = """
    %gate = aie.lock(%{tile}, {id}) {{sym_name = "gate"{init}}}
    %out = aie.buffer(%m) {{sym_name = "gated", address = 64 : i32}} : memref<8xi32> = dense<6>
    aie.flow(%m, DMA : 1, %c, DMA : 1)
    %gated = aie.memtile_dma(%m) {{
      %0 = aie.dma_start(MM2S, 1, ^send, ^end)
    ^send:
      {acquire}
      aie.dma_bd(%out : memref<8xi32>, 0, 8)
      {release}
      aie.next_bd ^end
    ^end:
      aie.end
    }}"""


def waiting_for_the_gate(init: str) -> str:
    """A second configuration whose memtile sends only if lock 7 holds 5; what arrives at its core is awaited."""
    gate = GATE.format(
        tile="m", id=7, init=init, acquire="aie.use_lock(%gate, Acquire, 5)", release="aie.use_lock(%gate, Release, 9)"
    )
    await_core = """
      %t = aiex.dma_configure_task(%c, S2MM, 1) {
        aie.dma_bd(%y : memref<8xi32>, 0, 8) {bd_id = 8 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%t)
      aiex.dma_await_task(%t)
"""
    set_lock = "%left = aie.lock(%m, 7)\n    aie.runtime_sequence @leave() {\n      aiex.set_lock(%left, 5)\n    }"
    text = module(
        "\n      aiex.configure @first {\n        aiex.run @leave() : ()\n      }",
        "\n      aiex.configure @second {\n        aiex.run @wait() : ()\n      }",
        first=set_lock,
        second=f"{gate}\n    aie.runtime_sequence @wait() {{{await_core}    }}",
    )
    assert text.count("@wait") == 2
    return text


def test_a_memtile_lock_without_an_initial_value_keeps_its_value():
    _, _, result = run(waiting_for_the_gate(""))
    assert result.buffers["y"].tolist() == [6] * 8


def test_a_memtile_lock_with_an_initial_value_is_set_again():
    with pytest.raises(Deadlock, match=r"waits for lock gate \(7 of memtile \(0, 1\)\) = 5, which is 4"):
        run(waiting_for_the_gate(", init = 4 : i32"))


def test_locks_of_a_tile_with_a_core_start_at_zero():
    """@first leaves 3 in lock 9 of the core's tile, which the core of @second would need to be 3."""
    set_lock = "%left = aie.lock(%c, 9)\n    aie.runtime_sequence @leave() {\n      aiex.set_lock(%left, 3)\n    }"
    text = module(
        "\n      aiex.configure @first {\n        aiex.run @leave() : ()\n      }", run_of("second", "a", "b"),
        first=set_lock, second="    %left = aie.lock(%c, 9) {sym_name = \"left\"}",
    )  # fmt: skip
    head, tail = text.split("aie.device(npu2) @second")
    tail = tail.replace("cf.br ^bb1\n", "aie.use_lock(%left, AcquireGreaterEqual, 3)\n      cf.br ^bb1\n", 1)
    with pytest.raises(Deadlock, match=r"waits for lock left \(9 of core \(0, 2\)\) >= 3, which is 0"):
        run(f"{head}aie.device(npu2) @second{tail}")


def test_a_bd_of_the_configuration_before_is_not_valid():
    steps = [
        "\n      aiex.npu.load_pdi {device_ref = @first}", "\n      aiex.npu.load_pdi {device_ref = @second}",
        "\n      aiex.npu.push_queue(0, 0, MM2S : 0) {issue_token = false, repeat_count = 0 : i32, bd_id = 3 : i32}",
    ]  # fmt: skip
    written = "\n      aiex.npu.write32 {address = 0x1D07C : ui32, value = 0x2000000 : ui32}"
    with pytest.raises(DmaError, match="the BD is not valid; nobody has configured it"):
        run(module(steps[0], written, *steps[1:]))


def test_tasks_and_tokens_that_a_configuration_cuts_off_are_warnings():
    half = """
      aiex.configure @first {
        aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 8][0, 0, 0, 1]) {id = 1 : i64, metadata = @out} : memref<8xi32>
        aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 8][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<8xi32>
        aiex.npu.dma_memcpy_nd(%c[0, 0, 0, 0][1, 1, 1, 8][0, 0, 0, 1]) {id = 2 : i64, metadata = @out} : memref<8xi32>
      }"""
    _, _, result = run(module(half, run_of("second", "a", "b")))
    assert result.warnings == (
        "shim (0, 0) S2MM 0 had 1 tasks left at a reconfiguration",
        "1 token of S2MM 0 of tile (0, 0) nobody awaited, at a reconfiguration",
    )
