"""Every strict check: an error by default, and what its name in CHECKS says where it is switched off."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import ArrayLike

import bdforge
from bdforge.array.emulator import ArgumentError, Deadlock, DmaError, LoadError, LockError, RegisterAccessError
from bdforge.array.emulator.strictness import CHECKS, StrictnessError
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir.allocate import AllocationError
from bdforge.array.txn.lower import LoweringError
from bdforge.devices.registers import address
from support.differences import same
from support.physical_form import physical_form
from support.register_designs import column, push, sync, write32, writebd
from support.small_designs import loopback

A = np.random.default_rng(8).integers(1, 2**31, 96, np.int32)
MEM, CORE = (0, 1), (0, 2)
OWN = 0x20000 + 4096 // 4
QUEUE = {channel: address(0, 1, 0xA0634 + 8 * channel) for channel in range(6)}  # MM2S of the memtile


@dataclass(frozen=True)
class Case:
    """A design that breaks a rule: the error by default, and what buffers begin with where the rule is off.

    `b` is the last array of the host; an error instead, where such a run still ends with one.
    """

    text: str
    error: type[Exception]
    message: str
    then: Mapping[str, ArrayLike] | type[Exception]
    args: Sequence[int] = (64, 64)


def receive(count: int, where: int = 0, bd: int = 1) -> str:
    offset = f"%b[0, 0, 0, {where}][1, 1, 1, {count}][0, 0, 0, 1]"
    return f"aiex.npu.dma_memcpy_nd({offset}) {{id = {bd} : i64, metadata = @out}} : memref<SIZExi32>"


def send(count: int, where: int = 0) -> str:
    offset = f"%a[0, 0, 0, {where}][1, 1, 1, {count}][0, 0, 0, 1]"
    return f"aiex.npu.dma_memcpy_nd({offset}) {{id = 0 : i64, metadata = @in}} : memref<SIZExi32>"


WAIT = "aiex.npu.dma_wait {symbol = @out}"


def through(*lines: str, words: int = 8, runs: int = 5, **parts: str) -> str:
    sequence = "\n".join(lines).replace("SIZE", str(words * runs))
    return loopback(words, runs, sequence=sequence, **parts)


ALL_40 = [receive(40), send(40), WAIT]


def fill(count: int) -> list[str]:
    """The first words of the memtile's buffer become 10, 11, …"""
    return [write32(i, 10 + i, where=", buffer = @mb") for i in range(count)]


def to_core(count: int, first: int = 0) -> list[str]:
    return [writebd(CORE, 0, count, 2048 + 4 * first), push(CORE, "S2MM : 0", 0)]


def task(bd: str, channel: str = "MM2S, 1", around: tuple[str, str] = ("", ""), extra: str = "") -> list[str]:
    before, after = around
    return [f"%t = aiex.dma_configure_task(%m, {channel}) {{", before, bd, after, "aie.end", f"}} {extra}"]


def words_at(*places: int) -> list[str]:
    """Words 1, 2, … at bytes of the memtile."""
    return [write32(address(0, 1, place), i + 1) for i, place in enumerate(places)]


def from_memtile(words: int, first: int, **fields: int) -> list[str]:
    """A BD of the memtile's MM2S 1 from `first` on, to the core."""
    return [writebd(MEM, 24, words, first, **fields), *to_core(words), write32(QUEUE[1], 24)]


ZERO = "aie.use_lock(%{}, AcquireGreaterEqual, 0)"
ZERO_MESSAGE = "AcquireGreaterEqual of 0 would be read as Acquire of 0"
LOCK_3 = {"lock_acq_enable": 1, "lock_acq_id": 64 + 3}
CORE_THAT_ACQUIRES_ZERO = f"""
    %core = aie.core(%c) {{
      %c0 = arith.constant 0 : index
      %x = arith.constant 5 : i32
      {ZERO.format("cl")}
      memref.store %x, %cb[%c0] : memref<16xi32>
      aie.end
    }}"""
WIDE_WRAP = f"""
    %big = aie.buffer(%c) {{sym_name = "big", address = 4096 : i32}} : memref<600xi32> = dense<{list(range(600))}>
    aie.flow(%c, DMA : 1, %m, DMA : 2)
    %mem = aie.mem(%c) {{
      %0 = aie.dma_start(MM2S, 1, ^send, ^end)
    ^send:
      aie.dma_bd(%big : memref<600xi32>, 0, 600, [<size = 2, stride = 300>, <size = 300, stride = 1>])
      aie.next_bd ^end
    ^end:
      aie.end
    }}"""
