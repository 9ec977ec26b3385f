"""The checker: what a core does silently wrong, found before it runs.

Every path of the program is followed with all that is under way; each hazard names both bundles. Two rules follow the
writer's intent. In code that people write (`strict`), a read that comes before an issued write to the same register
lands is an error unless `.old` declares it. In compiled code such reads are normal, for compilers use old values, and
only a value that is used although nobody has written it yet is an error (`depends_on`).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from bdforge.core.isa.assembler import DATA_BASE, DATA_END, Assembled
from bdforge.core.isa.bundle_codec import load
from bdforge.core.isa.core_registers import is_status, leaves, reset_values
from bdforge.core.isa.disassembler import control_flow
from bdforge.core.isa.effects import PART_WORD_STORE, RegisterAccess
from bdforge.core.isa.elf import CoreProgram
from bdforge.core.isa.flow import ControlFlow, Place, ends_loop
from bdforge.core.isa.forms import Bundle
from bdforge.core.isa.hazard_layout import BundleNames, Hazard, layout_hazards
from bdforge.core.isa.meaning.form_meanings import depends_on
from bdforge.core.isa.pipeline import LOOP_DISTANCE, Issued, PathState, address_of, advance, issued, landed, meeting

_LAST_BUNDLE_BYTES = 16
_PART_WORD_CYCLES = 6  # that an 8- or 16-bit store keeps memory for itself
_MOST_PATHS = 200  # histories of one bundle that are followed; 12 nested choices within ten bundles are more


@dataclass(slots=True, eq=False)
class _Point:
    """A place and the bundles issued before, which settle all that is under way: paths are not mixed.

    `landing` has the leaves that land behind it, `behind` the points that it leads to, by where a hardware loop that
    ends there begins.
    """

    place: Place
    history: tuple[int, ...]
    landing: int
    state: PathState = field(default_factory=PathState)
    behind: dict[int | None, list["_Point"]] = field(default_factory=dict)
    entered: bool = False

    def joins(self, state: PathState) -> bool:
        """Take in what a path knows; whether that changed it."""
        if self.entered:
            return self.state.join(state)
        self.state, self.entered = state.copy(), True
        return True


_Recent = Sequence[tuple[int, Issued]]
"""Bundles that issued of late with their addresses, the last one first."""


@dataclass(frozen=True, slots=True)
class Checked:
    """How to check: `strict` for code that people wrote, registers whose old values bundles read on purpose, and
    registers that are set when the program starts."""

    strict: bool = False
    old: Mapping[int, frozenset[str]] | None = None
    where: Callable[[int], str] = lambda address: ""
    given: Sequence[str] = ()


def check_source(program: Assembled) -> list[Hazard]:
    """Hazards of assembled code by the strict rules; messages name source lines."""
    isa = load(program.generation)
    decoded = {start + at: bundle for start, code in program.code for at, bundle in isa.decode_program(code)}

    def where(address: int) -> str:
        source = program.sources.get(address)
        return f"{source.line.file}:{source.line.number}" if source else ""

    old = {address: source.old for address, source in program.sources.items() if source.old}
    return check(ControlFlow(program.generation, decoded), Checked(True, old, where))


def check_program(
    program: CoreProgram, generation: str | None = None, strict: bool = False, given: Sequence[str] = (),
    whole: bool = True,
) -> list[Hazard]:  # fmt: skip
    """Hazards of a program from a file; bytes that are no bundle end a path. `given` registers are set at its start.

    `whole` as of `control_flow`.
    """
    return check(control_flow(program, generation, whole), Checked(strict, given=given))


def check(program: ControlFlow, options: Checked | None = None) -> list[Hazard]:
    """All hazards of a program that starts at its lowest address, in order of address, each once."""
    found = _Checker(program, options or Checked()).run()
    unique = {(hazard.rule, hazard.address, hazard.other, hazard.message): hazard for hazard in found}
    return sorted(unique.values(), key=lambda hazard: (hazard.address, hazard.rule, hazard.message))


class _Checker:
    """Follows all paths to a fixed point, then looks at each point once."""

    def __init__(self, program: ControlFlow, options: Checked) -> None:
        self.program = program
        self._horizon = load(program.generation).last_stage + 1  # bundles after which nothing is under way
        self.options = options
        self.points: dict[tuple[Place, tuple[int, ...]], _Point] = {}
        self.paths: dict[Place, int] = {}
        self._bits: dict[str, int] = {}  # of leaves
        self._steps: dict[tuple[int, int], frozenset[str]] = {}  # pointers by the ends of loops
        self.accesses: dict[Hazard, None] = {}  # found on the way: joined paths know fewer addresses
        self.named = BundleNames(program, options.where)
        self.issued = {address: issued(program.generation, bundle) for address, bundle in program.bundles.items()}

    def run(self) -> Iterator[Hazard]:
        """Hazards of the layout, then of every reachable point."""
        bundles = self.program.bundles
        if not bundles:
            return
        given = {*self.options.given, *reset_values(self.program.generation)}
        self._follow(
            min(bundles), PathState(self._mask(one.name for r in given for one in leaves(self.program.generation, r)))
        )
        visited = {address for address, _, _ in self.paths}
        yield from self._layout(visited)
        every = self._mask(leaf for part in self.issued.values() for leaf, _ in (*part.reads, *part.writes))
        for address in bundles:  # code that only registers lead to: anything may be defined there
            if address not in visited and (address, 0, 0) not in self.paths:
                self._follow(address, PathState(every))
        yield from self.accesses
        for point in self.points.values():
            yield from self._at(point)

    def _layout(self, visited: Container[int]) -> Iterator[Hazard]:
        """Faults of places. What follows a call in compiled code may be data, and where only registers lead too."""
        for hazard in layout_hazards(self.program, self.named):
            yield hazard if self.options.strict or hazard.address in visited else replace(hazard, unusual=True)
        for address in filter(self._runs_out, self.program.bundles):
            message = f"execution goes on after {self.named(address)}, where no bundle is known"
            yield Hazard("end", address, None, message, not self.options.strict)

    def _runs_out(self, address: int) -> bool:
        """Whether execution goes on after this bundle although no bundle follows."""
        if address in self.program.followers or (address, 0, 0) not in self.paths:
            return False
        return address not in self.program.branches and not self.program.stops(address)

    # Following paths.

    def _follow(self, entry: int, state: PathState) -> None:
        first = self._point((entry, 0, 0), ())
        waiting = [first] if first is not None and first.joins(state) else []
        while waiting:
            point = waiting.pop()
            address, after = point.place[0], point.state.copy()
            parts = self.issued[address]
            if parts.accesses:
                self.accesses.update(dict.fromkeys(self._alignment(address, point.state)))
            advance(after, address, parts, point.landing)
            waiting += [one for one in self._behind(point) if one.joins(self._known_at(one, point, after))]

    def _known_at(self, one: _Point, point: _Point, after: PathState) -> PathState:
        """The state that goes on from a point to `one`: which pass leaves a loop is not known, nor what it stepped."""
        (address, left, origin), constants = point.place, point.state.constants
        if left == 1 and self.program.branches[origin].falls:
            start = self.program.branches[origin].target
        else:
            start = constants.get("ls") if not left and ends_loop(address, constants) else None
        if start is None or start > address or one.place[0] == start:
            return after
        stepped = self._stepped(start, address)
        kept = {name: value for name, value in after.constants.items() if name not in stepped}
        return PathState(after.defined, kept, after.loop_writes)

    def _stepped(self, start: int, last: int) -> frozenset[str]:
        """Pointers that the bundles of a loop step."""
        if (start, last) not in self._steps:
            inside = (one for at, one in self.issued.items() if start <= at <= last)
            self._steps[start, last] = frozenset(pointer for one in inside for pointer, _ in one.steps)
        return self._steps[start, last]

    def _behind(self, point: _Point) -> Sequence[_Point]:
        """Where execution may go on behind a point."""
        (address, _, _), constants = point.place, point.state.constants
        start = constants.get("ls") if ends_loop(address, constants) else None
        if start not in point.behind:
            history = (*point.history, address)[-self._horizon :]
            found = (self._point(place, history) for place in self.program.following(point.place, constants))
            point.behind[start] = [one for one in found if one is not None]
        return point.behind[start]

    def _point(self, place: Place, history: tuple[int, ...]) -> _Point | None:
        """The point there; None where no bundle is, and beyond the limit: hazards of such paths stay unseen."""
        known = self.points.get((place, history))
        if known is not None:
            return known
        if place[0] not in self.program.bundles or self.paths.get(place, 0) >= _MOST_PATHS:
            return None
        self.paths[place] = self.paths.get(place, 0) + 1
        landing = self._mask(landed([self.issued[at] for at in (*history, place[0])]))
        return self.points.setdefault((place, history), _Point(place, history, landing))

    def _mask(self, named: Iterable[str]) -> int:
        """The bits of leaves."""
        return reduce(or_, (self._bits.setdefault(leaf, 1 << len(self._bits)) for leaf in named), 0)

    def _is_defined(self, state: PathState, leaf: str) -> bool:
        return bool(state.defined & self._bits.get(leaf, 0))

    # Rules of one point.

    def _at(self, point: _Point) -> Iterator[Hazard]:
        (address, left, origin), state = point.place, point.state
        bundle = self.program.bundles[address]
        if left:
            yield from self._in_delay_slot(address, bundle, origin, state)
        yield from self._loop_end(address, bundle, state)
        recent = [*((at, self.issued[at]) for at in point.history), (address, self.issued[address])]
        recent.reverse()
        yield from self._early_reads(recent, state)
        yield from self._meetings(recent)
        yield from self._inside(address)
        if left == 1 and self.options.strict:
            yield from self._across(recent, origin)

    def _early_reads(self, recent: _Recent, state: PathState) -> Iterator[Hazard]:
        """Reads of the present cycle of registers whose writes are under way; compiled code may read old values."""
        for age, (address, one) in enumerate(recent):
            reads = one.reading.get(age + 1, ())
            if not self.options.strict:
                reads = [read for read in reads if not self._is_defined(state, read[0])]
            for before, (writer, other) in enumerate(recent[age + 1 :], 1) if reads else ():
                for read, write, missing in meeting(other, one, before).early:
                    if read in reads and self._counts(address, *read):
                        defined = self._is_defined(state, read[0])
                        yield self._early((address, read[1]), (writer, write), missing, defined)

    def _counts(self, address: int, leaf: str, access: RegisterAccess) -> bool:
        """Whether an early read is a fault: not if it is declared, nor in compiled code if nothing depends on it."""
        generation, bundle = self.program.generation, self.program.bundles[address]
        return not self._declared(address, leaf) and (self.options.strict or depends_on(generation, bundle, access))

    def _early(
        self, read: tuple[int, RegisterAccess], write: tuple[int, RegisterAccess], missing: int, defined: bool
    ) -> Hazard:
        lacks = "sees the old value" if defined else "reads what nobody has written yet"
        cycles = f"{missing} cycle{'s' if missing != 1 else ''}"
        message = (
            f"{self.named(read[0])} reads {read[1].register} {cycles} before the result of "
            f"{self.named(write[0])} can be read: it {lacks}"
        )
        hint = "; if that is meant, say `.old " + read[1].register + "` before the bundle" if defined else ""
        return Hazard("early-read", read[0], write[0], message + hint)

    def _declared(self, address: int, leaf: str) -> bool:
        declared = (self.options.old or {}).get(address, frozenset())
        return any(leaf == part.name for register in declared for part in leaves(self.program.generation, register))

    def _meetings(self, recent: _Recent) -> Iterator[Hazard]:
        """What the last bundle and earlier ones do to each other: results and units."""
        address, last = recent[0]
        for apart, (other, earlier) in enumerate(recent[1:], 1):
            found = meeting(earlier, last, apart)
            for (leaf, access), behind in found.late:
                yield from self._late(address, other, leaf, access, behind)
            for unit, first, fixed in found.units:
                rule, words = _named_unit(unit)
                both = f"{self.named(other)} and {self.named(address)} both need {words}"
                how = f"{first} cycles after the second issues"
                if rule == "store-window":
                    how = f"which costs {_PART_WORD_CYCLES + 1 - apart - first} cycles"
                yield Hazard(rule, address, other, f"{both}, {how}", _is_unusual(unit, fixed))

    def _late(self, address: int, other: int, leaf: str, access: RegisterAccess, behind: int) -> Iterator[Hazard]:
        """A result that lands together with another in one register, or before one that issued earlier."""
        if behind and not (self.options.strict and not self._declared(address, leaf)):
            return
        both = f"{self.named(other)} and {self.named(address)} write {access.register}"
        if not behind:
            yield Hazard("two-results", address, other, f"{both} in the same cycle")
        else:
            message = f"{both}, the first {behind} cycles after the second: its result is what stays"
            yield Hazard("overtaken", address, other, message)

    def _inside(self, address: int) -> Iterator[Hazard]:
        """Results and units that two instructions of a bundle share."""
        one = self.issued[address]
        for register in one.twice:
            message = f"{self.named(address)}: two of its results land in {register} in the same cycle"
            yield Hazard("two-results", address, address, message)
        for unit, fixed in one.crowded:
            rule, words = _named_unit(unit)
            message = f"{self.named(address)}: two of its instructions need {words} at once"
            yield Hazard(rule, address, address, message, _is_unusual(unit, fixed))

    def _alignment(self, address: int, state: PathState) -> Iterator[Hazard]:
        for instruction, access in self.issued[address].accesses:
            at = address_of(state, instruction)
            if at is None:
                continue
            size = access.size_bytes
            if at % size:
                message = f"{self.named(address)} moves {size} bytes at {at:#x}, which is not a multiple of {size}"
                yield Hazard("misaligned", address, None, message)
            elif not DATA_BASE <= at < DATA_END and (self.options.strict or (access.store and at < DATA_END)):
                # what start-up code leaves in pointers, and registers of tiles, compiled code has no other word for
                message = f"{self.named(address)} accesses {at:#x}; data lies at {DATA_BASE:#x} to {DATA_END - 1:#x}"
                yield Hazard("no-memory", address, None, message, not self.options.strict)

    def _in_delay_slot(self, address: int, bundle: Bundle, origin: int, state: PathState) -> Iterator[Hazard]:
        where = f"in a delay slot of {self.named(origin)}"
        if any(instruction.form.delay_slots for instruction in bundle):
            yield Hazard("delay-slot", address, origin, f"{self.named(address)} branches {where}")
        if ends_loop(address, state.constants):
            yield Hazard("delay-slot", address, origin, f"{self.named(address)} ends a hardware loop {where}")

    def _across(self, recent: _Recent, origin: int) -> Iterator[Hazard]:
        """Results that land after a jump to somewhere unknown, where no reader can be followed."""
        if self.program.branches[origin].target is not None or self.program.return_sites.get(origin):
            return
        for age, (source, one) in enumerate(recent):
            for leaf, access in one.writes:
                if access.stage - age > 1 and not is_status(leaf):
                    what = f"the result {access.register} of {self.named(source)}"
                    late = f"lands {access.stage - age - 1} cycles after control has left through {self.named(origin)}"
                    yield Hazard("across-jump", source, origin, f"{what} {late}")

    def _loop_end(self, address: int, bundle: Bundle, state: PathState) -> Iterator[Hazard]:
        if not ends_loop(address, state.constants):
            return
        start = state.constants["ls"]
        if start > address:
            yield Hazard("loop", address, None, f"the loop from {start:#x} to {address:#x} ends before it starts")
        if bundle.size != _LAST_BUNDLE_BYTES:
            message = f"{self.named(address)} ends a hardware loop and has {bundle.size} bytes instead of 16"
            yield Hazard("loop", address, None, message)
        for register, (age, by) in state.loop_writes.items():
            if age < LOOP_DISTANCE:
                message = (
                    f"{self.named(by)} writes {register} {age} bundles before the loop's last, {self.named(address)}"
                )
                yield Hazard("loop", by, address, f"{message}; {LOOP_DISTANCE} are needed")
        for instruction in bundle:
            if instruction.form.name.startswith("ST_") and instruction.form.slot == "lda":
                message = f"{self.named(address)} stores 8 or 16 bits in a loop's last bundle, which AIE2 can drop"
                yield Hazard("loop", address, None, message, True)


def _is_unusual(unit: str, fixed: bool) -> bool:
    """Whether compiled code has two instructions need a unit at once."""
    return unit == PART_WORD_STORE or (unit == "L_WM" and fixed)


def _named_unit(unit: str) -> tuple[str, str]:
    """The rule by which a unit is one bundle's at a time, and its name in words."""
    if unit == "LCKREQ":
        return "locks-too-close", "the lock port (four cycles each)"
    if unit == PART_WORD_STORE:
        return "store-window", "memory, which an 8- or 16-bit store keeps for the six cycles after it"
    return "structural", f"port {unit}"
