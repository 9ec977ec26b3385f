"""The checker: what a core does silently wrong, found before it runs.

Every path of the program is followed with all that is under way; each hazard names both bundles. Two rules follow the
writer's intent. In code that people write (`strict`), a read that comes before an issued write to the same register
lands is an error unless `.old` declares it. In compiled code such reads are normal, for compilers use old values, and
only a value that is used although nobody has written it yet is an error (`bdforge.isa.undefined`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bdforge.isa.assembler import DATA_BASE, DATA_END, Assembled
from bdforge.isa.disassembler import pieces
from bdforge.isa.effects import Access, collects, effects, touched
from bdforge.isa.flow import DELAY_SLOTS, Branch, Program
from bdforge.isa.forms import Bundle, Instruction
from bdforge.isa.hazard_layout import Hazard, Names, layout_hazards
from bdforge.isa.machine import load
from bdforge.isa.meaning import access_of
from bdforge.isa.pipeline import LOOP_DISTANCE, Pending, State, Taken, address_of, advance, issue, issued
from bdforge.isa.program import CoreProgram, generation_of
from bdforge.isa.registers import leaves
from bdforge.isa.undefined import uses

_LAST_BUNDLE_BYTES = 16
_MOST_PATHS = 200  # histories of one bundle that are followed; 12 nested choices within ten bundles are more

_Place = tuple[int, int, int]
"""A bundle's address, the delay slots left including it (0: none), the address of their branch."""

_Point = tuple[_Place, tuple[int, ...]]
"""A place and the bundles issued before, which settle all that is under way: paths are not mixed."""


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
    return check(Program(program.generation, decoded), Checked(True, old, where))


def check_program(
    program: CoreProgram, generation: str | None = None, strict: bool = False, given: Sequence[str] = ()
) -> list[Hazard]:
    """Hazards of a program from a file; bytes that are no bundle end a path. `given` registers are set at its start."""
    isa = load(generation or generation_of(program))
    bundles = {piece.address: piece.bundle for part in pieces(isa, program) for piece in part if piece.bundle}
    return check(Program(isa.generation, bundles), Checked(strict, given=given))


def check(program: Program, options: Checked | None = None) -> list[Hazard]:
    """All hazards of a program that starts at its lowest address, in order of address, each once."""
    found = _Checker(program, options or Checked()).run()
    unique = {(hazard.rule, hazard.address, hazard.other, hazard.message): hazard for hazard in found}
    return sorted(unique.values(), key=lambda hazard: (hazard.address, hazard.rule, hazard.message))


