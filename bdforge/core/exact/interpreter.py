"""The plain interpreter: one bundle after the other, every read and write in its own cycle. Slow, and the oracle."""

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bdforge.core.exact.core_memory import BANK_BYTES, BANKS, DataMemory, walked
from bdforge.core.exact.core_state import ControlState, CoreRegisters, behind_slots, checked
from bdforge.core.exact.instruction_plan import DEPTH, PART_BITS, InstructionPlan, plan_of
from bdforge.core.exact.profile import MOST_MARKS, PartMark, Parts
from bdforge.core.exact.requests import PARTS, answered, request_of
from bdforge.core.isa import Isa, memory_turn
from bdforge.core.isa.errors import ControlError, DecodeError, ExecutionError, OpenError, StepBudgetError
from bdforge.core.isa.meaning import (
    ADDRESS,
    APPROXIMATION,
    ASSUMPTIONS,
    DATA,
    Approximated,
    Approximation,
    MeaningKind,
    Partly,
    Result,
    approximated,
    compute,
    macs_of,
)
from bdforge.core.isa.meaning.fifo import stored_bytes
from bdforge.core.isa.meaning.floats import ROUNDING

Steps = Generator[Any, Any, None]
"""Runs of a core: yields requests of `bdforge.core.python_kernel` and is sent their answers."""


@dataclass(slots=True)
class Flight:
    """An instruction under way: what it has read, loaded and made."""

    plan: InstructionPlan
    issued: int
    slot: int
    pc: int
    address: int = 0
    values: dict[str, int] = field(default_factory=dict)


