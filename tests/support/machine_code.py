"""Cores that run machine code by themselves: four memories, locks that are numbers, requests answered on the spot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bdforge.core import isa
from bdforge.core.exact.core_memory import WINDOW_BYTES, DataMemory
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.requests import GetRegister, GetTimer, PutHeader, PutRegister
from bdforge.core.exact.translated import Translated
from bdforge.core.isa.assembler import assemble
from bdforge.core.python_kernel import AcquireLock, GetCascade, GetStream, PutCascade, PutStream, ReleaseLock, Request

BUDGET = 100_000
EXECUTORS = (Interpreter, Translated)
"""Everything that runs machine code; all must agree."""


def memories() -> DataMemory:
    """Four windows of zeros."""
    return DataMemory([np.zeros(WINDOW_BYTES, np.uint8) for _ in range(4)])


@dataclass
class World:
    """What a core's requests meet: locks by number, words and values that arrive, what was sent."""

    locks: dict[int, int] = field(default_factory=dict)
    words: list[int] = field(default_factory=list)
    cascade: list[bytes] = field(default_factory=list)
    log: list[list[Any]] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    registers: dict[int, int] = field(default_factory=dict)
    room: int = 1 << 10
    timer: int = 0

    def answer(self, request: Request) -> Any:
        """Serve a request; the test fails on a lock that would block for ever."""
        match request:
            case AcquireLock(lock, value, equal):
                have = self.locks.get(lock, 0)
                assert have == value if equal else have >= value, f"lock {lock} is {have}: the core would block"
                self.locks[lock] = have - value
                self.log.append(["acq", lock, value if equal else -value, self.locks[lock]])
            case ReleaseLock(lock, value):
                self.locks[lock] = self.locks.get(lock, 0) + value
                self.log.append(["rel", lock, value, self.locks[lock]])
            case GetStream(_, _, wait):
                return self.words.pop(0) if wait or self.words else None
            case GetCascade():
                return np.frombuffer(self.cascade.pop(0), np.uint8)
            case PutStream(_, data, last, wait):
                if not wait and not self.room:
                    return None
                self.room -= 1
                self.sent.append((int.from_bytes(data, "little"), last))
                return None if wait else True
            case PutHeader(kind, number, last):
                self.sent.append((kind, number, last))
                return True
            case GetRegister(offset):
                return self.registers.get(offset, 0)
            case PutRegister(offset, value):
                self.registers[offset] = value
            case GetTimer():
                return self.timer
            case PutCascade(data):
                self.sent.append(data)
        return None


def drive(core: Any, world: World | None = None, budget: int = BUDGET) -> World:
    """Run a core to its end."""
    world = World() if world is None else world
    steps, answer = core.run(budget), None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration:
            return world
        answer = world.answer(request)


def code_of(text: str, generation: str = "aie2p") -> bytes:
    """Program memory of assembly text, with DONE behind it."""
    ((_, data),) = assemble(f"{text}\n done\n", generation, "test.s").code
    return data


def bits(values: np.ndarray) -> int:
    """A register of lanes."""
    return int.from_bytes(values.tobytes(), "little")


def run_text(
    executor: Any, text: str, registers: Mapping[str, int], generation: str = "aie2p", world: World | None = None
) -> Any:
    """A core after it has run assembly text."""
    core = executor(isa.load(generation), code_of(text, generation), memories())
    for name, value in registers.items():
        core.write(name, value)
    drive(core, world)
    return core