TOO_MUCH = """
    %x = aie.buffer(%c) {sym_name = "x"} : memref<8000xi32>
    %y = aie.buffer(%c) {sym_name = "y"} : memref<8000xi32> = dense<3>
    %core = aie.core(%c) {
      %last = arith.constant 7999 : index
      %v = memref.load %y[%last] : memref<8000xi32>
      memref.store %v, %x[%last] : memref<8000xi32>
      aie.end
    }"""
ITERATIONS = f"aie.dma_bd(%mb : memref<64xi32>, 0, 1, [<size = 65, stride = 1>{', <size = 1, stride = 1>' * 3}])"
QOS = write32(0x1D000 + 5 * 4, 15 << 20, 15 << 20, ", column = 0 : i32, row = 0 : i32")
MORE_ARGUMENTS = "".join(f"%x{i}: memref<32xi32>, " for i in range(4))
SIX_ARGUMENTS = Case(  # the sequence writes the sixth
    loopback(32, 1).replace("%b: memref<32xi32>)", f"{MORE_ARGUMENTS}%b: memref<32xi32>)"), LoadError,
    r"buffer argument 5 \(counted from 0\) is used, but NPUs translate the addresses of the first 5 arguments",
    {"b": A[:32]}, (32,) * 6,
)  # fmt: skip
FORTY = (40, 40)
CASES = {
    "unpatched-address": [Case(  # nobody says where the words to send are: zeros come
        through(receive(8), writebd((0, 0), 3, 8, 0), push((0, 0), "MM2S : 0", 3), WAIT), DmaError,
        r"MM2S 0, BD 3 .* host address 0x0, which belongs to no argument; patch it", {"b": [0] * 40}, FORTY,
    )],
    "argument-size": [Case(  # a design typed too small moves more than its arguments' type says
        through(receive(48), send(48), WAIT), ArgumentError, r"argument a must have 40 elements .*, got 48",
        {"b": A[:48]}, (48, 48),
    )],
    "queue-overflow": [Case(
        through(*(receive(8, 8 * i, bd=i + 1) for i in range(5)), send(32), *[WAIT] * 4), DmaError,
        "BD 5 is pushed while 4 tasks are in flight", {"b": [*A[:32], *[0] * 8]}, FORTY,
    )],
    "bd-rewrite": [Case(  # the second task uses the words written while the first, latched before, was running
        through(receive(8), receive(8, 8), send(16), WAIT, WAIT), DmaError,
        "BD 1 is rewritten while a task that uses it is queued or running", {"b": [*A[:16], *[0] * 24]}, FORTY,
    )],
    "dram-order": [Case(  # new bytes here; test_dram_order.py has the old ones
        through(receive(8), send(8), receive(8, 8, bd=2), send(8).replace("%a", "%b").replace("id = 0", "id = 3"),
                WAIT, WAIT), DmaError,
        r"MM2S 0, BD 3 .* reads bytes 0 to 31 of argument b, which shim \(0, 0\) S2MM 0, BD 1",
        {"b": [*A[:8], *A[:8], *[0] * 24]}, FORTY,
    )],
    "bd-half": [
        Case(
            column(*fill(4), writebd(MEM, 3, 4, OWN), *to_core(4), write32(QUEUE[1], 3)), DmaError,
            r"MM2S 1 cannot use BD 3, only 24 to 47 \(<string>:25:7\)", {"cb": [10, 11, 12, 13]},
        ),
        Case(
            column(*fill(4), *to_core(4), *task("aie.dma_bd(%mb : memref<64xi32>, 0, 4)"), "aiex.dma_start_task(%t)"),
            LoweringError, r"<string>:26:7: .*cannot use BD 0: the channel reaches BDs 24 to 47",
            {"cb": [10, 11, 12, 13]},
        ),
    ],
    "bd-locks": [Case(  # the memtile passes one piece on, and nobody makes it wait for the next
        through(receive(8), send(8), WAIT, send_release=""), LoadError,
        r"<string>:24:7: .*it acquires a lock and releases none", {"b": A[:8]}, FORTY,
    )],
    "dma-bounds": [
        Case(  # two words at the end of the memtile's memory, then two from its start
            column(*words_at(0x7FFF8, 0x7FFFC, 0, 4), *from_memtile(4, 0x20000 + 0x1FFFE)), DmaError,
            r"MM2S 1, BD 24 .* touches words 131070 to 131073 of memtile \(0, 1\), whose memory has 131072",
            {"cb": [1, 2, 3, 4]},
        ),
        Case(  # the last word of the memory and one more, which is the first
            column(*words_at(0x7FFFC, 0), *from_memtile(2, 0x20000 + 0x1FFFF)), DmaError,
            r"touches words 131071 to 131072 of memtile \(0, 1\), whose memory has 131072", {"cb": [1, 2]},
        ),
        Case(  # what is read behind an argument is 0, what is written there is lost
            through(receive(8, 36), send(8, 36), WAIT), DmaError,
            r"touches bytes 144 to 175 of argument [ab], which has 160", {"b": [*[0] * 36, *A[36:40]]}, FORTY,
        ),
    ],
    "neighbour-channel": [Case(
        column(
            *(write32(address(0, 1, 4 * i), 21 + i) for i in range(2)), writebd((1, 1), 0, 2, 0),
            writebd((1, 2), 0, 2, 2048), push((1, 2), "S2MM : 1", 0), push((1, 1), "MM2S : 4", 0),
            at=1, extra="    aie.flow(%m, DMA : 4, %c, DMA : 1)",
        ), DmaError, r"memtile \(1, 1\) MM2S 4, BD 0 .* neighbour's memory; only channels 0 to 3 can", {"cb": [21, 22]},
    )],
    "lock-range": [
        Case(  # 2 + 63 saturates at 63, so the second BD, which waits for exactly 63, goes
            column(
                *fill(2), *to_core(4), writebd(MEM, 24, 2, OWN, lock_rel_id=64 + 3, lock_rel_val=63),
                write32(QUEUE[1], 24), writebd(MEM, 25, 2, OWN, lock_acq_val=63, **LOCK_3), write32(QUEUE[1], 25),
            ), LockError, r"lock ml \(3 of memtile \(0, 1\)\) would become 65, outside 0 to 63",
            {"cb": [10, 11, 10, 11]},
        ),
        Case(
            through(*ALL_40).replace("init = 1 : i32", "init = 64 : i32", 1), LoadError,
            r"<string>:7:13: aie.lock: init: lock value = 64 is outside 0 to 63", {"b": A[:40]}, FORTY,
        ),
    ],
    "acquire-zero": [
        Case(  # `full` is 0, so the send goes at once, before the data: the fill comes second
            through(
                receive(8), WAIT, send_acquire=ZERO.format("full"), send_release="aie.use_lock(%full, Release, 1)",
            ), LoadError, ZERO_MESSAGE, {"b": [0] * 8}, FORTY,
        ),
        Case(  # `free` is 1, and never becomes 0: nothing is filled. An acquire of at least 0 would pass
            through(receive(8), send(8), WAIT, fill_acquire=ZERO.format("free")), LoadError,
            r"<string>:19:7: .*AcquireGreaterEqual of 0", Deadlock, FORTY,
        ),
        Case(  # the lock holds 2, so the BD waits
            column(*fill(4), *to_core(4), *task(
                "aie.dma_bd(%mb : memref<64xi32>, 0, 4) {bd_id = 24 : i32}",
                around=(ZERO.format("ml"), "aie.use_lock(%ml, Release, 0)"),
            ), write32(QUEUE[1], 24)), LoweringError, ZERO_MESSAGE, {"cb": [0] * 4},
        ),
        Case(  # the lock holds 1: the core waits until the sequence clears it, so its store comes behind the sequence's
            column(
                write32(0, 9, where=", buffer = @cb"), "aiex.set_lock(%cl, 0)", extra=CORE_THAT_ACQUIRES_ZERO,
            ), LoadError, ZERO_MESSAGE, {"cb": [5]},
        ),
    ],
    "field-width": [
        Case(  # a wrap of 300 in 8 bits is 44: the walk goes 44 words, then 300 onwards, twice
            column(writebd(MEM, 0, 60, OWN), push(MEM, "S2MM : 2", 0), extra=WIDE_WRAP), LoadError,
            r"core tile BD: d0_wrap = 300 does not fit word 3 \[20:13\]",
            {"mb": [i // 88 * 1 + i // 44 % 2 * 300 + i % 44 for i in range(60)]},
        ),
        Case(  # 65 iterations in 6 bits are 1: every run reads the same words
            column(
                *fill(64), *task(ITERATIONS, "MM2S, 0", extra="{repeat_count = 64 : i32}"), "aiex.dma_start_task(%t)",
                receive(64).replace("SIZE", "64"), sync((0, 0), 0),
            ), LoweringError, "size of dimension 3 is 65; a BD iterates at most 64 times", {"b": [10] * 64},
        ),
        Case(
            column(*fill(2), *from_memtile(2, OWN, lock_acq_val=1, **LOCK_3), write32(address(0, 1, 0xC0030), 65)),
            RegisterAccessError, "0x41 is written to the value of lock 3, which holds 0 to 63", {"cb": [10, 11]},
        ),
        Case(
            through(receive(8), send(8), WAIT).replace("^fill, ^second)", "^fill, ^second, repeat_count = 256)"),
            LoadError, "repeat_count = 256 is outside 0 to 255", {"b": A[:8]}, FORTY,
        ),
    ],
    "memory-overflow": [Case(
        column(extra=TOO_MUCH), AllocationError,
        "buffer @y with 32000 bytes would end at .*, beyond the tile's 65536 bytes",
        {"x": [*[0] * 7999, 3], "y": [3] * 8000},
    )],
    "routing": [Case(  # the switches lead the shim's words into that of the memtile, which does nothing with them
        re.sub(r"aie.connect<South : \d, DMA : 0>", "", physical_form(through(*ALL_40))), LoadError,
        r"the circuit from \(0, 0\) South : 3 is lost: nothing is set", Deadlock, FORTY,
    )],
    "missing-token": [Case(
        column("aiex.npu.dma_wait {symbol = @in}", write32(0, 7, where=", buffer = @mb")), Deadlock,
        r"awaits a token of shim \(0, 0\) MM2S 0, but no task there will issue one", {"mb": [7]},
    )],
    "shim-qos": [Case(  # the first transfer goes; the BD is pushed again with a quality of service of 15
        through(*ALL_40, QOS, push((0, 0), "S2MM : 0", 1, token=True), push((0, 0), "MM2S : 0", 0), WAIT), DmaError,
        r"MM2S 0, BD 0 .*: AXI quality of service is 15", {"b": A[:40]}, FORTY,
    )],
    "buffer-arguments": [SIX_ARGUMENTS],
}  # fmt: skip
ALL = pytest.mark.parametrize(
    ("name", "case"), [pytest.param(n, c, id=f"{n}-{i}") for n, cases in CASES.items() for i, c in enumerate(cases)]
)


def arrays(case: Case) -> list[np.ndarray]:
    return [A[: case.args[0]].copy(), *(np.zeros(size, np.int32) for size in case.args[1:])]


def test_every_check_has_a_case():
    elsewhere = {"channel-enable", "stack", "float-edges"}  # test_silicon.py, test_stacks.py, machine code in the array
    elsewhere |= {"program-writes"}  # tests/lower/test_transition.py
    assert CASES.keys() | elsewhere == CHECKS.keys()


@ALL
def test_a_broken_rule_is_an_error_with_the_name_of_its_check_whatever_else_is_permitted(name, case):
    with pytest.raises(case.error, match=case.message) as raised:
        bdforge.emulate(case.text, arrays(case), permissive=CHECKS.keys() - {name})
    (note,) = raised.value.__notes__
    assert note.startswith(f"[{name}")


@pytest.mark.daily(every=2)
@ALL
def test_a_permitted_fault_does_what_its_name_says_and_warns(name, case):
    given = arrays(case)
    if isinstance(case.then, type):
        with pytest.raises(case.then):
            bdforge.emulate(case.text, given, permissive=[name])
        return
    result = bdforge.emulate(case.text, given, permissive=[name])
    found = {**result.buffers, "b": given[-1]}
    for buffer, wanted in case.then.items():
        same(found[buffer][: len(np.asarray(wanted))], wanted, buffer)
    assert [w for w in result.warnings if w.startswith(f"{name} (permitted): ")]


@pytest.mark.parametrize("name", ["lock-range", "field-width", "memory-overflow"])
def test_what_one_run_of_a_text_permits_is_told_and_judged_anew_in_the_next(name):
    """Also where the second run takes what the first made of the text."""
    case = CASES[name][-1]
    first, second = (bdforge.emulate(case.text, arrays(case), permissive=[name]).warnings for _ in range(2))
    assert first == second != ()
    with pytest.raises(case.error, match=case.message):
        bdforge.emulate(case.text, arrays(case))


def test_unknown_checks_are_named_with_those_there_are():
    with pytest.raises(StrictnessError, match="no check is called lock-rang, x; there is queue-overflow, bd-rewrite"):
        bdforge.emulate(loopback(), [], permissive=["x", "lock-rang", "routing"])


def test_verify_names_an_argument_that_npus_do_not_translate():
    (fault,) = verify_design(SIX_ARGUMENTS.text, "six.mlir").faults
    assert re.search(SIX_ARGUMENTS.message, fault)
    assert "six.mlir:" in fault


def test_a_transfer_may_end_with_the_last_word_of_its_memory():
    text = column(*words_at(0x7FFF8, 0x7FFFC), *from_memtile(2, 0x20000 + 0x1FFFE))
    assert bdforge.emulate(text, [np.zeros(64, np.int32)] * 2).buffers["cb"][:2].tolist() == [1, 2]
