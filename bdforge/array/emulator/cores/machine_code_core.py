"""Machine code as a core's program: an executor between program memory and the array."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bdforge.array.emulator.cores.core import EmulatedCore
from bdforge.array.emulator.cores.kernel_call import perform
from bdforge.array.emulator.errors import ArgumentError, BudgetExceeded, CoreError, KernelError
from bdforge.array.emulator.strictness import EDGES
from bdforge.array.emulator.tile import EmulatedTile
from bdforge.core.exact.core_memory import BANK_BYTES, BANKS, WINDOW_BYTES, DataMemory
from bdforge.core.exact.engine_build import library
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.profile import CoreProfile, Parts, PartTimeline, shares
from bdforge.core.exact.requests import GetRegister, GetTimer, PutHeader, PutRegister, RunBeside
from bdforge.core.exact.translated import Executor, Translated, run_beside
from bdforge.core.isa import Isa, IsaError
from bdforge.core.isa.errors import StepBudgetError
from bdforge.core.isa.meaning.floats import ROUNDING
from bdforge.core.isa.meaning.nonlinear import is_approximation
from bdforge.core.python_kernel import PutStream, ReleaseLock
from bdforge.devices.limits import CORE_LOCK_WINDOWS, GRANULE_BYTES, TileKind
from bdforge.devices.registers import packet_header

_BREAKPOINT = re.compile(r"(\d+),(\d+):(\w+)")
_MOST_NAME = 60
_BANKS_OF_A_TILE = WINDOW_BYTES // BANK_BYTES


Look = Callable[[tuple[int, int], Executor, str], None]
"""Gets the core's column and row, what runs it, before a bundle, and where it stands in words."""


@dataclass(frozen=True, slots=True)
class Breakpoints:
    """Addresses or names in program memory by column and row of a core, and who looks."""

    look: Look
    places: Mapping[tuple[int, int], frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: list[str], look: Look) -> "Breakpoints":
        """From `COLUMN,ROW:PLACE`, a place being an address or a name; ArgumentError for other text."""
        places: dict[tuple[int, int], frozenset[str]] = {}
        for text in texts:
            match = _BREAKPOINT.fullmatch(text)
            if match is None:
                raise ArgumentError(f"{text[:60]!r} is no breakpoint: write COLUMN,ROW:ADDRESS or COLUMN,ROW:NAME")
            core = int(match[1]), int(match[2])
            places[core] = places.get(core, frozenset()) | {match[3]}
        return cls(look, places)


def address_of(place: str) -> int | None:
    """A place that is a number."""
    try:
        return int(place, 0)
    except ValueError:
        return None


def executor_for(core: EmulatedCore) -> type[Executor]:
    """The fast executor; the plain one, with a warning, where no C++ compiler is."""
    if library() is not None:
        return Translated
    core.array.strictness.warn("machine code is interpreted, slowly: there is no C++ compiler g++")
    return Interpreter


