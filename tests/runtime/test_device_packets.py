"""What goes over the device server's connections, and the memory that clients share: each size taken and refused."""

import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bdforge.array.emulator import BudgetExceeded, Deadlock, EmulationError
from bdforge.array.images.control_code import sequence_words
from bdforge.common.messages import Fault, InputError
from bdforge.devices import device_named
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import BlockWrite, LoadPdi, Operation, Patch, Write
from bdforge.runtime.built_design import BuildError
from bdforge.runtime.service import origin, server, wire
from bdforge.runtime.service.client_runner import ClientRunner, SharedMemory
from bdforge.runtime.service.wire import RunForm, RunRequest, Status, WireError
from support.images import IMAGES

PAGE = 4096


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def run(form: int, address: int, size: int, *arguments: int) -> bytes:
    """One run of a RUN."""
    return struct.pack(f"<IIQQ{len(arguments)}Q", form, len(arguments), address, size, *arguments)


WRONG_RUN, WRONG_FIRST = "a RUN of a wrong size", "the first packet must be OPEN"
READ: dict[str, tuple[Callable, bytes, object]] = {
    "nothing to open": (wire.text_to_open, words(1, 3), ""),
    "a path": (wire.text_to_open, words(1, 3) + b"/a\0b", "/a\0b"),
    "half a head": (wire.text_to_open, words(1, 3)[:7], WRONG_FIRST),
    "no OPEN": (wire.text_to_open, words(2, 3), WRONG_FIRST),
    "an older version": (wire.text_to_open, words(1, 2), "the program speaks version 2 of .* this bdforge 3; build"),
    "a newer version": (wire.text_to_open, words(1, 4), "the program speaks version 4 of"),
    "a buffer": (wire.buffer_of, words(2, 0) + struct.pack("<QQQ", 1 << 40, 7, PAGE), (1 << 40, 7, PAGE)),
    "a buffer's first 31 bytes": (wire.buffer_of, bytes(31), "a BUFFER of a wrong size"),
    "a buffer and a byte": (wire.buffer_of, bytes(33), "a BUFFER of a wrong size"),
    "an address": (wire.freed_by, words(3, 9, 5, 1), (1 << 32) + 5),
    "a short address": (wire.freed_by, bytes(15), "a FREE of a wrong size"),
    "a long address": (wire.freed_by, bytes(17), "a FREE of a wrong size"),
    "a sequence without text": (wire.sequence_of, words(5, 0, 7, 0), "a SEQUENCE of a wrong size"),
    "a sequence without a name": (wire.sequence_of, words(5, 0, 7, 0) + b"/", (7, "/", "")),
    "a sequence": (wire.sequence_of, words(5, 0, 7, 1) + b"/a.elf\0one\0two", ((1 << 32) + 7, "/a.elf", "one\0two")),
    "no run": (wire.runs_of, words(4, 0), []),
    "a run of nothing": (wire.runs_of, words(4, 1) + run(0, 5, 0), [RunRequest(RunForm.STREAM, 5, 0, ())]),
    "two runs": (
        wire.runs_of, words(4, 2) + run(1, 1 << 33, 9, 4, 1 << 60) + run(0, 2, 3, 8),
        [RunRequest(RunForm.CONTROL_CODE, 1 << 33, 9, (4, 1 << 60)), RunRequest(RunForm.STREAM, 2, 3, (8,))],
    ),
    "a form that there is none of": (wire.runs_of, words(4, 1) + run(2, 5, 0), WRONG_RUN),
    "a run less than announced": (wire.runs_of, words(4, 2) + run(0, 5, 0), WRONG_RUN),
    "a run more than announced": (wire.runs_of, words(4, 1) + run(0, 5, 0) * 2, WRONG_RUN),
    "a byte less than its arguments": (wire.runs_of, (words(4, 1) + run(0, 5, 0, 6))[:-1], WRONG_RUN),
    "a byte more than its arguments": (wire.runs_of, words(4, 1) + run(0, 5, 0, 6) + b"\0", WRONG_RUN),
    "an answer": (wire.parse_answer, words(3, 9) + b"stuck", (Status.STUCK, "stuck")),
    "an answer without text": (wire.parse_answer, words(0, 0), (Status.DONE, "")),
    "half an answer": (wire.parse_answer, words(0, 0)[:7], "no answer of this version"),
    "an unknown status": (wire.parse_answer, words(4, 0), "no answer of this version"),
}  # fmt: skip
"""The packet of each case and what it says, or the sentence that refuses it."""