class Interpreter:
    """A core with its registers and program.

    `code` is program memory; execution starts at `control.pc`. Registers are kept by leaf; `read` and `write` take
    any name. `cycle` counts bundles issued and what follows the last one, `bundles` those only; `conflicts` counts
    accesses that wait for a bank that the core itself uses in the same cycle. `counts` says how often the bundle at
    each address has run, `macs` the multiplications with accumulation of lanes that it has made, `uses` how often each
    bank was accessed, those of the southern memory first; `events` are the numbers of EVENT.
    """

    def __init__(self, isa: Isa, program: bytes, memory: DataMemory) -> None:
        self.isa, self.code, self.memory = isa, program, memory
        self.registers = CoreRegisters(isa.generation)
        self.control = ControlState()
        self.cycle = self.bundles = self.conflicts = 0
        self.done = False
        self.events: list[int] = []
        self.counts: Counter[int] = Counter()
        self.macs: Counter[int] = Counter()
        self.uses = [0] * BANKS
        self._kept = -1  # the last cycle in which an 8- or 16-bit store keeps memory
        self._assumes = False
        self._approximation = Approximation.OFF
        self._assumed: set[str] = set()
        self._flights: list[Flight] = []
        self._banks: list[int] = []  # that are accessed in this cycle
        self._parts: Parts | None = None
        self._marks: list[PartMark] = []

    def watch(self, parts: Parts) -> None:
        """Note where parts of the program begin to run, for `marks`."""
        self._parts, self._part, self._left = parts, -1, MOST_MARKS

    def marks(self) -> list[PartMark]:
        """What was noted since it was asked for last."""
        found, self._marks = self._marks, []
        return found

    def _mark(self, pc: int) -> None:
        if self._parts is None or self._parts.numbers[pc // 2] == self._part or not self._left:
            return
        self._part, self._left = self._parts.numbers[pc // 2], self._left - 1
        self._marks.append(PartMark(self.cycle, self.conflicts, self._part))

    def assume(self) -> None:
        """Go on where results are assumed (`bdforge.core.isa.meaning.Partly`), which `assumed` then names."""
        self._assumes = True

    def approximate(self, how: Approximation) -> None:
        """What becomes of approximations from now on; `approximated` names those that were made."""
        self._approximation = how

    @property
    def assumed(self) -> list[str]:
        """Why results so far may be otherwise."""
        return [reason for reason in ASSUMPTIONS if reason in self._assumed]

    @property
    def approximated(self) -> list[Approximated]:
        """Functions that were approximated so far, with their bounds."""
        return [row for row in approximated() if row.reason in self._assumed]

    @property
    def pc(self) -> int:
        """The address of the bundle that runs, or of the next one."""
        return self.control.pc

    @property
    def pending_stores(self) -> int:
        """Stores that write in a later cycle than the present one."""
        return sum(flight.issued + flight.plan.store - 1 > self.cycle for flight in self._flights)

    def read(self, register: str) -> int:
        """A register's value now; IsaError for an unknown name."""
        return self.registers.read(register)

    def write(self, register: str, value: int) -> None:
        """Set a register now; IsaError for an unknown name."""
        self.registers.write(register, value)

    def run(self, budget: int) -> Steps:
        """Until DONE, and until what is under way then has ended; ExecutionError and DecodeError name the bundle."""
        left = budget
        while not self.done:
            if not left:
                raise StepBudgetError(f"at {self.pc:#x}: no end after {budget} bundles")
            left -= 1
            yield from self.step()

    def step(self) -> Steps:
        """One bundle, and behind DONE what is under way; nothing once the core has stopped."""
        if self.done:
            return
        pc = self.control.pc
        try:
            yield from self._issue(pc)
            pc = self.control.pc
            for _ in range(DEPTH if self.done else 0):  # cycles without a bundle
                self.registers.land(self.cycle)
                yield from self._do_cycle(self.control.pc, 0)
        except DecodeError:
            raise
        except ExecutionError as error:
            raise type(error)(f"at {pc:#x}: {error}") from error

    def _issue(self, pc: int) -> Steps:
        self.registers.land(self.cycle)  # what lands in a cycle is seen by what reads in it
        bundle = self.isa.decode(self.code, checked(pc, self.code))
        plans = [plan_of(self.isa.generation, instruction) for instruction in bundle]
        yield from self._wait(pc, *memory_turn(bundle))
        self.bundles += 1
        self.counts[pc] += 1
        self._mark(pc)
        self._flights += [Flight(plan, self.cycle, slot, pc) for slot, plan in enumerate(plans)]
        loop_start = self._loop_start(pc)
        yield from self._do_cycle(pc, bundle.size)
        self.control.advance(bundle.size, loop_start)

    def _wait(self, pc: int, needs: int, keeps: int) -> Steps:
        """Cycles until memory is there for a bundle: an 8- or 16-bit store keeps it, and what is under way goes on."""
        while needs >= 0 and self.cycle + needs <= self._kept:
            yield from self._do_cycle(pc, 0)
            self.registers.land(self.cycle)
        self._kept = self.cycle + keeps if keeps else self._kept

    def _loop_start(self, pc: int) -> int | None:
        """Where a hardware loop goes on after its last bundle, if it does; a pass is counted."""
        if pc != self.read("le") or not self.read("lc"):
            return None
        self.write("lc", self.read("lc") - 1)
        return self.read("ls") if self.read("lc") else None

    def _do_cycle(self, pc: int, size_bytes: int) -> Steps:
        """Reads, then branches and requests, then loads, results and stores of all that is under way."""
        due = [(flight, self.cycle - flight.issued + 1) for flight in self._flights]
        for flight, stage in due:
            self._read_operands(flight, stage)
        for flight, stage in due:
            yield from self._outside(flight, stage, pc, size_bytes)
        for do in (self._load, self._operate, self._store):
            for flight, stage in due:
                do(flight, stage)
        self._count_conflicts()
        self.cycle += 1
        self._flights = [flight for flight, stage in due if stage < flight.plan.last]

    def _read_operands(self, flight: Flight, stage: int) -> None:
        if stage == 1:
            flight.values |= flight.plan.constants | {APPROXIMATION: int(self._approximation)}
        for operand in flight.plan.reads:
            if operand.stage == stage:
                flight.values[operand.name] = self.registers.value(operand, self.cycle)
        if stage == flight.plan.walk:
            self._walk(flight)
        if stage == flight.plan.count:
            self._count(flight)

    def _count(self, flight: Flight) -> None:
        """The next part of the cascade; behind the last one nobody knows."""
        assert flight.plan.meaning.counts
        counter, result = flight.plan.meaning.counts
        following = flight.values[counter] + 1
        self._put(flight, {result: following if following < PARTS else Partly(0, 1)})

    def _walk(self, flight: Flight) -> None:
        flight.address, results = walked(flight.plan.meaning, flight.values)
        self._put(flight, results)

    def _put(self, flight: Flight, results: Mapping[str, Result]) -> None:
        """Let results land in their cycle."""
        for name, value in results.items():
            if name == DATA:
                assert isinstance(value, int)
                flight.values[DATA] = value
                continue
            operand, part = flight.plan.writes[name], flight.plan.meaning.part
            if isinstance(part, str) and name in flight.plan.meaning.outputs:
                chosen = (leaf for leaf in operand.leaves if leaf.lsb // PART_BITS == flight.values[part])
                operand = replace(operand, leaves=tuple(chosen))
            self.registers.put(operand, value, (flight.issued, flight.slot))

    def _outside(self, flight: Flight, stage: int, pc: int, size_bytes: int) -> Steps:
        plan = flight.plan
        if plan.meaning.kind is MeaningKind.BRANCH and stage == plan.operate:
            self._branch(flight, pc + size_bytes)
        if stage != plan.ask:
            return
        values = flight.values | {ADDRESS: flight.address}
        operands = [values[i] if isinstance(i, str) else i for i in plan.meaning.asks]
        if plan.meaning.request == "done":
            self.done = True
        elif plan.meaning.request == "event":
            self.events.append(operands[0])
        elif (request := request_of(plan.meaning.request, operands)) is not None:
            answer = yield request
            if DATA in plan.meaning.inputs:
                flight.values[DATA] = answered(plan.meaning.request, operands, answer)

    def _branch(self, flight: Flight, after: int) -> None:
        meaning = flight.plan.meaning
        self.control.check_free()
        target, *condition = (flight.values[str(i)] for i in meaning.inputs)
        if meaning.operation == "always" or bool(condition[0]) != (meaning.operation == "zero"):
            self.control.branch(target, meaning.inputs[0] == "lr")
        if meaning.operation == "decrement":
            total = condition[0] + 0xFFFFFFFF
            self._put(flight, dict(zip(meaning.outputs, (total & 0xFFFFFFFF, total >> 32), strict=True)))
        elif meaning.outputs:
            back = behind_slots(self.isa, self.code, after)
            if back is None:
                raise ControlError("the delay slots of a call reach beyond program memory")
            self._put(flight, {"lr": back})

    def _load(self, flight: Flight, stage: int) -> None:
        access = flight.plan.meaning.access
        if not access or stage != flight.plan.load:
            return
        banks = [flight.address // BANK_BYTES]
        if access.kind == "gather":
            flight.values[DATA], banks = self.memory.gather(access, flight.values[access.addresses])
        elif access.kind == "plain":
            flight.values[DATA] = self.memory.load(flight.address, access.size_bytes)
        else:
            flight.values[DATA] = self.memory.load_line(flight.address, access.size_bytes)
            self.memory.check_written(flight.values["ptr"], access.amount * (access.kind == "pop"))
        self._banks += banks

    def _operate(self, flight: Flight, stage: int) -> None:
        plan = flight.plan
        if stage == plan.operate and plan.meaning.kind is not MeaningKind.BRANCH:
            results = compute(plan.meaning, flight.values)
            for reason in (r for found in results.values() if isinstance(found, Partly) for r in found.assumed):
                if reason == ROUNDING and not self._assumes:
                    raise OpenError(reason)
                self._assumed.add(reason)
            self._put(flight, results)
            if macs := macs_of(plan.meaning, flight.values):
                self.macs[flight.pc] += macs

    def _store(self, flight: Flight, stage: int) -> None:
        access = flight.plan.meaning.access
        if not access or stage != flight.plan.store:
            return
        size, fifo = access.size_bytes, bool(access.counter)
        if fifo:
            size = stored_bytes(access, flight.values["ptr"], flight.values[access.counter])
        if size:
            self.memory.store(flight.address, size, flight.values[DATA], aligned=not fifo)
            self._banks.append(flight.address // BANK_BYTES)

    def _count_conflicts(self) -> None:
        """Each bank serves one access in a cycle: the others would wait."""
        places = Counter(self._banks)
        self._banks.clear()
        for place, count in places.items():
            self.uses[place % BANKS] += count
        self.conflicts += max(places.values(), default=1) - 1
