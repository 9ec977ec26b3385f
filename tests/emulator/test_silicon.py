"""What silicon punishes or mlir-aie reads otherwise: refused or warned about by name, each with its switch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import DmaError, PoisonError, Result
from bdforge.array.emulator.strictness import CAUTIONS, NAMES
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import parse
from bdforge.array.txn.lower import lower_module
from bdforge.devices import mlir_device_named
from bdforge.devices.registers import CONTROL_PACKET, address
from bdforge.devices.txn_format.codec import encode
from support.array_text import Task, acquire, bd, buffer, flow, lock, module, packet_flow, program, release, tile
from support.register_designs import column, push, sync, write32, writebd
from support.small_designs import loopback

A = np.random.default_rng(11).integers(1, 2**31, 64, np.int32)
SHIM_BD = 0x1D000
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Caution:
    """A design that gets a warning, a design next to it that gets none, and the warning."""

    text: str
    harmless: str
    message: str
    arguments: Sequence[int] = (64, 64)


def run(text: str, sizes: Sequence[int], permissive: Sequence[str] = ()) -> Result:
    return bdforge.emulate(text, [np.resize(A, n) if not i else np.zeros(n, np.int32) for i, n in enumerate(sizes)],
                           permissive=permissive)  # fmt: skip


def memcpy(array: str, channel: str, bd: int, extra: str = "") -> str:
    return (
        f"aiex.npu.dma_memcpy_nd(%{array}[0, 0, 0, 0][1, 1, 1, 64][0, 0, 0, 1]) "
        f"{{id = {bd} : i64, metadata = @{channel}{extra}}} : memref<64xi32>"
    )


COPY = [
    memcpy("b", "out", 1, ", issue_token = true"), memcpy("a", "in", 0), "aiex.npu.dma_wait {symbol = @out}",
]  # fmt: skip


def copy(*between: str) -> str:
    """A copy through the memtile; `between` stands after its input BD was written and before it is pushed again."""
    again = [sync((0, 0), 0), *between, push((0, 0), "S2MM : 0", 1, token=True), push((0, 0), "MM2S : 0", 0)]
    return looped(*COPY[:2], *again, "aiex.npu.dma_wait {symbol = @out}")


def access(mask: int, value: int, word: int = 5) -> str:
    return write32(SHIM_BD + 4 * word, value, mask, ", column = 0 : i32, row = 0 : i32")


def tokens(count: int) -> str:
    """Steps of a token each way, of which one is read at once and the other at the end."""
    lines = []
    for _ in range(count):
        lines += [*COPY[:2], sync((0, 0), 1)]
    text = "\n".join([*lines, *["aiex.npu.dma_wait {symbol = @out}"] * count])
    return loopback(32, 2, sequence=text.replace("metadata = @in", "metadata = @in, issue_token = true"))


DROPPED = "%t = aiex.dma_configure_task_for @in {{\naie.dma_bd(%a : memref<64xi32>, 0, 32, [{}])\naie.end\n}}"
OFFSET = (
    "%v = memref.subview %a[{0}] [8] [1] : memref<64xi32> to memref<8xi32, strided<[1], offset: {0}>>\n"
    "%w = memref.reinterpret_cast %v to offset: [0], sizes: [8], strides: [1] : "
    "memref<8xi32, strided<[1], offset: {0}>> to memref<8xi32>"
)


def looped(*lines: str) -> str:
    return loopback(32, 2, sequence="\n".join(lines))


def burst(size: int) -> str:
    return looped(*COPY).replace("id = 0 : i64", f"id = 0 : i64, burst_length = {size} : i64")


def join(shared: bool) -> str:
    """Two cores' buffers into one of a memtile, by one pair of locks or by two."""
    parts = [tile(0, 1), tile(0, 2), tile(0, 3), buffer("all", "01", 8)]
    parts += [lock(f"free{i}", "01", 2 * i, 2) for i in range(2)] + [
        lock(f"full{i}", "01", 2 * i + 1) for i in range(2)
    ]
    fills = []
    for i in range(2):
        at, pair = f"0{i + 2}", 0 if shared else i
        parts += [buffer(f"part{i}", at, 4), flow(f"{at} DMA : 0", f"01 DMA : {i}")]
        parts.append(program(at, Task("MM2S", 0, [bd(f"part{i}", 4)])))
        fills.append(Task("S2MM", i, ["\n".join([
            acquire(f"free{pair}"), bd("all", 8, f"{4 * i}, 4"), release(f"full{pair}")])]))  # fmt: skip
    return module("npu2_1col", *parts, program("01", *fills))


def control(*columns_: int) -> str:
    """A memtile's DMA sends a control packet that writes a lock of the core tile above, in each column."""
    parts = []
    for at in columns_:
        words = [CONTROL_PACKET.encode({"offset": 0x1F000, "operation": 0, "words": 0})[0], 1]
        words[0] |= 0 if words[0].bit_count() % 2 else 1 << 31
        parts += [
            tile(at, 1), tile(at, 2), buffer(f"c{at}", f"{at}1", 2, np.array(words, np.uint32).view(np.int32)),
            packet_flow(2, f"{at}1 DMA : 0", f"{at}2 TileControl : 0", keep=True),
            program(f"{at}1", Task("MM2S", 0, [bd(f"c{at}", 2, packet=2)])),
        ]  # fmt: skip
    return module("npu2_2col", *parts)


