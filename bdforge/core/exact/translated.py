"""The fast executor: a program's bundles translated once into steps, which a compiled library runs.

Bundles are translated when execution reaches them first, a stretch at a time, so random jumps and code that is never
reached cost nothing, and bytes that are no bundle matter only where they would run.
"""

import ctypes
import os
import weakref
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from bdforge.core.exact import engine_build as build
from bdforge.core.exact.bundle_rows import REQUESTS
from bdforge.core.exact.core_memory import DataMemory
from bdforge.core.exact.core_state import nothing_known
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.interpreter import Steps as Run
from bdforge.core.exact.profile import PartMark, Parts
from bdforge.core.exact.register_layout import FORWARDED
from bdforge.core.exact.requests import RunBeside, answered, request_of
from bdforge.core.exact.translated_program import compiled, translated
from bdforge.core.isa import Isa, leaves
from bdforge.core.isa.core_registers import reset_values
from bdforge.core.isa.errors import AccessError, ControlError, DecodeError, ExecutionError, OpenError, StepBudgetError
from bdforge.core.isa.meaning import ASSUMPTIONS, Approximated, Approximation, approximated

_UNKNOWN = 4
_STRETCH = 1 << 20  # bundles after which compiled states are looked for
SHORT = 512
"""Bundles behind a request, at least, with which a core counts as one that computes for long: some 50 us."""
_FAULTS = {1: OpenError, 2: AccessError, 3: ControlError, _UNKNOWN: OpenError}


def _told(what: str) -> Any:
    """A number that the library's state has, as `Interpreter` does."""
    return property(lambda self: getattr(self._state, what))


