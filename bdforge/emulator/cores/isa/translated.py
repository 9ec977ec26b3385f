"""The fast executor: a program's bundles translated once into steps, which a compiled library runs.

Bundles are translated when execution reaches them first, a stretch at a time, so random jumps and code that is never
reached cost nothing, and bytes that are no bundle matter only where they would run.
"""

import ctypes
import weakref
from collections.abc import Generator
from functools import lru_cache
from typing import Any

import numpy as np

from bdforge.devices.registers import PROGRAM_MEMORY_BYTES
from bdforge.emulator.cores.isa import rows
from bdforge.emulator.cores.isa.asking import DONE, Asking, ask
from bdforge.emulator.cores.isa.build import EngineError, library
from bdforge.emulator.cores.isa.interpreter import Steps as Run
from bdforge.emulator.cores.isa.interpreter import behind_slots, checked
from bdforge.emulator.cores.isa.layout import FORWARDED, layout_of
from bdforge.emulator.cores.isa.memory import DataMemory
from bdforge.emulator.cores.isa.plan import Plan, plan_of
from bdforge.emulator.cores.isa.requests import request_of
from bdforge.emulator.cores.isa.translate import Constant, Place, Step, Steps, steps_of
from bdforge.isa import Isa, leaves
from bdforge.isa.errors import (
    AccessError,
    ControlError,
    DecodeError,
    ExecutionError,
    IsaError,
    OpenError,
    StepBudgetError,
)
from bdforge.isa.meaning import Kind

_STRETCH = 64  # bundles translated at a time
_FAULTS = {1: OpenError, 2: AccessError, 3: ControlError}
_ONES = (1 << 64) - 1


def compiled() -> ctypes.CDLL:
    """The library; EngineError without a compiler."""
    found = library()
    if found is None:
        raise EngineError("machine code is only interpreted: there is no C++ compiler g++")
    return found


class TranslatedProgram:
    """A program's bundles as the library has them; cores with the same program share it."""

    def __init__(self, isa: Isa, code: bytes) -> None:
        self.isa, self.code = isa, code
        self.library = compiled()
        self.layout = layout_of(isa.generation)
        self.handle = self.library.engine_program()
        self.requests: list[Asking] = [DONE]
        self._numbers = {n: i for i, n in enumerate(self.library.engine_functions().decode().split())}
        self._constants: dict[int, int] = {}
        self._known: set[int] = set()
        weakref.finalize(self, self.library.engine_drop_program, self.handle)

    def translate(self, pc: int) -> None:
        """Translate what execution reaches from an address on; faults are those of the bundle there."""
        start = pc
        for _ in range(_STRETCH):
            if pc in self._known:
                return
            try:
                pc = self._add(pc)
            except IsaError:
                if pc == start:
                    raise
                return

    def _add(self, pc: int) -> int:
        bundle = self.isa.decode(self.code, checked(pc, self.code))
        plans = [plan_of(self.isa.generation, instruction) for instruction in bundle]
        made = [(flight, step) for flight, plan in enumerate(plans) for step in self._steps(plan)]
        made.sort(key=lambda one: (one[1].delay, one[1].phase))
        table = (rows.Row * max(len(made), 1))()
        for row, (flight, step) in zip(table, made, strict=False):
            self._fill(row, flight, step)
        after = behind_slots(self.isa, self.code, pc + bundle.size)
        self.library.engine_add(self.handle, pc, bundle.size, -1 if after is None else after, table, len(made))
        self._known.add(pc)
        return pc + bundle.size

    def _steps(self, plan: Plan) -> list[Step]:
        if plan.meaning.kind is not Kind.REQUEST:
            return steps_of(self.layout, plan).made
        steps = Steps(self.layout, plan)
        ask(steps, self.requests)
        return steps.made

    def _fill(self, row: rows.Row, flight: int, step: Step) -> None:
        row.function, row.flight = self._numbers[step.function], flight
        row.delay, row.phase = step.delay, step.phase
        for i, place in enumerate(step.places):
            row.a[i] = self._place(place)
        for i, option in enumerate(step.options):
            row.o[i] = option

    def _place(self, place: Place) -> int:
        if not isinstance(place, Constant):
            return place
        if place.value not in self._constants:
            made = self.library.engine_constant(self.handle, place.value & _ONES)
            self._constants[place.value] = made
        return self._constants[place.value]


@lru_cache(maxsize=64)
def translated(isa: Isa, code: bytes) -> TranslatedProgram:
    """The translation of a program; made once for all cores that run it."""
    return TranslatedProgram(isa, code)