def columns(width: int) -> str:
    """Eight columns pass their share on twice, with tokens of both rounds on their way at the first wait."""
    text = (ROOT / "examples/pass_through_8_columns.mlir").read_text()
    start, end = text.index("      %in0 ="), text.index("      aiex.npu.sync")
    again = re.sub(r"(in|out)(\d) =", r"\1\2b =", re.sub(r"start_task\(%(\w+)\)", r"start_task(%\1b)", text[start:end]))
    again = re.sub(r"bd_id = (\d)", lambda m: f"bd_id = {int(m[1]) + 2}", again)
    waits = [sync((column, 0), 0, columns=width) for column in range(0, 8, width)] * 2
    tail = "\n".join(
        f"      aiex.dma_free_task(%{k}{c}{b})" for c in range(8) for k in ("in", "out") for b in ("", "b")
    )
    return text[:end] + again + "\n".join(waits) + "\n" + tail + "\n    }\n  }\n}\n"


CASES = {
    "control-columns": Caution(control(0, 1), control(1), "control packets write to tiles of columns 0, 1;", ()),
    "dropped-stride": Caution(
        looped(DROPPED.format("<size = 32, stride = 2>")),
        looped(DROPPED.format("<size = 32, stride = 2>, <size = 1, stride = 1>, <size = 1, stride = 1>")),
        r"aie.dma_bd: the stride 2 of its innermost dimension is dropped",
    ),
    "shared-locks": Caution(
        join(True), join(False),
        r"memtile \(0, 1\): S2MM 0 and 1 acquire the same lock and release the same other one; such a join", (),
    ),
    "shim-burst": Caution(
        burst(64), burst(128),
        r"shim \(0, 0\) MM2S 0, BD 0 .*: bursts of 64 bytes move .* less than longer ones; use 512",
    ),
    "shim-cache": Caution(
        copy(access(0xF << 24, 5 << 24)), copy(access(0xF << 24, 3 << 24)),
        r"MM2S 0, BD 0 .*: AXI cache code is 5; only 0, 2, 3 were seen to work",
    ),
    "unread-tokens": Caution(tokens(4), tokens(3), "more than 4 tokens of column 0 wait to be read"),
    "view-offset": Caution(
        looped(OFFSET.format(8)), looped(OFFSET.format(0)),
        "memref.reinterpret_cast: its offset is counted from its source, 32 bytes into",
    ),
    "wide-wait": Caution(
        columns(8), columns(1),
        r"one wait is for tokens of 8 x 1 tiles while S2MM 0 of tile \(0, 0\) has sent 2: .* ends too early",
        (8 * 4096, 8 * 4096),
    ),
}  # fmt: skip


def test_every_caution_has_a_case():
    elsewhere = {"blocked-cores", "buffer-bounds"}  # test_diagnosis.py
    elsewhere |= {"duplicate-flow", "lock-windows", "open-flow"}  # test_refused_there.py
    elsewhere |= {"early-release", "machine-code", "subnormal-floats"}  # cores/isa/test_machine_code_in_the_array.py
    elsewhere |= {"core-twice"}  # test_lower_limits.py
    elsewhere |= {"dropped-bd"}  # txn/test_txn_lower.py
    elsewhere |= {"packet-headers"}  # routing/test_route_refusals.py
    elsewhere |= {"npu1-window"}  # test_registers.py
    elsewhere |= {"open-address"}  # test_open_addresses.py
    elsewhere |= {"reset-locks"}  # test_reset_locks.py
    elsewhere |= {"buffer-overlap", "pad-value", "token-route", "unaligned-data"}  # test_lower_refusals.py
    assert CASES.keys() | elsewhere == CAUTIONS.keys()


def warnings(case: Caution, text: str, name: str, permissive: Sequence[str] = ()) -> list[str]:
    return [w for w in run(text, case.arguments, permissive).warnings if w.endswith(f" [{name}]")]


@pytest.mark.parametrize("name", CASES)
def test_a_caution_is_a_warning_with_its_name_until_it_is_off(name):
    """A design next to it gets none."""
    case = CASES[name]
    found = warnings(case, case.text, name)
    assert found
    assert all(re.search(case.message, warning) for warning in found)
    assert warnings(case, case.harmless, name) == []
    assert warnings(case, case.text, name, [name]) == []


@pytest.mark.parametrize("device", ["npu1_1col", "npu2_1col"])
def test_a_join_by_one_pair_of_locks_is_verified_where_it_deadlocks(device):
    found = verify_design(join(True).replace("npu2_1col", device)).warnings
    assert [w.endswith("[shared-locks]") for w in found] == ([True] if device == "npu2_1col" else [])
    assert verify_design(join(False)).warnings == ()


CORE = (0, 2)


