"""`verify`, `lower` with `insts`, and `emulate` take the same texts and refuse the same: one rule judges each limit."""

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.core_machine import Machine
from bdforge.array.emulator.errors import EmulationError, LoadError
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.scheduler import Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.emulator.verification import check_device, verify_design
from bdforge.array.images.image_build import program_of
from bdforge.array.lower import configuration
from bdforge.array.mlir import MlirError, parse, parsed
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.txn.lower import lower
from bdforge.devices.txn_format.codec import TxnError, encode
from support.built_designs import ROOT
from support.txn_vectors import STREAM_VECTORS

_FILES = sorted(path for folder in ("tests", "examples", "docs") for path in (ROOT / folder).rglob("*.mlir"))
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in _FILES} | {
    name: vector.mlir for name, vector in STREAM_VECTORS.items()
}

HANGING = {"npu1_rtp_and_raw", "npu2_rtp_and_raw"}
"""Register writes and waits for tokens that nobody sends: they are taken, and verify tells that they would not end."""


class _AnyKernel(dict):
    """Kernels of every name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


def verified(text: str, file: str) -> None:
    if faults := verify_design(text, file).faults:
        raise LoadError(faults[0])


def lowered(text: str, file: str) -> None:
    module = parsed(text, file)
    for device in devices(module):
        check_device(device)
        configuration(device, program_of, Strictness())
    encoded(module)


def loaded(text: str, file: str) -> None:
    """What a run does before anything moves."""
    module = parsed(text, file)
    for device in devices(module):
        Machine(module, device, _AnyKernel(), Array(device.device, HostBuffers(), Scheduler(), Strictness()))
    encoded(module)


def devices(module: ModuleOp) -> list[DeviceOp]:
    return [op for op in module.walk() if isinstance(op, DeviceOp)]


def encoded(module: ModuleOp) -> None:
    for op in module.walk():
        if isinstance(op, RuntimeSequenceOp):
            device = op.parent_op()
            assert isinstance(device, DeviceOp)
            encode(lower(op, policy=Strictness()), device.device)


def refused(verb: Callable[[str, str], None], text: str, file: str = "d.mlir") -> str:
    """Why a verb refuses a text; "" where it takes it."""
    try:
        verb(text, file)
    except (MlirError, EmulationError, TxnError) as error:
        return str(error)
    return ""


def verdicts(text: str, file: str = "d.mlir") -> dict[str, str]:
    return {verb.__name__: refused(verb, text, file) for verb in (verified, lowered, loaded)}


TILES = "\n".join(f"%t{c}{r} = aie.tile({c}, {r})" for c in (0, 1) for r in range(4))
DMA = """%b = aie.buffer(%t01) : memref<64xi32>
%l = aie.lock(%t01, 0)
aie.memtile_dma(%t01) {{
  aie.dma_start(MM2S, {channel}, ^bd, ^end{repeat})
^bd:
  {acquire}
  aie.dma_bd(%b : memref<64xi32>, 0, 64)
  {release}
  aie.next_bd ^bd
^end:
  aie.end
}}"""
GOOD = {
    "channel": 0, "repeat": "", "acquire": "aie.use_lock(%l, AcquireGreaterEqual, 1)",
    "release": "aie.use_lock(%l, Release, 1)",
}  # fmt: skip


def design(body: str) -> str:
    return f"aie.device(npu2) {{\n{TILES}\n{body}\n}}\n"


def dma(**changes) -> str:
    return design(DMA.format(**GOOD | changes))


def cascade(source: str, *targets: str) -> str:
    return design("\n".join(f"aie.cascade_flow(%t{source}, %t{target})" for target in targets))


def sequence(line: str) -> str:
    return design(f"aie.runtime_sequence() {{\n{line}\n}}")


REFUSED = {
    "a cascade to the north": (cascade("02", "03"), "aie.cascade_flow: a cascade runs to the core south or east"),
    "a cascade to the west": (cascade("12", "02"), "aie.cascade_flow: a cascade runs to the core south or east"),
    "a cascade to two cores": (
        cascade("03", "02", "13"), "core (0, 3) has one cascade output, which leads to core (0, 2)"
    ),
    "two cascades to a core": (
        design("aie.cascade_flow(%t13, %t12)\naie.cascade_flow(%t02, %t12)"),
        "core (1, 2) has one cascade input, which comes from core (1, 3)",
    ),
    "256 repeats": (dma(repeat=", repeat_count = 256"), "repeat_count = 256 is outside 0 to 255"),
    "-1 repeats": (dma(repeat=", repeat_count = -1"), "repeat_count = -1 is outside 0 to 255"),
    "a channel beyond": (dma(channel=6), "MM2S: channel = 6 is outside 0 to 5"),
    "no release": (dma(release=""), "it acquires a lock and releases none"),
    "a wide acquire": (dma(acquire="aie.use_lock(%l, AcquireGreaterEqual, 65)"), "acquire_value = -65 does not fit"),
    "no ELF": (design('aie.core(%t02) { aie.end } {elf_file = "none.elf"}'), "elf_file none.elf: No such file"),
    "a lock's first value": (design("aie.lock(%t02, 0) {init = 64 : i32}"), "lock value = 64 is outside 0 to 63"),
    "a controller id of two tiles": (
        design("").replace(
            "aie.tile(1, 3)", "aie.tile(1, 3) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}"
        ), "tiles (1, 2) and (1, 3) share controller id 27",
    ),
    "a buffer beyond memory": (design("aie.buffer(%t02) : memref<20000xi32>"), "beyond the tile's 65536 bytes"),
    "a fifth task of a channel": (
        dma().replace("aie.dma_start(MM2S, 0, ^bd, ^end)", "\n".join(
            f"{label}aie.dma_start(MM2S, 0, ^bd, ^{after})" for label, after in
            [("", "n1"), *((f"^n{i}:\n", f"n{i + 1}") for i in range(1, 4)), ("^n4:\n", "end")]
        )), "MM2S 0 gets more than 4 tasks",
    ),
    "a BD of the other half": (
        dma(channel=1).replace("0, 64)", "0, 64) {bd_id = 3 : i32}"), "memtile (0, 1) MM2S 1 cannot use BD 3"
    ),
    "a push of BD 99": (
        sequence(
            "aiex.npu.push_queue(0, 0, MM2S : 0) {issue_token = false, repeat_count = 0 : i32, bd_id = 99 : i32}"
        ), "BD 99",
    ),
}  # fmt: skip
TAKEN = {
    "a cascade south and one east": design("aie.cascade_flow(%t03, %t02)\naie.cascade_flow(%t02, %t12)"),
    "255 repeats": dma(repeat=", repeat_count = 255"),
    "two cores on a tile": design("aie.core(%t02) { aie.end }\naie.core(%t02) { aie.end }"),
    "buffers that share bytes": design(
        "aie.buffer(%t01) {address = 0 : i32} : memref<8xi32>\naie.buffer(%t01) {address = 4 : i32} : memref<8xi32>"
    ),
    "a shim's own program": design("""%e = aie.external_buffer {address = 64 : i64} : memref<8xi32>
