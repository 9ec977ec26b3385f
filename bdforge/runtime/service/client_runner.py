"""One client's array: buffers in memory that both map, and runs, one after another."""

import os
from bisect import bisect_right, insort
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from mmap import PAGESIZE, mmap
from pathlib import Path
from queue import SimpleQueue
from socket import socket
from threading import Thread

import numpy as np

from bdforge.array.emulator import BudgetExceeded, Deadlock, EmulationError
from bdforge.array.emulator.resident_design import Resident
from bdforge.array.images.control_code import placed_arguments, sequence_words, without_load
from bdforge.common.files import FileError, read_bytes
from bdforge.common.messages import Fault
from bdforge.runtime.service.wire import (
    PacketKind,
    RunForm,
    RunRequest,
    Status,
    WireError,
    answer_of,
    buffer_of,
    discard,
    freed_by,
    receive,
    runs_of,
    sequence_of,
)


class SharedMemory:
    """Buffers, which stay mapped while the array uses them."""

    def __init__(self) -> None:
        self._buffers: dict[int, np.ndarray] = {}
        self._addresses: list[int] = []

    def add(self, address: int, size: int, offset: int, files: list[int]) -> None:
        """Map a client's buffer; WireError where its file does not hold as much."""
        if not files or offset % PAGESIZE or not 0 < size <= os.fstat(files[0]).st_size - offset:
            raise WireError("a BUFFER without that much memory")
        self._put(address, np.frombuffer(mmap(files[0], size, offset=offset), np.uint8))

    def add_sequence(self, address: int, elf: Path, name: str) -> None:
        """The words of a full ELF's sequence, without the configuration that they start with; InputError where the file
        holds none of that name."""
        self._put(address, np.frombuffer(sequence_words(read_bytes(elf, FileError), name), np.uint8))

    def _put(self, address: int, memory: np.ndarray) -> None:
        self.drop(address)
        self._buffers[address] = memory
        insort(self._addresses, address)

    def drop(self, address: int) -> None:
        """Forget a buffer, if it is there."""
        if self._buffers.pop(address, None) is not None:
            self._addresses.remove(address)

    def at(self, address: int, size: int = 0) -> np.ndarray:
        """The bytes from an address to the end of its buffer; WireError where no buffer has `size` bytes of it."""
        size, before = max(size, 1), bisect_right(self._addresses, address)
        start = self._addresses[before - 1] if before else 0
        if not before or len(self._buffers[start]) - (address - start) < size:
            raise WireError(f"a run names {size} bytes at {address:#x}, where no buffer holds them")
        return self._buffers[start][address - start :]

    def stream(self, run: RunRequest) -> tuple[bytes, list[np.ndarray]]:
        """Instruction words of a run, and its arguments."""
        words, addresses = self.at(run.address, run.size)[: run.size or None].tobytes(), run.arguments
        if run.form is RunForm.CONTROL_CODE:
            words, addresses = without_load(words), placed_arguments(words)
        return words, [self.at(address) for address in addresses]


Tell = Callable[[str], None]
"""Takes what users should read: warnings of runs."""


def own_fault(error: Exception) -> str:
    """What clients are told of an error that nobody foresaw."""
    return f"a fault of bdforge itself, {type(error).__name__}: {error}; please report it"


class ClientRunner:
    """Serves one client until it is gone."""

    def __init__(self, resident: Resident, tell: Tell):
        self._resident, self._tell = resident, tell
        self._memory = SharedMemory()
        self._warned: set[str] = set()

    def serve(self, client: socket) -> None:
        """Do what the packets ask, until the connection ends or holds something that is no packet."""
        packets: SimpleQueue[tuple[bytes, list[int]] | None] = SimpleQueue()
        Thread(target=_read, args=(client, packets), daemon=True).start()  # clients never wait to send
        with suppress(WireError):
            while (came := packets.get()) is not None:
                self._take(*came)

    def _take(self, packet: bytes, files: list[int]) -> None:
        match int.from_bytes(packet[:4], "little"):
            case PacketKind.BUFFER:
                self._memory.add(*buffer_of(packet), files)
            case PacketKind.FREE:
                self._memory.drop(freed_by(packet))
            case PacketKind.RUN if files:
                self._answer(files.pop(), [partial(self._run, run) for run in runs_of(packet)])
            case PacketKind.SEQUENCE if files:
                address, path, name = sequence_of(packet)
                self._answer(files.pop(), [lambda: self._memory.add_sequence(address, Path(path), name)])
            case _:
                raise WireError("a packet of an unknown kind")
        discard(files)

    def _answer(self, file: int, runs: list[Callable[[], None]]) -> None:
        done, status, text = 0, Status.DONE, ""
        while done < len(runs) and status is Status.DONE:
            status, text = self._outcome(runs[done])
            done += status is Status.DONE
        with suppress(OSError):  # nobody waits any more
            os.write(file, answer_of(status, text, done))
        os.close(file)

    def _outcome(self, run: Callable[[], None]) -> tuple[Status, str]:
        try:
            run()
        except (Deadlock, BudgetExceeded) as error:
            return Status.STUCK, str(error)
        except (EmulationError, Fault, WireError) as error:
            return Status.FAULT, str(error)
        except MemoryError:
            return Status.FAULT, "memory is used up; give less at a time, or end other programs"
        except Exception as error:
            return Status.FAULT, own_fault(error)
        return Status.DONE, ""

    def _run(self, run: RunRequest) -> None:
        for warning in self._resident.run(*self._memory.stream(run)):
            if warning not in self._warned:
                self._warned.add(warning)
                self._tell(warning)


def _read(client: socket, packets: SimpleQueue) -> None:
    while (came := receive(client)) is not None:
        packets.put(came)
    packets.put(None)
