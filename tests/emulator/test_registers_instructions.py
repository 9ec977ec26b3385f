"""Instruction streams on the emulated array: the same results as the MLIR that they were made of, and MASKPOLL."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock, DmaError, LoadError, RegisterAccessError, Result
from bdforge.array.emulator.scheduler import STEP_BUDGET
from bdforge.array.mlir import parse
from bdforge.array.txn.lower import lower_module
from bdforge.devices import mlir_device_named
from bdforge.devices.registers import address
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import (
    BlockWrite,
    LoadPdi,
    MaskPoll,
    MaskPollBusy,
    MaskWrite,
    Noop,
    Operation,
    Patch,
    Preempt,
    Sync,
    Unknown,
    Write,
)
from support.differences import same
from support.register_designs import column, push, write32, writebd
from support.small_designs import loopback
from support.txn_vectors import encode_mlir

DATA = np.random.default_rng(6).integers(-(2**31), 2**31, 96, np.int32)
NPU2 = mlir_device_named("npu2")


def emulate_words(
    text: str, operations: list[Operation], device: str = "npu2", elements: int = 96, budget: int = STEP_BUDGET
) -> tuple[np.ndarray, Result]:
    b = np.zeros(elements, np.int32)
    words = encode(operations, mlir_device_named(device))
    return b, bdforge.emulate(text, [DATA[:elements].copy(), b], instructions=words, budget=budget)


def lowered(text: str) -> list[Operation]:
    return lower_module(parse(text))[1]


@pytest.mark.parametrize("device", ["npu1", "npu2", "npu2_1col"])
def test_words_give_the_same_result_as_their_mlir(device):
    text = loopback(device=device, send="0, 32, [<size = 8, stride = 1>, <size = 4, stride = 8>]")
    b, from_words = np.zeros((2, 96), np.int32)
    result = bdforge.emulate(text, [DATA, b])
    words = encode_mlir(text)
    other = bdforge.emulate(text, [DATA, from_words], instructions=words)
    assert b.any()
    same(b, from_words)
    same(result.buffers["buffer"], other.buffers["buffer"])
    assert result.warnings == other.warnings
    from_bytes = np.zeros(96, np.int32)
    bdforge.emulate(text, [DATA, from_bytes], instructions=words.tobytes())
    same(b, from_bytes)


def test_words_may_replace_the_sequence_of_the_text():
    """The stream of another size runs on the same configuration; arrays are arguments by number, of any type."""
    words = encode_mlir(loopback(runs=2))
    a, b = DATA[:64].view(np.float32).copy(), np.zeros(64, np.float32)
    bdforge.emulate(loopback(runs=3), [a, b], instructions=words)
    same(a.view(np.int32), b.view(np.int32))


@pytest.mark.parametrize("device", ["npu1", "npu2_1col"])
def test_words_for_another_array_are_refused(device):
    words = encode_mlir(loopback(device=device))
    with pytest.raises(
        LoadError, match=r"instruction stream is for generation \d with \d columns x 6 rows, but npu2 is"
    ):
        bdforge.emulate(loopback(), [DATA, DATA], instructions=words)


def test_broken_words_are_named():
    with pytest.raises(LoadError, match=r"instruction stream: word 0: version 7\.7 is unknown"):
        bdforge.emulate(loopback(), [], instructions=np.full(9, 0x07070707, np.uint32))


@pytest.mark.parametrize("operation", [Sync(0, 0, 9, 1, 1, 0), Sync(0, 7, 0, 1, 1, 0), Sync(0, 0, 0, 1, 1, 3)])
def test_a_token_of_a_channel_that_is_not_there_is_named(operation):
    with pytest.raises(RegisterAccessError, match=r"a token of S2MM \d of tile \(\d, \d\) is awaited.*operation 0"):
        emulate_words(loopback(), [operation])


def test_noop_and_preempt_do_nothing_and_unknown_operations_are_refused():
    assert emulate_words(loopback(), [Noop(), Preempt(3)])[1].warnings == ()
    with pytest.raises(LoadError, match=r"Unknown cannot be emulated \(operation 0 of the instruction stream\)"):
        emulate_words(loopback(), [Unknown(200, (1, 2))])


def test_a_load_of_an_unknown_configuration_is_refused():
    with pytest.raises(
        LoadError, match=r"array configuration of id 3 is no aie.device of this module .*give device_ref"
    ):
        emulate_words(loopback(), [LoadPdi(3, 0, 0)])


LOCK = address(0, 2, 0x1F050)
QUEUE_STATUS = address(0, 0, 0x1D220)
ENABLE = write32(address(0, 2, 0x1DE00), 1)  # S2MM 0 of the core


@pytest.mark.parametrize("poll", [MaskPoll, MaskPollBusy])
def test_a_poll_waits_until_a_register_has_its_value(poll):
    """The lock becomes 2 when a BD releases it; the write behind the poll must come after the data."""
    bd = writebd((0, 2), 0, 4, 2048, lock_acq_enable=1, lock_acq_val=-1, lock_acq_id=5, lock_rel_val=3, lock_rel_id=5)
    send = [writebd((0, 1), 24, 4, 0x20000 + 1024), write32(address(0, 1, 0xA063C), 24)]
    data = [write32(i, 50 + i, where=", buffer = @mb") for i in range(4)]
    before = lowered(column(*data, bd, ENABLE, push((0, 2), "S2MM : 0", 0), *send))
    _, result = emulate_words(column(), [*before, poll(LOCK, 3, 0x3F), Write(address(0, 2, 2048), 7)], elements=64)
    assert result.buffers["cb"][:4].tolist() == [7, 51, 52, 53]


def test_an_unmet_poll_is_a_deadlock_that_names_it():
    with pytest.raises(Deadlock) as fault:
        emulate_words(column(), [MaskPoll(LOCK, 3, 0x3F)], elements=64, budget=100)
    assert (
        "runtime sequence polls value of lock 5 of core (0, 2) until it is 0x3 under mask 0x3f, but it is 0x1"
        in str(fault.value)
    )
    assert "operation 0 of the instruction stream" in str(fault.value)


def test_an_unmet_poll_names_who_could_help():
    """A core waits for lock 5 before it releases it: the circle is reported."""
    core = """
    %core = aie.core(%c) {
      aie.use_lock(%cl, AcquireGreaterEqual, 2)
      aie.use_lock(%cl, Release, 3)
      aie.end
    }"""
    with pytest.raises(Deadlock) as fault:
        emulate_words(column(extra=core), [MaskPoll(LOCK, 3, 0x3F)], elements=64)
    assert "core (0, 2) waits for lock cl (5 of core (0, 2)) >= 2, which is 1" in str(fault.value)


def test_a_poll_for_queue_space_avoids_an_overflow():
    """Bits 22:20 of a channel's status count its tasks: a fifth push after bit 22 has cleared is safe."""
    operations = lowered(loopback(runs=5))
    blocks = [op for op in operations if isinstance(op, BlockWrite)]
    patches = [op for op in operations if isinstance(op, Patch)]
    pushes = [op for op in operations if isinstance(op, Write)]
    ids = [op for op in operations if isinstance(op, MaskWrite)]
    one_run = [BlockWrite(b.address, (32, *b.words[1:])) for b in blocks]
    receive = [one_run[0], patches[0], *[pushes[0]] * 4]
    send = [BlockWrite(one_run[1].address, (32 * 5, *one_run[1].words[1:])), patches[1], pushes[1]]
    tokens = [Sync(0, 0, 0, 1, 1, 0)] * 5
    poll = MaskPoll(QUEUE_STATUS, 0, 1 << 22)
    a, b = np.arange(160, dtype=np.int32), np.zeros(160, np.int32)
    words = encode([*ids, *receive, *send, poll, pushes[0], *tokens], NPU2)
    result = bdforge.emulate(loopback(runs=5), [a, b], instructions=words, permissive=["unread-tokens"])
    assert result.warnings == ()
    same(b[:32], a[128:])
    with pytest.raises(DmaError, match="4 tasks are in flight"):
        bdforge.emulate(loopback(runs=5), [a, b], instructions=encode([*receive, pushes[0]], NPU2))