aie.flow(%t00, DMA : 0, %t01, DMA : 0)
aie.shim_dma(%t00) {
  aie.dma_start(MM2S, 0, ^bd, ^end)
^bd:
  aie.dma_bd(%e : memref<8xi32>, 0, 8)
  aie.next_bd ^end
^end:
  aie.end
}"""),
    "a preemption of an unknown level": sequence("aiex.npu.preempt {level = 4 : ui8}"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_all_refuse_in_the_same_words(name: str):
    text, words = REFUSED[name]
    found = verdicts(text)
    assert all(words in why for why in found.values()), found


@pytest.mark.parametrize("name", TAKEN)
def test_all_take_what_mlir_aie_takes(name: str):
    assert verdicts(TAKEN[name]) == {"verified": "", "lowered": "", "loaded": ""}


def test_of_two_cores_on_a_tile_the_last_runs():
    store = "memref.store %v, %b[%i] : memref<1xi32>"
    body = f"aie.core(%t02) {{{{ %i = arith.constant 0 : index %v = arith.constant {{}} : i32 {store} aie.end }}}}"
    text = design('%b = aie.buffer(%t02) {sym_name = "b"} : memref<1xi32>\n' + body.format(3) + "\n" + body.format(5))
    module = parse(text)
    (device,) = devices(module)
    machine = Machine(module, device, {}, Array(device.device, HostBuffers(), Scheduler(), Strictness()))
    machine.run([])
    assert machine.buffers()["b"].tolist() == [5]


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("name", TEXTS)
def test_all_agree_on_every_text_there_is(name: str):
    found = verdicts(TEXTS[name], str(ROOT / name))
    if name in HANGING:
        assert "never reaches the controller" in found.pop("verified")
    assert len({bool(why) for why in found.values()}) == 1, found


@pytest.mark.parametrize("judge", [verified, lowered, loaded])
def test_locks_of_cores_are_judged_alike(judge):
    core = "aie.core(%t) { aie.use_lock(%l, AcquireGreaterEqual, VALUE) aie.end }"
    text = f"aie.device(npu2) {{\n%t = aie.tile(0, 2)\n%l = aie.lock(%t, 0)\n{core}\n}}"
    judge(text.replace("VALUE", "1"), "one.mlir")
    with pytest.raises(LoadError, match="AcquireGreaterEqual of 0"):
        judge(text.replace("VALUE", "0"), "zero.mlir")
