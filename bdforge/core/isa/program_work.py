"""What a program does, as its code tells: functions, how often their bundles issue, and what they load and make."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bdforge.core.isa.constants import KnownConstants
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.forms import Instruction
from bdforge.core.isa.loops import ProgramLoop, loops_of
from bdforge.core.isa.meaning import access_of, macs_of, meaning_of, product_text, what_is_open

_MOST_NESTED = 64  # calls and loops, one in another


@dataclass(frozen=True, slots=True)
class BundleWork:
    """Loads, stores and MACs of some bundles, each as often as it issues.

    `products` counts products by what they are; `unknown` are those whose shape a register has that the code does not
    tell, so that `macs` is without theirs.
    """

    bundles: int
    loads: int
    stores: int
    macs: int
    products: Mapping[str, int]
    unknown: int

    @property
    def macs_per_bundle(self) -> float:
        """Of the products whose shapes are known."""
        return self.macs / self.bundles if self.bundles else 0.0


@dataclass(frozen=True, slots=True)
class ProgramFunction:
    """Code that runs from an address that the program starts at, or that it calls.

    `work` is that of one call, with all that it calls; None where the code does not tell how often its bundles issue,
    as `missing` says.
    """

    start: int
    bundles: int
    code_bytes: int
    loops: tuple[ProgramLoop, ...]
    work: BundleWork | None
    missing: str


class _NotTold(Exception):
    """Why the code does not tell how often something runs."""


class ProgramWork:
    """The loops and functions of a program."""

    def __init__(self, known: KnownConstants) -> None:
        self.known, self.program = known, known.program
        self.loops = loops_of(known)
        self._starting = {one.start: [other for other in self.loops if other.start == one.start] for one in self.loops}
        self._calls: dict[int, Counter[int]] = {}

    def functions(self) -> list[ProgramFunction]:
        """The program's start, then what it calls, by address."""
        called = {self.known.targets[at] for at, branch in self.program.branches.items() if branch.call}
        there = sorted(self.program.bundles)
        starts = [*there[:1], *(at for at in there if at in called)]
        return [self._function(start) for start in dict.fromkeys(starts)]

    def of(self, times: Mapping[int, int]) -> BundleWork:
        """What bundles do, by how often they issue."""
        products, loads, stores, macs, unknown = Counter[str](), 0, 0, 0, 0
        for address, count in times.items():
            for instruction in self.program.bundles[address]:
                access = access_of(self.program.generation, instruction.form)
                loads += count * (access is not None and not access.store)
                stores += count * (access is not None and access.store)
                made = self._product(address, instruction)
                unknown += count * (made is None)
                if made and made[0]:
                    products[made[0]] += count
                    macs += count * made[1]
        return BundleWork(sum(times.values()), loads, stores, macs, dict(products), unknown)

    @cached_property
    def own(self) -> Mapping[ProgramLoop, BundleWork]:
        """One pass of each loop, without the loops in it."""
        innermost = {at: loop for loop in self.loops for at in range(loop.start, loop.last + 1)}
        found: dict[ProgramLoop, list[int]] = {loop: [] for loop in self.loops}
        for address in self.program.bundles:
            if (loop := innermost.get(address)) is not None:
                found[loop].append(address)
        return {loop: self.of(dict.fromkeys(addresses, 1)) for loop, addresses in found.items()}

    def open_forms(self) -> dict[str, list[int]]:
        """Addresses of the forms of which no source tells what they do."""
        found: dict[str, list[int]] = {}
        for address, bundle in self.program.bundles.items():
            for instruction in bundle:
                if not instruction.is_nop and what_is_open(self.program.generation, instruction.form):
                    found.setdefault(instruction.form.name, []).append(address)
        return found

    def _product(self, address: int, instruction: Instruction) -> tuple[str, int] | None:
        """What a product is, and its MACs; ("", 0) for other instructions, None where its shape is not known."""
        if what_is_open(self.program.generation, instruction.form):
            return "", 0
        meaning = meaning_of(self.program.generation, instruction.form)
        constants, registers = self.known.before(address), instruction.operands
        values = {name: constants[str(value)] for name, value in registers.items() if str(value) in constants}
        try:
            return product_text(meaning, values), macs_of(meaning, values)
        except (OpenError, KeyError):
            return None

    def _function(self, start: int) -> ProgramFunction:
        inside = self.program.inside(start)
        mine = inside.union(*(self.program.slots(at) for at in inside if at in self.program.branches))
        loops = tuple(loop for loop in self.loops if loop.start in mine)
        size = sum(self.program.bundles[at].size for at in mine)
        try:
            return ProgramFunction(start, len(mine), size, loops, self.of(self._called(start, ())), "")
        except _NotTold as reason:
            return ProgramFunction(start, len(mine), size, loops, None, str(reason))

    def _called(self, start: int, callers: tuple[int, ...]) -> Counter[int]:
        """How often bundles issue in a call of a function, those of its own calls too."""
        if start in callers or len(callers) > _MOST_NESTED:
            raise _NotTold(f"calls of the function at {start:#x} nest too deeply")
        if start not in self._calls:
            self._calls[start] = self._times(start, None, (*callers, start))
        return self._calls[start]

    def _times(self, start: int, within: ProgramLoop | None, callers: tuple[int, ...]) -> Counter[int]:
        """How often bundles issue from `start` to the return, or in one pass of a loop."""
        found, seen, address = Counter[int](), set[int](), start
        while address in self.program.bundles:
            if address in seen:
                raise _NotTold(f"how often the bundle at {address:#x} runs")
            seen.add(address)
            if (loop := self._entered(address, within)) is not None:
                found += self._passes(loop, callers)
                address = self.program.followers.get(loop.last, -1)
                continue
            slots = self.program.slots(address) if address in self.program.branches else []
            found.update((address, *slots))
            if self.program.stops(address) or (within is not None and within.last in (address, *slots)):
                return found
            if not slots:
                address = self.program.followers.get(address, -1)
            elif self.program.branches[address].returns:
                return found
            else:
                address = self._landed(address, found, callers)
        raise _NotTold("where execution goes on")

    def _entered(self, address: int, within: ProgramLoop | None) -> ProgramLoop | None:
        """The longest loop that starts here, in the one that is run through."""
        starting = self._starting.get(address, ())
        return next(
            (one for one in starting if within is None or address > within.start or one.last < within.last), None
        )

    def _passes(self, loop: ProgramLoop, callers: tuple[int, ...]) -> Counter[int]:
        """All passes of a loop."""
        if loop.trips is None:
            raise _NotTold(f"how often the loop at {loop.start:#x} runs")
        if len(callers) > _MOST_NESTED:
            raise _NotTold(f"how the loop at {loop.start:#x} ends, which is nested too deeply")
        once = self._times(loop.start, loop, (*callers, -1))
        return Counter({address: count * loop.trips for address, count in once.items()})

    def _landed(self, address: int, found: Counter[int], callers: tuple[int, ...]) -> int:
        """Where execution goes on behind a branch that is no return; what it calls is counted."""
        branch, target = self.program.branches[address], self.known.targets[address]
        if branch.falls:
            raise _NotTold(f"which way the branch at {address:#x} takes")
        if target is None:
            raise _NotTold(f"where the jump at {address:#x} leads")
        if not branch.call:
            return target
        found += self._called(target, callers)
        back = self.program.return_address(address)
        return -1 if back is None else back