@pytest.mark.parametrize("case", READ)
def test_packets_are_read_whole_or_refused(case: str):
    read, packet, expected = READ[case]
    if not isinstance(expected, str) or not expected or expected.startswith("/"):
        assert read(packet) == expected
        return
    with pytest.raises(WireError, match=expected):
        pytest.fail(f"{case}: {read.__name__} took it for {read(packet)}")


def test_answers_and_statuses_are_as_the_protocol_has_them():
    assert wire.answer_of(Status.STUCK, "é", 513) == words(3, 513) + "é".encode()
    assert {one.name: int(one) for one in (*wire.PacketKind, *Status, *RunForm)} == {
        "OPEN": 1, "BUFFER": 2, "FREE": 3, "RUN": 4, "SEQUENCE": 5, "DONE": 0, "BAD_INPUT": 1, "FAULT": 2, "STUCK": 3,
        "STREAM": 0, "CONTROL_CODE": 1,
    }  # fmt: skip


def test_a_packet_brings_64_kib_and_four_files_that_no_program_inherits():
    ours, theirs = wire.connected()
    with ours, theirs:
        for size in (1, 1 << 16):
            theirs.send(b"x" * size)
            packet, files = wire.receive(ours) or (b"", [])
            assert (len(packet), files) == (size, [])
        given = [os.memfd_create("given") for _ in range(4)]
        wire.socket.send_fds(theirs, [b"x"], given)
        _, files = wire.receive(ours) or (b"", [])
        assert len(files) == 4
        assert not any(map(os.get_inheritable, files))
        wire.discard(files)
        for file in files:
            with pytest.raises(OSError, match="Bad file descriptor"):
                pytest.fail(f"file {file} is still open: {os.fstat(file)}")
        wire.discard(given)
        theirs.close()
        assert wire.receive(ours) is None
        wire.say(ours, Status.DONE)  # nobody is there to hear it


