"""One client's array: buffers in memory that both map, and runs, one after another."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from socket import socket
from threading import Thread

from bdforge.array.emulator import BudgetExceeded, Deadlock, EmulationError
from bdforge.array.emulator.resident_design import Resident
from bdforge.common.messages import Fault
from bdforge.runtime.service.client_memory import SharedMemory
from bdforge.runtime.service.wire import (
    PacketKind,
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