@pytest.mark.parametrize(
    ("write", "poll"),
    [
        (Write(LOCK, 9), MaskPoll(LOCK, 9, 0x3F)),
        (Write(address(0, 2, 0x1D004), 0x123), MaskPoll(address(0, 2, 0x1D004), 0x123, 0xFFFFFFFF)),
        (
            Write(address(0, 1, 0xA0018), 5 << 23 | 9 << 17),
            MaskPoll(address(0, 1, 0xA0018), 5 << 23 | 9 << 17, 0xFFFFFFFF),
        ),
        (Write(address(0, 1, 0x40), 77), MaskPoll(address(0, 1, 0x40), 77, 0xFFFFFFFF)),
        (Write(0x34000, 0x80), MaskPoll(0x34000, 0x80, 0xFFFFFFFF)),
        (MaskWrite(0x1D200, 0x500, 0x1F00), MaskPoll(0x1D200, 0x500, 0xFFFFFFFF)),
        (Noop(), MaskPoll(QUEUE_STATUS, 0, 0xFFFFFFFF)),
    ],
    ids=["lock", "BD", "iteration counter", "memory", "ignored register", "channel control", "idle channel"],
)
def test_what_was_written_can_be_read_back(write, poll):
    emulate_words(column(), [write, poll], elements=64)


def test_the_status_of_a_channel_shows_its_tasks():
    """Two tasks wait for data: queue size 2, running, stalled on the stream, state 2."""
    before = lowered(column(ENABLE, writebd((0, 2), 7, 4, 2048), *[push((0, 2), "S2MM : 0", 7)] * 2))
    expected = 7 << 24 | 2 << 20 | 1 << 19 | 1 << 4 | 2
    emulate_words(column(), [*before, MaskPoll(address(0, 2, 0x1DF00), expected, 0xFFFFFFFF)], elements=64)
    locked = lowered(column(
        ENABLE, writebd((0, 2), 7, 4, 2048, lock_acq_enable=1, lock_acq_val=2, lock_acq_id=5),
        push((0, 2), "S2MM : 0", 7),
    ))  # fmt: skip
    expected = 7 << 24 | 1 << 20 | 1 << 19 | 1 << 2 | 2
    emulate_words(column(), [*locked, MaskPoll(address(0, 2, 0x1DF00), expected, 0xFFFFFFFF)], elements=64)