@pytest.mark.parametrize(
    ("size", "offset", "taken"),
    [
        (1, 0, True), (2 * PAGE, 0, True), (2 * PAGE + 1, 0, False), (PAGE, PAGE, True), (PAGE + 1, PAGE, False),
        (0, 0, False), (1, 1, False), (1, PAGE // 2, False), (1, 2 * PAGE, False),
    ],
)  # fmt: skip
def test_a_buffer_has_as_much_as_its_file_from_a_page_on(size: int, offset: int, taken: bool):
    file = os.memfd_create("shared")
    os.write(file, bytes([1]) * PAGE + bytes([2]) * PAGE)
    memory = SharedMemory()
    try:
        if taken:
            memory.add(7, size, offset, [file])
            found = memory.at(7)
            assert (len(found), found[0], found[-1]) == (size, 1 + offset // PAGE, 1 + (offset + size - 1) // PAGE)
            return
        with pytest.raises(WireError, match="a BUFFER without that much memory"):
            pytest.fail(f"{size} bytes at {offset} of {2 * PAGE} are taken: {memory.add(7, size, offset, [file])}")
    finally:
        os.close(file)


def shared(*buffers: tuple[int, int]) -> SharedMemory:
    """Buffers of (address, bytes), which count their bytes from 0."""
    memory = SharedMemory()
    for address, size in buffers:
        file = os.memfd_create("shared")
        os.write(file, bytes(range(size)))
        memory.add(address, size, 0, [file])
        os.close(file)
    return memory


def test_a_buffer_needs_a_file():
    with pytest.raises(WireError, match="a BUFFER without that much memory"):
        pytest.fail(f"no file is taken: {SharedMemory().add(7, 1, 0, [])}")


@pytest.mark.parametrize(
    ("address", "size", "found"),
    [
        (100, 0, range(10)), (100, 10, range(10)), (100, 11, None), (109, 1, range(9, 10)), (109, 0, range(9, 10)),
        (109, 2, None), (110, 1, range(5)), (114, 0, range(4, 5)), (115, 0, None), (99, 1, None), (299, 1, None),
        (300, 3, range(3)), (303, 0, None),
    ],
)  # fmt: skip
def test_an_address_is_in_the_last_buffer_before_it(address: int, size: int, found: range | None):
    memory = shared((300, 3), (100, 10), (110, 5))
    if found is not None:
        assert memory.at(address, size).tolist() == list(found)
        return
    with pytest.raises(WireError, match=f"a run names {max(size, 1)} bytes at {address:#x}, where no buffer"):
        pytest.fail(f"{size} bytes at {address} are {memory.at(address, size)}")


def test_a_buffer_at_a_known_address_takes_its_place_until_it_is_freed():
    memory = shared((100, 10), (110, 5), (100, 3))
    assert memory.at(100).tolist() == [0, 1, 2]
    memory.drop(100)
    memory.drop(100)
    for gone in (100, 105):
        with pytest.raises(WireError, match=f"at {gone:#x}"):
            pytest.fail(f"{gone} is freed and still there: {memory.at(gone)}")
    assert memory.at(110).tolist() == [0, 1, 2, 3, 4]


def test_words_of_a_run_are_as_many_as_it_says_or_all():
    memory = shared((100, 8), (200, 4))
    for size, count in ((0, 8), (4, 4), (8, 8)):
        content, arguments = memory.stream(RunRequest(RunForm.STREAM, 100, size, (201, 200)))
        assert content == bytes(range(count))
        assert [one.tolist() for one in arguments] == [[1, 2, 3], [0, 1, 2, 3]]


CONTROL = [LoadPdi(0, 64, 0), BlockWrite(0x1D004, (0x8000_0000 + 201, 0)), Patch(0x1D004, 0, 0), Write(4, 5)]
"""Of a full ELF: a load, then a BD for an argument at 201, to which XRT has added where arrays see DRAM."""


def encoded(*operations: Operation) -> bytes:
    return encode(operations, device_named("strix_halo")).tobytes()


def test_control_code_loses_its_load_and_names_its_arguments_itself():
    content, memory = encoded(*CONTROL), shared((200, 4))
    memory.add(PAGE, *mapped(content))
    code, arguments = memory.stream(RunRequest(RunForm.CONTROL_CODE, PAGE, len(content), ()))
    assert (code, [one.tolist() for one in arguments]) == (encoded(*CONTROL[1:]), [[1, 2, 3]])
    assert memory.stream(RunRequest(RunForm.STREAM, PAGE, len(content), ())) == (content, [])


def mapped(content: bytes) -> tuple[int, int, list[int]]:
    """Bytes, offset and file of a buffer."""
    file = os.memfd_create("shared")
    os.write(file, content)
    return len(content), 0, [file]


def test_a_sequence_of_a_full_elf_is_a_buffer_at_its_address(tmp_path: Path):
    elf, memory = tmp_path / "a.elf", shared((100, 8))
    elf.write_bytes(IMAGES["full_elf_small"])
    memory.add_sequence(200, elf, "sequence")
    assert memory.at(200).tobytes() == sequence_words(elf.read_bytes(), "sequence")
    assert memory.at(100).tolist() == list(range(8))
    with pytest.raises(InputError, match="nothing"):
        memory.add_sequence(1 << 20, elf, "nothing")
    with pytest.raises(InputError, match=r"b\.elf: cannot be read: No such file"):
        memory.add_sequence(1 << 20, tmp_path / "b.elf", "sequence")
    with pytest.raises(WireError, match="at 0x100000"):
        memory.at(1 << 20)


class Outcomes:
    """In an array's place: what each of its runs does."""

    def __init__(self, *outcomes: list[str] | Exception):
        self.left = list(outcomes)

    def run(self, _words: bytes, _buffers: list[np.ndarray]) -> list[str]:
        outcome = self.left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


ENDS = {
    "a deadlock": (Deadlock("it waits"), Status.STUCK, "it waits"),
    "a spent budget": (BudgetExceeded("it runs on"), Status.STUCK, "it runs on"),
    "an address": (WireError("no buffer holds them"), Status.FAULT, "no buffer holds them"),
    "a fault of the array": (EmulationError("a wrong word"), Status.FAULT, "a wrong word"),
    "a fault of a kernel": (Fault("it fell"), Status.FAULT, "it fell"),
    "memory": (MemoryError(), Status.FAULT, "memory is used up; give less at a time, or end other programs"),
    "a fault of its own": (KeyError(7), Status.FAULT, "a fault of bdforge itself, KeyError: 7; please report it"),
}


def served(outcomes: Outcomes, *packets: bytes) -> tuple[list[bytes], list[str]]:
    """Answers to packets, each of which comes with a pipe, and what users are told."""
    ours, theirs = wire.connected()
    answers, told = [], []
    pipes = [os.pipe() for _ in packets]
    with ours, theirs:
        for packet, (_, write) in zip(packets, pipes, strict=True):
            wire.socket.send_fds(ours, [packet], [write])
            os.close(write)
        ours.shutdown(wire.socket.SHUT_WR)
        runner = ClientRunner(outcomes, told.append)  # type: ignore[arg-type]
        runner._memory = shared((100, 8))
        before = set(threading.enumerate())
        runner.serve(theirs)
        for thread in set(threading.enumerate()) - before:  # what reads packets ends with them
            thread.join()
    for read, _ in pipes:
        os.set_blocking(read, False)  # what is not answered stays open
        with os.fdopen(read, "rb", 0) as pipe:
            answers.append(pipe.read() or b"")
    return answers, told


@pytest.mark.parametrize("case", ENDS)
def test_runs_end_with_the_first_that_fails(case: str):
    error, status, text = ENDS[case]
    outcomes = Outcomes(["slow"], error, ["never"], ["slow", "odd"])
    several, one = words(4, 3) + run(0, 100, 8) * 3, words(4, 1) + run(0, 100, 8)
    (failed, _, good), told = served(outcomes, several, one, one)
    assert failed == words(status, 1) + text.encode()
    assert good == words(Status.DONE, 1)
    assert told == ["slow", "never", "odd"]


@pytest.mark.parametrize(
    "packet", [words(0, 0), words(6, 0), words(4, 1), words(5, 0, 7, 0)], ids=["0", "6", "short RUN", "short SEQUENCE"]
)
def test_what_is_no_packet_ends_the_service(packet: bytes):
    good = words(4, 1) + run(0, 100, 8)
    before, wrong, after = served(Outcomes([], []), good, packet, good)[0]
    assert (before, wrong, after) == (words(0, 1), b"", b"")


def test_a_packet_that_wants_an_answer_needs_a_file():
    for packet in (words(4, 0), words(5, 0, 7, 0) + b"/a\0b"):
        with pytest.raises(WireError, match="a packet of an unknown kind"):
            pytest.fail(f"{packet!r} is taken: {ClientRunner(Outcomes(), print)._take(packet, [])}")  # type: ignore[arg-type]


def test_a_configuration_has_a_byte_to_64_mib(monkeypatch: pytest.MonkeyPatch):
    assert origin.PDI_BYTES_MOST == 64 << 20
    monkeypatch.setattr(origin, "PDI_BYTES_MOST", 5)
    for size, taken in ((0, False), (1, True), (5, True), (6, False)):
        file = os.memfd_create("pdi")
        os.ftruncate(file, size)
        if taken:
            assert origin.configured("npu2", file, []).pdi == bytes(size)
            continue
        with pytest.raises(BuildError, match=f"configuration has {size} bytes; it takes 1 to 5$"):
            pytest.fail(f"{size} bytes are taken: {origin.configured('npu2', file, []).array}")


class Peer:
    """A client's socket, of which only the other end's credentials are asked for."""

    def __init__(self, *credentials: int):
        self.credentials = struct.pack("iII", *credentials)

    def getsockopt(self, *_: int) -> bytes:
        return self.credentials


def test_a_client_belongs_to_this_user_whatever_its_process_and_group():
    user = os.getuid()
    for mine, credentials in ((True, (user + 1, user, user + 2)), (False, (user, user + 1, user))):
        assert server._is_ours(Peer(*credentials)) is mine, credentials  # type: ignore[arg-type]
