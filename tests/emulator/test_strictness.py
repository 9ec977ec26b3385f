"""Every strict check: an error by default, and what its name in CHECKS says where it is switched off."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import (
    ArgumentError,
    Deadlock,
    DmaError,
    LoadError,
    LockError,
    RegisterAccessError,
    Result,
)
from bdforge.array.emulator.strictness import CHECKS, StrictnessError
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir.allocate import AllocationError
from bdforge.array.txn.lower import LoweringError
from bdforge.devices.registers import address
from support.differences import same
from support.physical_form import physical_form
from support.register_designs import column, push, write32, writebd
from support.small_designs import loopback

A = np.random.default_rng(8).integers(1, 2**31, 96, np.int32)
MEM, CORE = (0, 1), (0, 2)
OWN = 0x20000 + 4096 // 4
QUEUE = {channel: address(0, 1, 0xA0634 + 8 * channel) for channel in range(6)}  # MM2S of the memtile


@dataclass(frozen=True)
class Case:
    """A design that breaks a rule: the error by default, and a check of what happens where the rule is off."""

    text: str
    error: type[Exception]
    message: str
    then: Callable[[np.ndarray, Result], None] | type[Exception]
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


def fill(count: int) -> list[str]:
    """The first words of the memtile's buffer become 10, 11, …"""
    return [write32(i, 10 + i, where=", buffer = @mb") for i in range(count)]


def to_core(count: int, first: int = 0) -> list[str]:
    return [writebd(CORE, 0, count, 2048 + 4 * first), push(CORE, "S2MM : 0", 0)]


def queue_overflow() -> Case:
    def then(b, result):
        same(b, [*A[:32], *[0] * 8])

    text = through(*(receive(8, 8 * i, bd=i + 1) for i in range(5)), send(32), *[WAIT] * 4)
    return Case(text, DmaError, "BD 5 is pushed while 4 tasks are in flight", then, (40, 40))


def bd_rewrite() -> Case:
    """The second task uses the words written while the first, latched before, was running."""

    def then(b, result):
        same(b[:16], A[:16])
        same(b[16:], 0)

    text = through(receive(8), receive(8, 8), send(16), WAIT, WAIT)
    return Case(text, DmaError, "BD 1 is rewritten while a task that uses it is queued or running", then, (40, 40))


def bd_half() -> Case:
    def then(b, result):
        assert result.buffers["cb"][:4].tolist() == [10, 11, 12, 13]

    lines = [*fill(4), writebd(MEM, 3, 4, OWN), *to_core(4), write32(QUEUE[1], 3)]
    return Case(column(*lines), DmaError, r"MM2S 1 cannot use BD 3, only 24 to 47 \(<string>:25:7\)", then)


def bd_half_of_a_task() -> Case:
    def then(b, result):
        assert result.buffers["cb"][:4].tolist() == [10, 11, 12, 13]

    task = ["%t = aiex.dma_configure_task(%m, MM2S, 1) {", "aie.dma_bd(%mb : memref<64xi32>, 0, 4)", "aie.end", "}"]
    lines = [*fill(4), *to_core(4), *task, "aiex.dma_start_task(%t)"]
    message = r"<string>:25:7: .*cannot use BD 0: the channel reaches BDs 24 to 47"
    return Case(column(*lines), LoweringError, message, then)


def bd_locks() -> Case:
    """The memtile passes one piece on, and nobody makes it wait for the next."""

    def then(b, result):
        same(b[:8], A[:8])

    text = through(receive(8), send(8), WAIT, send_release="")
    return Case(text, LoadError, r"<string>:24:7: .*it acquires a lock and releases none", then, (40, 40))


