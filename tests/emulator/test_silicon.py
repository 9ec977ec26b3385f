"""What silicon punishes or mlir-aie reads otherwise: refused or warned about by name, each with its switch."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.emulator import Result
from bdforge.emulator.strictness import CAUTIONS, NAMES
from support.register_designs import push, sync, write32
from support.small_designs import loopback

A = np.random.default_rng(11).integers(1, 2**31, 64, np.int32)
SHIM_BD = 0x1D000


@dataclass(frozen=True)
class Caution:
    """A design that gets a warning, a design next to it that gets none, and the warning."""

    text: str
    harmless: str
    message: str
    arguments: Sequence[int] = (64, 64)


def run(text: str, sizes: Sequence[int], permissive: Sequence[str] = ()) -> Result:
    return bdforge.emulate(text, [A[: sizes[0]].copy(), *(np.zeros(n, np.int32) for n in sizes[1:])],
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
    return loopback(32, 2, sequence="\n".join([*COPY[:2], *again, "aiex.npu.dma_wait {symbol = @out}"]))


def access(mask: int, value: int, word: int = 5) -> str:
    return write32(SHIM_BD + 4 * word, value, mask, ", column = 0 : i32, row = 0 : i32")


def burst() -> Caution:
    text = "\n".join(COPY)
    short = text.replace("id = 0 : i64", "id = 0 : i64, burst_length = 64 : i64")
    longer = text.replace("id = 0 : i64", "id = 0 : i64, burst_length = 128 : i64")
    message = r"shim \(0, 0\) MM2S 0, BD 0 .*: bursts of 64 bytes move .* less than longer ones; use 512"
    return Caution(loopback(32, 2, sequence=short), loopback(32, 2, sequence=longer), message)


def cache() -> Caution:
    codes = [copy(access(0xF << 24, code << 24)) for code in (5, 3)]
    return Caution(*codes, message=r"MM2S 0, BD 0 .*: AXI cache code is 5; only 0, 2, 3 were seen to work")


def tokens(count: int) -> str:
    """Steps of a token each way, of which one is read at once and the other at the end."""
    lines = []
    for _ in range(count):
        lines += [*COPY[:2], sync((0, 0), 1)]
    text = "\n".join([*lines, *["aiex.npu.dma_wait {symbol = @out}"] * count])
    return loopback(32, 2, sequence=text.replace("metadata = @in", "metadata = @in, issue_token = true"))


def unread() -> Caution:
    message = "more than 4 tokens of column 0 wait to be read"
    return Caution(tokens(4), tokens(3), message)


def dropped_stride() -> Caution:
    task = "%t = aiex.dma_configure_task_for @in {{\naie.dma_bd(%a : memref<64xi32>, 0, 32, [{}])\naie.end\n}}"
    short, whole = "<size = 32, stride = 2>", "<size = 32, stride = 2>, <size = 1, stride = 1>, <size = 1, stride = 1>"
    texts = [loopback(32, 2, sequence=task.format(dims)) for dims in (short, whole)]
    return Caution(*texts, message=r"aie.dma_bd: the stride 2 of its innermost dimension is dropped")


def view_offset() -> Caution:
    flat = "memref.reinterpret_cast %v to offset: [0], sizes: [8], strides: [1]"
    text = (
        "%v = memref.subview %a[{0}] [8] [1] : memref<64xi32> to memref<8xi32, strided<[1], offset: {0}>>\n"
        f"%w = {flat} : memref<8xi32, strided<[1], offset: {{0}}>> to memref<8xi32>"
    )
    texts = [loopback(32, 2, sequence=text.format(start)) for start in (8, 0)]
    return Caution(*texts, message="memref.reinterpret_cast: its offset is counted from its source, 32 bytes into")


CASES: dict[str, Callable[[], Caution]] = {
    "dropped-stride": dropped_stride, "shim-burst": burst, "shim-cache": cache, "unread-tokens": unread,
    "view-offset": view_offset,
}  # fmt: skip


def test_every_caution_has_a_case():
    elsewhere = {"blocked-cores", "buffer-bounds"}  # test_diagnosis.py
    elsewhere |= {"bd-locks", "duplicate-flow", "lock-windows", "open-flow"}  # test_refused_there.py
    elsewhere |= {"npu1-window"}  # test_registers.py
    assert CASES.keys() | elsewhere == CAUTIONS.keys()


def warnings(case: Caution, text: str, name: str, permissive: Sequence[str] = ()) -> list[str]:
    return [w for w in run(text, case.arguments, permissive).warnings if w.endswith(f" [{name}]")]


@pytest.mark.parametrize("name", CASES)
def test_a_caution_is_a_warning_with_its_name(name):
    case = CASES[name]()
    found = warnings(case, case.text, name)
    assert found
    assert all(re.search(case.message, warning) for warning in found)


@pytest.mark.parametrize("name", CASES)
def test_a_design_next_to_it_gets_none(name):
    case = CASES[name]()
    assert warnings(case, case.harmless, name) == []


@pytest.mark.parametrize("name", CASES)
def test_a_caution_that_is_off_is_silent(name):
    case = CASES[name]()
    assert warnings(case, case.text, name, [name]) == []


def test_every_name_is_documented():
    page = (Path(__file__).resolve().parents[2] / "docs" / "emulator.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in page] == []
