"""One client's array: buffers in memory that both map, and runs, one after another."""

import os
from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from queue import SimpleQueue
from socket import socket
from threading import Thread

import numpy as np

from bdforge.emulator import EmulationError
from bdforge.emulator.resident import Resident
from bdforge.messages import Fault
from bdforge.runtime.service.wire import (
    Packet,
    Status,
    WireError,
    answer_of,
    buffer_of,
    discard,
    freed_by,
    receive,
    runs_of,
)

Tell = Callable[[str], None]
"""Takes what users should read: warnings of runs."""


class Runner:
    """Serves one client until it is gone."""

    def __init__(self, resident: Resident, tell: Tell):
        self._resident, self._tell = resident, tell
        self._buffers: dict[int, np.ndarray] = {}
        self._told: set[str] = set()

    def serve(self, client: socket) -> None:
        """Do what the packets ask, until the connection ends or holds something that is no packet."""
        packets: SimpleQueue[tuple[bytes, list[int]] | None] = SimpleQueue()
        Thread(target=_read, args=(client, packets), daemon=True).start()  # clients never wait to send
        with suppress(WireError):
            while (came := packets.get()) is not None:
                self._take(*came)

    def _take(self, packet: bytes, files: list[int]) -> None:
        match int.from_bytes(packet[:4], "little"):
            case Packet.BUFFER:
                number, size = buffer_of(packet)
                self._buffers[number] = _mapped(files, size)
            case Packet.FREE:
                self._buffers.pop(freed_by(packet), None)
            case Packet.RUN if files:
                self._answer(files.pop(), *self._outcome(runs_of(packet)))
            case _:
                raise WireError("a packet of an unknown kind")
        discard(files)

    def _answer(self, pipe: int, status: Status, text: str) -> None:
        with suppress(OSError):  # nobody waits any more
            os.write(pipe, answer_of(status, text))
        os.close(pipe)

    def _outcome(self, runs: list[tuple[int, list[int]]]) -> tuple[Status, str]:
        try:
            for words, arguments in runs:
                self._run(words, arguments)
        except (EmulationError, Fault, WireError) as error:
            return Status.FAULT, str(error)
        except MemoryError:
            return Status.FAULT, "memory is used up; give less at a time, or end other programs"
        except Exception as error:
            return Status.FAULT, f"a fault of bdforge itself, {type(error).__name__}: {error}; please report it"
        return Status.DONE, ""

    def _run(self, words: int, arguments: list[int]) -> None:
        warnings = self._resident.run(self._buffer(words).tobytes(), [self._buffer(number) for number in arguments])
        for warning in warnings:
            if warning not in self._told:
                self._told.add(warning)
                self._tell(warning)

    def _buffer(self, number: int) -> np.ndarray:
        if number not in self._buffers:
            raise WireError(f"a run names buffer {number}, which the device was never given")
        return self._buffers[number]


def _read(client: socket, packets: SimpleQueue) -> None:
    while (came := receive(client)) is not None:
        packets.put(came)
    packets.put(None)


def _mapped(files: list[int], size: int) -> np.ndarray:
    """Memory of the client as bytes; it stays mapped while the array lives."""
    if not files or not 0 < size <= os.fstat(files[0]).st_size:
        raise WireError("a BUFFER without that much memory")
    return np.frombuffer(mmap(files[0], size), np.uint8)