class MachineCode:
    """A program of machine code. `names` are those of addresses in program memory, `file` is for messages.

    `executor` is the last run's, None before the first; `waits` counts the requests of that run that blocked.
    """

    def __init__(self, instructions: Isa, code: bytes, names: Mapping[int, str], file: str) -> None:
        self.instructions, self.code, self.file = instructions, code, file
        self.parts = Parts(names)
        self.executor: Executor | None = None
        self.waits: Counter[str] = Counter()
        self._timeline = PartTimeline(self.parts)
        self._counted = 0, 0, [0] * BANKS

    def run(self, core: EmulatedCore) -> Generator[None, None, None]:
        """Steps of the core until DONE; CoreError and BudgetExceeded name the bundle."""
        core.waits_in_kernels = True  # which locks it releases only running tells
        executor = self.executor = executor_for(core)(self.instructions, self.code, memory_of(core))
        self._counted = 0, 0, [0] * BANKS
        if core.observed:
            self._timeline = PartTimeline(self.parts)
            executor.watch(self.parts)
        executor.approximate(core.array.approximation)
        if core.array.strictness.permits(EDGES):
            executor.assume()
        self.waits.clear()
        steps, answer = self._steps(core, executor), None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration:
                break
            except StepBudgetError as error:
                if core.refilled:  # its budget is for this run of the array and those before
                    core.refilled, steps, answer = False, self._steps(core, executor), None
                    continue
                raise BudgetExceeded(f"{core.name}: {error}{self.where()}") from None
            except IsaError as error:
                raise self._stopped(error) from error
            if isinstance(request, RunBeside):
                core.array.scheduler.compute(core, run_some)
                yield
                continue
            self._count(core)
            self._tell_assumed(core, executor)
            answer = yield from self._served(core, request)
        self._count(core)
        self._tell_assumed(core, executor)

    def _stopped(self, error: IsaError) -> CoreError:
        """The fault of a core, with the name of the check that lets it go on."""
        allowed = ""
        if is_approximation(error):
            allowed = "; `approximate` gives the nearest value or one at a bound of its error"
        fault = CoreError(f"{error}{allowed}{self.where()}")
        if str(error).endswith(ROUNDING):
            fault.add_note(f"[{EDGES}]")
        return fault

    def _tell_assumed(self, core: EmulatedCore, executor: Executor) -> None:
        """Warn once of what results of the array's machine code rest on."""
        for row in executor.approximated:
            core.array.approximated[row] = None
            core.array.strictness.warn(f"approximate: {row.reason}")
        for reason in executor.assumed:
            if reason == ROUNDING:
                core.array.strictness.warn(f"{EDGES} (permitted): {reason}, and was assumed")
            else:
                core.array.strictness.caution("subnormal-floats", f"machine code: {reason}")

    def _steps(self, core: EmulatedCore, executor: Executor) -> Generator[Any, Any, None]:
        """The executor's run; bundle by bundle where somebody looks at this core."""
        breakpoints = core.array.breakpoints
        places = breakpoints.places.get(core.place, ()) if breakpoints else ()
        if breakpoints is None or not places:
            if isinstance(executor, Translated) and core.array.scheduler.shares:
                executor.share()
            return executor.run(core.budget)
        return self._stepping(core, executor, {self._resolved(core, place) for place in places}, breakpoints)

    def _resolved(self, core: EmulatedCore, place: str) -> int:
        address = address_of(place)
        address = self.parts.address(place) if address is None else address
        if address is None:
            raise CoreError(
                f"no name {place[:_MOST_NAME]!r} is in {self.file}, at which {core.name} should be looked at"
            )
        return address

    def _stepping(
        self, core: EmulatedCore, executor: Executor, stops: Collection[int], breakpoints: Breakpoints
    ) -> Generator[Any, Any, None]:
        for _ in range(core.budget):
            if executor.done:
                return
            if executor.pc in stops:
                breakpoints.look(core.place, executor, self.where())
            yield from executor.step()
        raise StepBudgetError(f"at {executor.pc:#x}: no end after {core.budget} bundles")

    def _served(self, core: EmulatedCore, request: Any) -> Generator[None, None, Any]:
        """Steps that serve a request, and its answer; whether it blocked is counted."""
        if isinstance(request, ReleaseLock):
            self._check_stores(core)
        steps, blocked = self._perform(core, request), False
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return stop.value
            except (KernelError, ValueError) as error:
                raise CoreError(f"{error}{self.where()}") from None
            if not blocked:
                self.waits[type(request).__name__] += 1
            blocked = True
            yield

    def _perform(self, core: EmulatedCore, request: Any) -> Generator[None, None, Any]:
        """Steps that serve a request, also those that only machine code has; the timer counts the core's own cycles."""
        match request:
            case GetRegister(offset):
                return core.array.tile(*core.place).read(offset)
            case PutRegister(offset, value):
                core.array.tile(*core.place).write(offset, value, f" ({core.name}{self.where()})")
                return None
            case GetTimer():
                assert self.executor is not None
                return self.executor.cycle + self.executor.conflicts  # waits for its own banks pass time as well
            case PutHeader(kind, number, last, wait):
                header = packet_header(*core.place, kind, number).to_bytes(GRANULE_BYTES, "little")
                request = PutStream(0, header, last, wait)
        return (yield from perform(core, request, self.where))

    def _check_stores(self, core: EmulatedCore) -> None:
        """A caution for a lock that is given while stores before it have not written yet."""
        assert self.executor is not None
        pending = self.executor.pending_stores
        if pending:
            core.array.strictness.caution(
                "early-release",
                f"{core.name} gives a lock while {pending} of its stores have not written yet: who takes it may read "
                f"what was there before; let the release come later{self.where()}",
            )

    def profile(self, core: EmulatedCore) -> CoreProfile | None:
        """Where the cycles of the last run went; None before it."""
        run = self.executor
        if run is None:
            return None
        found = shares(self.instructions, self.code, run.counts, run.macs, self.parts)
        return CoreProfile(core.name, self.file, run.cycle, run.bundles, run.conflicts, dict(self.waits), found)

    def place(self, error: Exception) -> str:
        return self.where()

    def where(self) -> str:
        """The bundle that runs, with the name before it, as a suffix of messages."""
        if self.executor is None:
            return f" ({self.file})"
        pc = self.executor.pc
        place = self.parts.at(pc)
        if place is None:
            return f" ({self.file}, at {pc:#x})"
        start, name = place
        return f" ({self.file}, at {pc:#x}, {name[:_MOST_NAME]} + {pc - start:#x})"

    def _count(self, core: EmulatedCore) -> None:
        """Let a timed run know what the core has done since it was told last."""
        run = self.executor
        if not core.observed or run is None:
            return
        cycle, conflicts, uses = self._counted
        self._counted = run.cycle, run.conflicts, list(run.uses)
        parts = self._timeline.took(run.marks(), run.cycle, run.conflicts)
        took = tuple((name, cycles + waits) for name, cycles, waits in parts if cycles + waits)
        used = {
            (*_place(core, *CORE_LOCK_WINDOWS[bank // _BANKS_OF_A_TILE]), bank % _BANKS_OF_A_TILE): after - before
            for bank, (before, after) in enumerate(zip(uses, self._counted[2], strict=True))
            if after > before
        }
        if took:
            core.notify("run", run.cycle - cycle, run.conflicts - conflicts, used, took)


def run_some(cores: Sequence[EmulatedCore]) -> Sequence[EmulatedCore]:
    """Run those of some cores on that reach no memory of another one: in order, whom those before leave theirs.

    A core that was reset meanwhile begins anew, or does nothing.
    """
    chosen, reached = list[EmulatedCore](), set[tuple[int, int]]()
    for core in cores:
        reaches = {_place(core, *window) for window in CORE_LOCK_WINDOWS}
        if reached.isdisjoint(reaches):
            chosen.append(core)
            reached |= reaches
    found = (core.program.executor for core in chosen if isinstance(core.program, MachineCode))
    run_beside([executor for executor in found if isinstance(executor, Translated) and executor.waits])
    return chosen


def profiles(cores: Iterable[EmulatedCore]) -> Iterator[CoreProfile]:
    """Of the cores that ran machine code."""
    for core in cores:
        if isinstance(core.program, MachineCode) and (found := core.program.profile(core)) is not None:
            yield found


def memory_of(core: EmulatedCore) -> DataMemory:
    tiles = [_tile(core, *_place(core, *window)) for window in CORE_LOCK_WINDOWS]
    return DataMemory([t.bytes if t else None for t in tiles], [t.written if t else None for t in tiles])


def _place(core: EmulatedCore, east: int, north: int) -> tuple[int, int]:
    return core.place[0] + east, core.place[1] + north


def _tile(core: EmulatedCore, column: int, row: int) -> EmulatedTile | None:
    """A core tile beside this one, None where there is none."""
    device = core.array.device
    if not (0 <= column < device.columns and 0 <= row < device.rows):
        return None
    return core.array.tile(column, row) if device.kind(column, row) is TileKind.CORE else None