class _Checker:
    """Follows all paths to a fixed point, then looks at each point once."""

    def __init__(self, program: Program, options: Checked) -> None:
        self.program = program
        self._horizon = load(program.generation).last_stage + 1  # bundles after which nothing is under way
        self.options = options
        self.states: dict[_Point, State] = {}
        self.paths: dict[_Place, int] = {}
        self.accesses: dict[Hazard, None] = {}  # found on the way: joined paths know fewer addresses
        self.named = Names(program, options.where)

    def run(self) -> Iterator[Hazard]:
        """Hazards of the layout, then of every reachable point."""
        bundles = self.program.bundles
        if not bundles:
            return
        yield from layout_hazards(self.program, self.named)
        given = {leaf.name for name in self.options.given for leaf in leaves(self.program.generation, name)}
        self._follow(min(bundles), State(defined=given))
        for address in filter(self._runs_out, bundles):
            message = f"execution goes on after {self.named(address)}, where no bundle is known"
            yield Hazard("end", address, None, message)
        visited = {address for address, _, _ in self.paths}
        for address in bundles:  # code that only registers lead to: anything may be defined there
            if address not in visited and (address, 0, 0) not in self.paths:
                parts = (issued(self.program.generation, bundle) for bundle in bundles.values())
                leaf_names = {leaf for part in parts for leaf, _ in (*part.reads, *part.writes)}
                self._follow(address, State(defined=leaf_names))
        yield from self.accesses
        for point in list(self.states):
            yield from self._at(point)

    def _runs_out(self, address: int) -> bool:
        """Whether execution goes on after this bundle although no bundle follows."""
        if address in self.program.followers or (address, 0, 0) not in self.paths:
            return False
        return address not in self.program.branches and not self._stops(address)

    def _stops(self, address: int) -> bool:
        return any(instruction.form.name == "DONE" for instruction in self.program.bundles[address])

    # Following paths.

    def _follow(self, entry: int, state: State) -> None:
        waiting = [self._enter((entry, 0, 0), (), state)]
        while waiting:
            point = waiting.pop()
            if point is None:
                continue
            address = point[0][0]
            self.accesses |= dict.fromkeys(self._alignment(address, self.program.bundles[address], self.states[point]))
            after, history = self._after(point), (*point[1], address)[-self._horizon :]
            waiting += [self._enter(place, history, after) for place in self._following(point)]

    def _enter(self, place: _Place, history: tuple[int, ...], state: State) -> _Point | None:
        """Join a state into a point; the point if that changed it."""
        point = (place, history)
        known = self.states.get(point)
        if known is not None:
            return point if known.join(state) else None
        if place[0] not in self.program.bundles or self.paths.get(place, 0) >= _MOST_PATHS:
            return None
        self.paths[place] = self.paths.get(place, 0) + 1
        self.states[point] = state.copy()
        return point

    def _after(self, point: _Point) -> State:
        state, address = self.states[point].copy(), point[0][0]
        bundle = self.program.bundles[address]
        issue(state, self.program.generation, address, bundle)
        advance(state, self.program.generation, address, bundle)
        return state

    def _following(self, point: _Point) -> Iterator[_Place]:
        address, left, origin = point[0]
        behind = self.program.followers.get(address, -1)
        branch = self.program.branches.get(address)
        if branch is not None and left == 0:
            yield behind, DELAY_SLOTS, address
        elif left > 1:
            yield behind, left - 1, origin
        elif left == 1:
            yield from self._landed(self.program.branches[origin], origin, behind)
        elif self._stops(address):
            return
        else:
            yield behind, 0, 0
            if self._ends_loop(address, self.states[point]):
                yield self.states[point].constants["ls"], 0, 0

    def _landed(self, branch: Branch, origin: int, behind: int) -> Iterator[_Place]:
        """Where the last delay slot leads."""
        if branch.returns:
            yield from ((site, 0, 0) for site in self.program.return_sites.get(origin, ()))
        if branch.target is not None:
            yield branch.target, 0, 0
        if branch.falls:
            yield behind, 0, 0

    @staticmethod
    def _ends_loop(address: int, state: State) -> bool:
        return state.constants.get("le") == address and "ls" in state.constants

    # Rules of one point.

    def _at(self, point: _Point) -> Iterator[Hazard]:
        address, left, origin = point[0]
        bundle = self.program.bundles[address]
        state = self.states[point].copy()
        if left:
            yield from self._in_delay_slot(address, bundle, origin, state)
        yield from self._loop_end(address, bundle, state)
        issue(state, self.program.generation, address, bundle)
        yield from self._early_reads(state)
        yield from self._meeting_writes(address, state)
        yield from self._units(address, state)
        if left == 1 and self.options.strict:
            yield from self._across(address, origin, state)

    def _early_reads(self, state: State) -> Iterator[Hazard]:
        """Reads of the present cycle of registers whose writes are under way."""
        pending: dict[str, list[Pending]] = {}
        for write in state.writes:
            pending.setdefault(write.leaf, []).append(write)
        for read in state.reads:
            if read.left != 1 or read.leaf not in pending or self._declared(read.source, read.leaf):
                continue
            for write in pending[read.leaf]:
                missing = write.left - write.access.forwards(read.access)
                before = write.age > read.age  # the write's bundle issued before the reader's
                if missing > 0 and before and (self.options.strict or self._is_nothing(read, state)):
                    yield self._early(read, write, missing, read.leaf in state.defined)

    def _is_nothing(self, read: Pending, state: State) -> bool:
        """Whether a value is used that nobody has written."""
        bundle = self.program.bundles[read.source]
        return read.leaf not in state.defined and uses(self.program.generation, bundle, read.access)

    def _early(self, read: Pending, write: Pending, missing: int, defined: bool) -> Hazard:
        lacks = "sees the old value" if defined else "reads what nobody has written yet"
        cycles = f"{missing} cycle{'s' if missing != 1 else ''}"
        message = (
            f"{self.named(read.source)} reads {read.access.register} {cycles} before the result of "
            f"{self.named(write.source)} can be read: it {lacks}"
        )
        hint = "; if that is meant, say `.old " + read.access.register + "` before the bundle" if defined else ""
        return Hazard("early-read", read.source, write.source, message + hint)

    def _declared(self, address: int, leaf: str) -> bool:
        declared = (self.options.old or {}).get(address, frozenset())
        return any(leaf == part.name for register in declared for part in leaves(self.program.generation, register))

    def _meeting_writes(self, address: int, state: State) -> Iterator[Hazard]:
        """Results of this bundle that land together with another in one register, or before one that issued earlier."""
        strict = self.options.strict
        for write in state.writes:
            if write.age or collects(write.leaf):
                continue
            for other in state.writes:
                if other.leaf != write.leaf or (other.age == 0 and other.access == write.access):
                    continue
                register, both = write.access.register, f"{self.named(other.source)} and {self.named(address)}"
                if other.left == write.left:
                    message = f"{both} write {register} in the same cycle"
                    yield Hazard("two-results", address, other.source, message)
                elif other.age and other.left > write.left and strict and not self._declared(address, write.leaf):
                    message = f"{both} write {register}, the first {other.left - write.left} cycles after the second"
                    yield Hazard("overtaken", address, other.source, message + ": its result is what stays")

    def _units(self, address: int, state: State) -> Iterator[Hazard]:
        """Units that this bundle takes in cycles in which an earlier one, or another of its instructions, has them."""
        others: dict[tuple[str, int], list[Taken]] = {}
        for taken in state.taken:
            if taken.age:
                others.setdefault((taken.unit, taken.ahead), []).append(taken)
        for taken in state.taken:
            if taken.age == 0:
                for other in others.get((taken.unit, taken.ahead), []):
                    if not (other.reserved and taken.reserved):
                        first = min(t.ahead for t in state.taken if t.unit == taken.unit and t.age == 0)
                        rule, unit = _named_unit(taken.unit)
                        both = f"{self.named(other.source)} and {self.named(address)} both need {unit}"
                        yield Hazard(rule, address, other.source, f"{both}, {first} cycles after the second issues")
        yield from self._units_inside(address)
        yield from self._results_inside(address)

    def _results_inside(self, address: int) -> Iterator[Hazard]:
        """Results of one operand in two instructions of a bundle, which are one among all that is under way."""
        seen: dict[tuple[str, Access], Instruction] = {}
        for instruction in self.program.bundles[address]:
            for leaf, access, writes in touched(self.program.generation, instruction):
                if writes and not collects(leaf) and seen.setdefault((leaf, access), instruction) != instruction:
                    message = f"{self.named(address)}: two of its instructions write {access.register} at once"
                    yield Hazard("two-results", address, address, message)

    def _units_inside(self, address: int) -> Iterator[Hazard]:
        seen: dict[tuple[str, int], tuple[Instruction, bool]] = {}
        for instruction in self.program.bundles[address]:
            for unit, cycle, reserved in effects(instruction).units:
                first = seen.setdefault((unit, cycle), (instruction, reserved))
                if first[0] is not instruction and not (first[1] and reserved):
                    rule, words = _named_unit(unit)
                    message = f"{self.named(address)}: two of its instructions need {words} at once"
                    yield Hazard(rule, address, address, message)

    def _alignment(self, address: int, bundle: Bundle, state: State) -> Iterator[Hazard]:
        for instruction in bundle:
            access = access_of(self.program.generation, instruction.form)
            at = address_of(state, instruction) if access else None
            if at is None or access is None:
                continue
            size = access.size_bytes
            if at % size:
                message = f"{self.named(address)} moves {size} bytes at {at:#x}, which is not a multiple of {size}"
                yield Hazard("misaligned", address, None, message)
            elif not DATA_BASE <= at < DATA_END:
                message = f"{self.named(address)} accesses {at:#x}; data lies at {DATA_BASE:#x} to {DATA_END - 1:#x}"
                yield Hazard("no-memory", address, None, message)

    def _in_delay_slot(self, address: int, bundle: Bundle, origin: int, state: State) -> Iterator[Hazard]:
        where = f"in a delay slot of {self.named(origin)}"
        for instruction in bundle:
            if instruction.form.delay_slots:
                yield Hazard("delay-slot", address, origin, f"{self.named(address)} branches {where}")
            elif instruction.form.name.startswith(("ACQ", "REL")):
                yield Hazard("delay-slot", address, origin, f"{self.named(address)} takes or gives a lock {where}")
        if self._ends_loop(address, state):
            yield Hazard("delay-slot", address, origin, f"{self.named(address)} ends a hardware loop {where}")

    def _across(self, address: int, origin: int, state: State) -> Iterator[Hazard]:
        """Results that land after a jump to somewhere unknown, where no reader can be followed."""
        if self.program.branches[origin].target is not None or self.program.return_sites.get(origin):
            return
        for write in state.writes:
            if write.left > 1 and not collects(write.leaf):
                what = f"the result {write.access.register} of {self.named(write.source)}"
                message = f"{what} lands {write.left - 1} cycles after control has left through {self.named(origin)}"
                yield Hazard("across-jump", write.source, origin, message)

    def _loop_end(self, address: int, bundle: Bundle, state: State) -> Iterator[Hazard]:
        if not self._ends_loop(address, state):
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
                message = f"{self.named(address)} stores 8 or 16 bits in a loop's last bundle, which can be dropped"
                yield Hazard("loop", address, None, message)


def _named_unit(unit: str) -> tuple[str, str]:
    """The rule by which a unit is one bundle's at a time, and its name in words."""
    if unit == "LCKREQ":
        return "locks-too-close", "the lock port (four cycles each)"
    if unit == "PART_WORD_STORE":
        return "store-window", "memory, which an 8- or 16-bit store keeps for the six cycles after it"
    return "structural", f"port {unit}"