def enabled(*lines: str) -> str:
    fill = [write32(i, 10 + i, where=", buffer = @mb") for i in range(4)]
    send = [writebd((0, 1), 24, 4, 0x20000 + 1024), write32(address(0, 1, 0xA063C), 24)]
    return column(*fill, *lines, writebd(CORE, 0, 4, 2048), push(CORE, "S2MM : 0", 0), *send)


ENABLE = write32(address(0, 2, 0x1DE00), 1)
STARTED = """
    %started = aie.mem(%c) {
      %0 = aie.dma_start(S2MM, 0, ^first, ^end)
    ^first:
      aie.dma_bd(%cb : memref<16xi32>, 8, 2) {bd_id = 5 : i32}
      aie.next_bd ^end
    ^end:
      aie.end
    }"""


def by_words(text: str, **options) -> list[int]:
    words = encode(lower_module(parse(text))[1], mlir_device_named("npu2"))
    arrays = [np.zeros(64, np.int32) for _ in range(2)]
    return bdforge.emulate(text, arrays, instructions=words, **options).buffers["cb"].tolist()


def test_words_start_a_channel_of_a_core_tile_only_where_it_is_enabled():
    control = address(0, 2, 0x1DE00)
    with pytest.raises(DmaError, match=r"core \(0, 2\) S2MM 0: a task is pushed, but bit 0 \(enable\) of .* is 0"):
        by_words(enabled())
    assert by_words(enabled(ENABLE))[:4] == [10, 11, 12, 13]
    assert by_words(enabled(), permissive=["channel-enable"])[:4] == [10, 11, 12, 13]
    assert by_words(enabled(ENABLE, write32(control, 0xF00, 0x1F00)))[:4] == [10, 11, 12, 13]
    with pytest.raises(DmaError, match="bit 0"):
        by_words(enabled(ENABLE, write32(control, 2), write32(control, 0)))


def test_a_channel_that_the_text_starts_is_enabled():
    """The text's task takes two words, the pushed one the other two."""
    text = enabled().replace("    aie.runtime_sequence", STARTED + "\n    aie.runtime_sequence")
    assert by_words(text)[:10] == [12, 13, *[0] * 6, 10, 11]


@pytest.mark.parametrize("resets", [0, 1])
def test_a_reset_of_a_channel_keeps_the_iteration_of_its_bds(resets):
    """The BD goes on where it was: words 4 to 7 after 0 to 3, reset or not."""
    control = address(0, 1, 0xA0630 + 8)
    queue = address(0, 1, 0xA063C)
    lines = [
        *(write32(i, 10 + i, where=", buffer = @mb") for i in range(8)),
        writebd((0, 1), 24, 4, 0x20000 + 1024, iteration_size=2, iteration_stride=3),
        writebd(CORE, 0, 4, 2048), push(CORE, "S2MM : 0", 0), write32(queue, 24),
        *[write32(control, 2), write32(control, 0)] * resets,
        writebd(CORE, 1, 4, 2048 + 16), push(CORE, "S2MM : 0", 1), write32(queue, 24),
    ]  # fmt: skip
    found = bdforge.emulate(column(*lines), [np.zeros(64, np.int32) for _ in range(2)]).buffers["cb"]
    assert found[:8].tolist() == [*range(10, 18)]


def resident(at: int, column_: int = 0) -> str:
    """A memtile sends what its configuration holds from address `at` on, each time that it is asked."""
    lines = [writebd((column_, 1), 0, 4, 0x20000 + at // 4), push((column_, 1), "MM2S : 0", 0)]
    return "\n".join([
        "module {", "aie.device(npu2_2col) {", tile(column_, 0), tile(column_, 1),
        f'%kept = aie.buffer(%t{column_}1) {{sym_name = "kept", address = {at} : i32}} : memref<4xi32> = dense<7>',
        flow(f"{column_}1 DMA : 0", f"{column_}0 DMA : 0"),
        f"aie.shim_dma_allocation @out (%t{column_}0, S2MM, 0)",
        "aie.runtime_sequence @s(%b: memref<4xi32>) {", *lines,
        "aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 4][0, 0, 0, 1]) "
        "{id = 1 : i64, metadata = @out, issue_token = true} : memref<4xi32>",
        "aiex.npu.dma_wait {symbol = @out}", "}", "}", "}",
    ])  # fmt: skip


@pytest.mark.parametrize(("at", "column_"), [(16, 0), (0, 1)])
def test_resident_words_elsewhere_survive(at, column_):
    b = np.zeros(4, np.int32)
    bdforge.emulate(resident(at, column_), [b], poison=True)
    assert b.tolist() == [7] * 4


def test_word_0_of_column_0s_memtile_is_poisoned_between_runs():
    b = np.zeros(4, np.int32)
    with pytest.raises(
        PoisonError, match=r"reads 1 words .* word 0 .* does not survive from one run .* \(memtile-word\)"
    ):
        bdforge.emulate(resident(0), [b], poison=True)
    bdforge.emulate(resident(0), [b], poison=True, permissive=["memtile-word"])
    assert b.tolist() == [7] * 4
    bdforge.emulate(resident(0), [b])


def test_every_name_is_documented():
    page = (Path(__file__).resolve().parents[2] / "docs" / "emulator.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in page] == []