class Translated:
    """A core with its registers and program, with the interface of `Interpreter`."""

    def __init__(self, isa: Isa, program: bytes, memory: DataMemory) -> None:
        self.isa, self.memory = isa, memory
        self.events: list[int] = []
        self.done = False
        self._program = translated(isa, program)
        self._library = self._program.library
        places = self._program.layout.places
        self._core = self._library.engine_core(
            self._program.handle, _pointers(memory.windows), _pointers(memory.written),
            places["lc"], places["ls"], places["le"],
        )  # fmt: skip
        weakref.finalize(self, self._library.engine_drop_core, self._core)
        address = self._library.engine_registers(self._core)
        self._registers = (ctypes.c_uint8 * (2 * FORWARDED)).from_address(address)
        self._state = rows.State()

    def read(self, register: str) -> int:
        """A register's value now; IsaError for an unknown name."""
        return sum(self._leaf(leaf.name, leaf.bits) << leaf.lsb for leaf in leaves(self.isa.generation, register))

    def _leaf(self, name: str, bits: int) -> int:
        place = self._program.layout.places[name]
        return int.from_bytes(bytes(self._registers[place : place + -(-bits // 8)]), "little")

    def write(self, register: str, value: int) -> None:
        """Set a register now; IsaError for an unknown name."""
        for leaf in leaves(self.isa.generation, register):
            place = self._program.layout.places[leaf.name]
            part = value >> leaf.lsb & ((1 << leaf.bits) - 1)
            for at in (place, place + FORWARDED):
                data = part.to_bytes(-(-leaf.bits // 8), "little")
                self._registers[at : at + len(data)] = list(data)

    @property
    def code(self) -> bytes:
        """Program memory."""
        return self._program.code

    @property
    def pc(self) -> int:
        """The address of the bundle that runs, or of the next one."""
        return self._now().pc

    @property
    def cycle(self) -> int:
        """Bundles issued and cycles behind the last one."""
        return self._now().cycle

    @property
    def bundles(self) -> int:
        """Bundles issued."""
        return self._now().bundles

    @property
    def conflicts(self) -> int:
        """Accesses that wait for a bank that the core itself uses in the same cycle."""
        return self._now().conflicts

    @property
    def pending_stores(self) -> int:
        """Stores that write in a later cycle than the present one."""
        return self._now().pending_stores

    @property
    def counts(self) -> dict[int, int]:
        """How often the bundle at each address has run."""
        counts = self._library.engine_counts(self._core)[: PROGRAM_MEMORY_BYTES // 2]
        return {2 * half: count for half, count in enumerate(counts) if count}

    def _now(self) -> rows.State:
        self._library.engine_state(self._core, self._state)
        return self._state

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
        while True:
            state = self._now()
            status = self._library.engine_run(self._core, max(until - state.bundles, 0))
            if status == rows.ASK:
                yield from self._ask()
            elif status == rows.TRANSLATE:
                self._translate()
            elif status == rows.FAULT:
                self._fail()
            else:
                self.done = status == rows.DONE
                return

    def _translate(self) -> None:
        pc = self.pc
        try:
            self._program.translate(pc)
        except DecodeError:
            raise
        except ExecutionError as error:
            raise type(error)(f"at {pc:#x}: {error}") from error

    def _fail(self) -> None:
        state = self._now()
        message = self._library.engine_message(self._core).decode()
        raise _FAULTS[state.fault](f"at {state.pc:#x}: {message}")

    def _ask(self) -> Generator[Any, Any, None]:
        state = self._now()
        kind = self._program.requests[state.request]
        address = self._library.engine_request_data(self._core)
        operands = kind.operands(state.values, ctypes.string_at(address, state.bytes) if any(kind.data) else b"")
        if kind.operation == "event":
            self.events.append(operands[0])
            return
        pc, size_bytes = state.pc, state.bytes
        try:
            request = request_of(kind.operation, operands)
        except ExecutionError as error:
            raise type(error)(f"at {pc:#x}: {error}") from error
        answer = yield request
        if answer is not None:
            data = np.asarray(answer).tobytes() if not isinstance(answer, int) else _word(answer)
            ctypes.memmove(address, data, min(len(data), size_bytes))


def _word(answer: int) -> bytes:
    return (answer & 0xFFFFFFFF).to_bytes(4, "little")


def _pointers(memories) -> Any:
    """Addresses of the memories, 0 for those that are not there."""
    return (ctypes.c_void_p * 4)(*(None if memory is None else memory.ctypes.data for memory in memories))