def dma_bounds() -> Case:
    """Two words at the end of the memtile's memory, then two from its start."""

    def then(b, result):
        assert result.buffers["cb"][:4].tolist() == [1, 2, 3, 4]

    places = [0x7FFF8, 0x7FFFC, 0, 4]
    lines = [write32(address(0, 1, place), i + 1) for i, place in enumerate(places)]
    lines += [writebd(MEM, 24, 4, 0x20000 + 0x1FFFE), *to_core(4), write32(QUEUE[1], 24)]
    message = r"MM2S 1, BD 24 .* touches words 131070 to 131073 of memtile \(0, 1\), whose memory has 131072"
    return Case(column(*lines), DmaError, message, then)


def dma_bounds_by_one_word() -> Case:
    """The last word of the memory and one more, which is the first."""

    def then(b, result):
        assert result.buffers["cb"][:2].tolist() == [1, 2]

    lines = [write32(address(0, 1, place), i + 1) for i, place in enumerate([0x7FFFC, 0])]
    lines += [writebd(MEM, 24, 2, 0x20000 + 0x1FFFF), *to_core(2), write32(QUEUE[1], 24)]
    message = r"touches words 131071 to 131072 of memtile \(0, 1\), whose memory has 131072"
    return Case(column(*lines), DmaError, message, then)


def dma_bounds_of_the_host() -> Case:
    """What is read behind an argument is 0, what is written there is lost."""

    def then(b, result):
        same(b, [*[0] * 36, *A[36:40]])

    text = through(receive(8, 36), send(8, 36), WAIT)
    return Case(text, DmaError, r"touches bytes 144 to 175 of argument [ab], which has 160", then, (40, 40))


def neighbour_channel() -> Case:
    def then(b, result):
        assert result.buffers["cb"][:2].tolist() == [21, 22]

    west = [write32(address(0, 1, 4 * i), 21 + i) for i in range(2)]
    lines = [
        *west, writebd((1, 1), 0, 2, 0), writebd((1, 2), 0, 2, 2048), push((1, 2), "S2MM : 1", 0),
        push((1, 1), "MM2S : 4", 0),
    ]  # fmt: skip
    text = column(*lines, at=1, extra="    aie.flow(%m, DMA : 4, %c, DMA : 1)")
    return Case(text, DmaError, r"memtile \(1, 1\) MM2S 4, BD 0 .* neighbour's memory; only channels 0 to 3 can", then)


def lock_range() -> Case:
    """2 + 63 saturates at 63, so the second BD, which waits for exactly 63, goes."""

    def then(b, result):
        assert result.buffers["cb"][:4].tolist() == [10, 11, 10, 11]

    lock = {"lock_acq_enable": 1, "lock_acq_id": 64 + 3}
    lines = [
        *fill(2), *to_core(4), writebd(MEM, 24, 2, OWN, lock_rel_id=64 + 3, lock_rel_val=63), write32(QUEUE[1], 24),
        writebd(MEM, 25, 2, OWN, lock_acq_val=63, **lock), write32(QUEUE[1], 25),
    ]  # fmt: skip
    return Case(column(*lines), LockError, r"lock ml \(3 of memtile \(0, 1\)\) would become 65, outside 0 to 63", then)


def lock_range_of_an_initial_value() -> Case:
    def then(b, result):
        same(b, A[:40])

    text = through(receive(40), send(40), WAIT).replace("init = 1 : i32", "init = 64 : i32", 1)
    return Case(text, LoadError, r"<string>:7:13: aie.lock: init: lock value = 64 is outside 0 to 63", then, (40, 40))


ZERO = "aie.use_lock(%{}, AcquireGreaterEqual, 0)"


def acquire_zero() -> Case:
    """`full` is 0, so the send goes at once, before the data: the fill comes second."""

    def then(b, result):
        same(b[:8], [0] * 8)

    text = through(receive(8), WAIT, send_acquire=ZERO.format("full"), send_release="aie.use_lock(%full, Release, 1)")
    return Case(text, LoadError, r"AcquireGreaterEqual of 0 would be read as Acquire of 0", then, (40, 40))