class Translated:
    """A core with its registers and program, with the interface of `Interpreter`."""

    def __init__(self, isa: Isa, program: bytes, memory: DataMemory) -> None:
        self.isa, self.memory = isa, memory
        self.events: list[int] = []
        self.done = False
        self._program = translated(isa, program)
        self._library = self._program.library
        self._core = self._library.engine_core(
            self._program.handle, _pointers(memory.windows), _pointers(memory.written)
        )
        weakref.finalize(self, self._library.engine_drop_core, self._core)
        self._state: build.EngineState = self._core.contents
        self._seen = 0  # of the marks
        self._shares, self._until, self.waits = False, 0, False
        self._long: set[int] = set()  # where it has computed for long
        self._status = build.BUDGET  # of the run beside others
        for register, value in reset_values(isa.generation).items():
            self.write(register, value)

    def read(self, register: str) -> int:
        """A register's value now; IsaError for an unknown name."""
        return sum(self._leaf(leaf.name, leaf.bits) << leaf.lsb for leaf in leaves(self.isa.generation, register))

    def _leaf(self, name: str, bits: int) -> int:
        place = self._program.layout.places[name]
        return int.from_bytes(self._state.registers[place : place - -bits // 8], "little")

    def write(self, register: str, value: int) -> None:
        """Set a register now; IsaError for an unknown name."""
        for leaf in leaves(self.isa.generation, register):
            place = self._program.layout.places[leaf.name]
            data = (value >> leaf.lsb & ((1 << leaf.bits) - 1)).to_bytes(-(-leaf.bits // 8), "little")
            for at in (place, place + FORWARDED):
                words = at // 4, at // 4 - -len(data) // 4
                self._state.registers[at : at + len(data)] = data
                self._state.unknown[slice(*words)] = bytes(words[1] - words[0])

    @property
    def code(self) -> bytes:
        """Program memory."""
        return self._program.code

    pc, cycle, bundles, conflicts, pending_stores = map(
        _told, ("pc", "cycle", "bundles", "conflicts", "pending_stores")
    )

    @property
    def counts(self) -> dict[int, int]:
        """How often the bundle at each address has run."""
        return _by_address(self._state.counts)

    @property
    def macs(self) -> dict[int, int]:
        """How many multiplications with accumulation, of lanes, the bundle at each address has made."""
        return _by_address(self._state.macs)

    def assume(self) -> None:
        """Go on where results are assumed (`bdforge.core.isa.meaning.Partly`), which `assumed` then names."""
        self._state.assumes = 1

    def approximate(self, how: Approximation) -> None:
        """What becomes of approximations from now on; `approximated` names those that were made."""
        self._state.approximation = how

    def share(self) -> None:
        """Let others run at the same time: where this core computes for long, `run` asks for `RunBeside`."""
        self._shares = True

    @property
    def assumed(self) -> list[str]:
        """Why results so far may be otherwise."""
        made = self._state.assumed
        return [reason for i, reason in enumerate(ASSUMPTIONS) if made >> i & 1] if made else []

    @property
    def approximated(self) -> list[Approximated]:
        """Functions that were approximated so far, with their bounds."""
        made = self._state.assumed >> len(ASSUMPTIONS)
        return [row for i, row in enumerate(approximated()) if made >> i & 1] if made else []

    @property
    def uses(self) -> list[int]:
        """Accesses by bank, those of the southern memory first."""
        return list(self._state.uses)

    def watch(self, parts: Parts) -> None:
        """Note where parts of the program begin to run, for `marks`."""
        self._parts = (ctypes.c_int16 * len(parts.numbers))(*parts.numbers)
        self._state.parts = ctypes.addressof(self._parts)

    def marks(self) -> list[PartMark]:
        """What was noted since it was asked for last."""
        first, self._seen = self._seen, self._state.marked
        return [PartMark(mark.cycle, mark.conflicts, mark.part) for mark in self._state.marks[first : self._seen]]

    def run(self, budget: int) -> Run:
        """Until DONE, and until what is under way then has ended; ExecutionError and DecodeError name the bundle."""
        if self.done:
            return
        yield from self._run(self.bundles + budget)
        if not self.done:
            raise StepBudgetError(f"at {self.pc:#x}: no end after {budget} bundles")

    def step(self) -> Run:
        """One bundle, and behind DONE what is under way; nothing once the core has stopped."""
        if not self.done:
            yield from self._run(self.bundles + 1)

    def _run(self, until: int) -> Generator[Any, Any, None]:
        self._until, start = until, self.pc
        while True:
            if start in self._long:
                self.waits = True
                yield RunBeside()
                status = self._status
            else:
                status = self._alone()
            if status == build.BUDGET and self.bundles < until:
                if self._shares:
                    self._long.add(start)
                continue
            if status == build.ASK:
                yield from self._ask()
                start = self.pc
            elif status == build.TRANSLATE:
                self._translate()
            elif status == build.FAULT:
                self._fail()
            else:
                self.done = status == build.DONE
                return

    def _alone(self) -> int:
        """Run on; why that stopped."""
        with self._program.lock:
            before = self.bundles
            status = self._library.engine_run(self._core, self._budget(SHORT if self._shares else _STRETCH))
            self._program.compiled.ran(self.bundles - before)
        return status

    def _budget(self, most: int = _STRETCH) -> int:
        return min(max(self._until - self.bundles, 0), most)

    def _translate(self) -> None:
        pc = self.pc
        try:
            with self._program.lock:
                self._program.translate(pc)
        except DecodeError:
            raise
        except ExecutionError as error:
            raise type(error)(f"at {pc:#x}: {error}") from error

    def _fail(self) -> None:
        state = self._state
        message = state.message.decode()
        if state.fault == _UNKNOWN:
            message = nothing_known(self._program.layout.leaf_at(int(message)))
        raise _FAULTS[state.fault](f"at {state.pc:#x}: {message}")

    def _ask(self) -> Generator[Any, Any, None]:
        state = self._state
        kind, address = REQUESTS[state.request], state.request_data
        operands = kind.operands(state.values, ctypes.string_at(address, state.bytes) if any(kind.data) else b"")
        if kind.name == "event":
            self.events.append(operands[0])
            return
        pc, size_bytes = state.pc, state.bytes
        try:
            request = request_of(kind.name, operands)
        except ExecutionError as error:
            raise type(error)(f"at {pc:#x}: {error}") from error
        if request is None:
            return
        answer = yield request
        if size_bytes and not any(kind.data):
            ctypes.memmove(address, answered(kind.name, operands, answer).to_bytes(size_bytes, "little"), size_bytes)


def run_beside(cores: Sequence[Translated]) -> None:
    """Let cores that asked for it run on, on all processors that there are, each as far as it would by itself.

    None may reach memory that another one does: then it is the same in which order they run, or at once.
    """
    programs = {id(core._program): core._program for core in cores}
    with ExitStack() as held:
        for _, program in sorted(programs.items()):  # in one order, whoever takes several
            held.enter_context(program.lock)
        before, count = [core.bundles for core in cores], len(cores)
        statuses = (ctypes.c_int * count)()
        pointers = (ctypes.c_void_p * count)(*(ctypes.addressof(core._state) for core in cores))
        budgets = (ctypes.c_int64 * count)(*(core._budget() for core in cores))
        compiled().engine_run_beside(pointers, budgets, statuses, count, min(count, processors()))
        for core, ran, status in zip(cores, before, statuses, strict=True):
            core._status, core.waits = status, False
            core._program.compiled.ran(core.bundles - ran)


def processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Executor = Interpreter | Translated
"""What runs machine code; both do the same."""


def _pointers(memories) -> Any:
    """Addresses of the memories, 0 for those that are not there."""
    return (ctypes.c_void_p * 4)(*(None if memory is None else memory.ctypes.data for memory in memories))


def _by_address(numbers: Any) -> dict[int, int]:
    found = np.frombuffer(numbers, np.int64)
    return {2 * int(half): int(found[half]) for half in found.nonzero()[0]}