def acquire_zero_that_waits() -> Case:
    """`free` is 1, and never becomes 0: nothing is filled. An acquire of at least 0 would pass."""
    text = through(receive(8), send(8), WAIT, fill_acquire=ZERO.format("free"))
    return Case(text, LoadError, r"<string>:19:7: .*AcquireGreaterEqual of 0", Deadlock, (40, 40))


def acquire_zero_of_a_task() -> Case:
    task = [
        "%t = aiex.dma_configure_task(%m, MM2S, 1) {", ZERO.format("ml"),
        "aie.dma_bd(%mb : memref<64xi32>, 0, 4) {bd_id = 24 : i32}", "aie.use_lock(%ml, Release, 0)", "aie.end", "}",
    ]  # fmt: skip

    def then(b, result):
        assert result.buffers["cb"][:4].tolist() == [0] * 4  # the lock holds 2, so the BD waits

    lines = [*fill(4), *to_core(4), *task, write32(QUEUE[1], 24)]
    return Case(column(*lines), LoweringError, "AcquireGreaterEqual of 0 would be read as Acquire of 0", then)


def acquire_zero_of_a_core() -> Case:
    """The lock holds 1: the core waits until the sequence clears it, so its store comes behind the sequence's."""
    core = f"""
    %core = aie.core(%c) {{
      %c0 = arith.constant 0 : index
      %x = arith.constant 5 : i32
      {ZERO.format("cl")}
      memref.store %x, %cb[%c0] : memref<16xi32>
      aie.end
    }}"""

    def then(b, result):
        assert result.buffers["cb"][0] == 5

    lines = [write32(0, 9, where=", buffer = @cb"), "aiex.set_lock(%cl, 0)"]
    return Case(column(*lines, extra=core), LoadError, "AcquireGreaterEqual of 0 would be read as Acquire of 0", then)


def field_width() -> Case:
    """A wrap of 300 in 8 bits is 44: the walk goes 44 words, then 300 onwards, twice."""
    dims = "[<size = 2, stride = 300>, <size = 300, stride = 1>]"
    core = f"""
    %big = aie.buffer(%c) {{sym_name = "big", address = 4096 : i32}} : memref<600xi32> = dense<{list(range(600))}>
    aie.flow(%c, DMA : 1, %m, DMA : 2)
    %mem = aie.mem(%c) {{
      %0 = aie.dma_start(MM2S, 1, ^send, ^end)
    ^send:
      aie.dma_bd(%big : memref<600xi32>, 0, 600, {dims})
      aie.next_bd ^end
    ^end:
      aie.end
    }}"""
    walk = [i // 88 * 1 + i // 44 % 2 * 300 + i % 44 for i in range(60)]

    def then(b, result):
        assert result.buffers["mb"][:60].tolist() == walk

    lines = [writebd(MEM, 0, 60, OWN), push(MEM, "S2MM : 2", 0)]
    message = r"core tile BD: d0_wrap = 300 does not fit word 3 \[20:13\]"
    return Case(column(*lines, extra=core), LoadError, message, then)


def field_width_of_a_task() -> Case:
    """65 iterations in 6 bits are 1: every run reads the same words."""
    task = [
        "%t = aiex.dma_configure_task(%m, MM2S, 0) {",
        f"aie.dma_bd(%mb : memref<64xi32>, 0, 1, [<size = 65, stride = 1>{', <size = 1, stride = 1>' * 3}])",
        "aie.end", "} {repeat_count = 64 : i32}", "aiex.dma_start_task(%t)",
    ]  # fmt: skip

    def then(b, result):
        same(b, [10] * 64)

    values = {"column": 0, "row": 0, "direction": 0, "channel": 0, "column_num": 1, "row_num": 1}
    wait = "aiex.npu.sync {" + ", ".join(f"{k} = {v} : i32" for k, v in values.items()) + "}"
    into = receive(64).replace("SIZE", "64")
    message = "size of dimension 3 is 65; a BD iterates at most 64 times"
    return Case(column(*fill(64), *task, into, wait), LoweringError, message, then)


def field_width_of_a_lock() -> Case:
    def then(b, result):
        assert result.buffers["cb"][:2].tolist() == [10, 11]

    lock = {"lock_acq_enable": 1, "lock_acq_id": 64 + 3, "lock_acq_val": 1}
    lines = [
        *fill(2), *to_core(2), writebd(MEM, 24, 2, OWN, **lock), write32(QUEUE[1], 24),
        write32(address(0, 1, 0xC0030), 65),
    ]  # fmt: skip
    message = "0x41 is written to the value of lock 3, which holds 0 to 63"
    return Case(column(*lines), RegisterAccessError, message, then)


def field_width_of_a_repeat_count() -> Case:
    def then(b, result):
        same(b[:8], A[:8])

    text = through(receive(8), send(8), WAIT).replace("^fill, ^second)", "^fill, ^second, repeat_count = 256)")
    return Case(text, LoadError, "repeat_count = 256 is outside 0 to 255", then, (40, 40))


def memory_overflow() -> Case:
    core = """
    %x = aie.buffer(%c) {sym_name = "x"} : memref<8000xi32>
    %y = aie.buffer(%c) {sym_name = "y"} : memref<8000xi32> = dense<3>
    %core = aie.core(%c) {
      %last = arith.constant 7999 : index
      %v = memref.load %y[%last] : memref<8000xi32>
      memref.store %v, %x[%last] : memref<8000xi32>
      aie.end
    }"""

    def then(b, result):
        assert result.buffers["x"][-2:].tolist() == [0, 3]
        assert result.buffers["y"].tolist() == [3] * 8000

    message = "buffer @y with 32000 bytes would end at .*, beyond the tile's 65536 bytes"
    return Case(column(extra=core), AllocationError, message, then)


def routing() -> Case:
    """The switches of the text lead the shim's words into the memtile's switch, which does nothing with them."""
    text = physical_form(through(receive(40), send(40), WAIT))
    cut = re.sub(r"aie.connect<South : \d, DMA : 0>", "", text)
    assert cut != text
    return Case(cut, LoadError, r"the circuit from \(0, 0\) South : 3 is lost: nothing is set", Deadlock, (40, 40))


def missing_token() -> Case:
    def then(b, result):
        assert result.buffers["mb"][0] == 7

    lines = ["aiex.npu.dma_wait {symbol = @in}", write32(0, 7, where=", buffer = @mb")]
    message = r"awaits a token of shim \(0, 0\) MM2S 0, but no task there will issue one"
    return Case(column(*lines), Deadlock, message, then)


def shim_qos() -> Case:
    """The first transfer goes; the BD is pushed again with a quality of service of 15."""

    def then(b, result):
        same(b, A[:40])

    qos = write32(0x1D000 + 5 * 4, 15 << 20, 15 << 20, ", column = 0 : i32, row = 0 : i32")
    again = ["aiex.npu.dma_wait {symbol = @out}", qos, push((0, 0), "S2MM : 0", 1, token=True)]
    lines = [receive(40), send(40), *again, push((0, 0), "MM2S : 0", 0), WAIT]
    return Case(through(*lines), DmaError, r"MM2S 0, BD 0 .*: AXI quality of service is 15", then, (40, 40))


def unpatched_address() -> Case:
    """Nobody says where the words to send are: zeros come."""

    def then(b, result):
        same(b, [0] * 8 + [0] * 32)

    text = through(receive(8), writebd((0, 0), 3, 8, 0), push((0, 0), "MM2S : 0", 3), WAIT)
    return Case(text, DmaError, r"MM2S 0, BD 3 .* host address 0x0, which belongs to no argument; patch it", then,
                (40, 40))  # fmt: skip


def argument_size() -> Case:
    """A design typed too small moves more than its arguments' type says."""

    def then(b, result):
        same(b, A[:48])

    text = through(receive(48), send(48), WAIT)
    return Case(text, ArgumentError, r"argument a must have 40 elements .*, got 48", then, (48, 48))


def buffer_arguments() -> Case:
    """A sequence of six buffers that writes the sixth."""

    def then(b, result):
        same(b, A[:32])

    more = ", ".join(f"%x{i}: memref<32xi32>" for i in range(4))
    text = loopback(32, 1).replace("%b: memref<32xi32>)", f"{more}, %b: memref<32xi32>)")
    message = r"buffer argument 5 \(counted from 0\) is used, but NPUs translate the addresses of the first 5 arguments"
    return Case(text, LoadError, message, then, (32,) * 6)


CASES = {
    "unpatched-address": [unpatched_address()],
    "argument-size": [argument_size()],
    "queue-overflow": [queue_overflow()],
    "bd-rewrite": [bd_rewrite()],
    "bd-half": [bd_half(), bd_half_of_a_task()],
    "bd-locks": [bd_locks()],
    "dma-bounds": [dma_bounds(), dma_bounds_by_one_word(), dma_bounds_of_the_host()],
    "neighbour-channel": [neighbour_channel()],
    "lock-range": [lock_range(), lock_range_of_an_initial_value()],
    "acquire-zero": [acquire_zero(), acquire_zero_that_waits(), acquire_zero_of_a_task(), acquire_zero_of_a_core()],
    "field-width": [field_width(), field_width_of_a_task(), field_width_of_a_lock(), field_width_of_a_repeat_count()],
    "memory-overflow": [memory_overflow()],
    "routing": [routing()],
    "missing-token": [missing_token()],
    "shim-qos": [shim_qos()],
    "buffer-arguments": [buffer_arguments()],
}
ALL = pytest.mark.parametrize(
    ("name", "case"), [pytest.param(n, c, id=f"{n}-{i}") for n, cases in CASES.items() for i, c in enumerate(cases)]
)


def arrays(case: Case) -> list[np.ndarray]:
    return [A[: case.args[0]].copy(), *(np.zeros(size, np.int32) for size in case.args[1:])] if case.args else []


def test_every_check_has_a_case():
    elsewhere = {"channel-enable", "stack", "float-edges"}  # test_silicon.py, test_stacks.py, machine code in the array
    assert CASES.keys() | elsewhere == CHECKS.keys()


@ALL
def test_a_broken_rule_is_an_error_with_the_name_of_its_check_whatever_else_is_permitted(name, case):
    with pytest.raises(case.error, match=case.message) as raised:
        bdforge.emulate(case.text, arrays(case), permissive=CHECKS.keys() - {name})
    (note,) = raised.value.__notes__
    assert note.startswith(f"[{name}")


@ALL
def test_a_permitted_fault_does_what_its_name_says_and_warns(name, case):
    given = arrays(case)
    if isinstance(case.then, type):
        with pytest.raises(case.then):
            bdforge.emulate(case.text, given, permissive=[name])
        return
    result = bdforge.emulate(case.text, given, permissive=[name])
    case.then(given[-1] if given else np.zeros(0), result)
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
    case = buffer_arguments()
    (fault,) = verify_design(case.text, "six.mlir").faults
    assert re.search(case.message, fault)
    assert "six.mlir:" in fault


def test_a_transfer_may_end_with_the_last_word_of_its_memory():
    lines = [write32(address(0, 1, 0x7FFF8 + 4 * i), i + 1) for i in range(2)]
    lines += [writebd(MEM, 24, 2, 0x20000 + 0x1FFFE), *to_core(2), write32(QUEUE[1], 24)]
    arrays = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    assert bdforge.emulate(column(*lines), arrays).buffers["cb"][:2].tolist() == [1, 2]
