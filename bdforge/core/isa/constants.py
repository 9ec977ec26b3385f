"""Registers whose values a program itself tells: what every way to a bundle has set them to."""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from bdforge.core.isa.flow import TARGET_BYTES, ControlFlow, Place
from bdforge.core.isa.pipeline import issued, stepped_constants

Constants = Mapping[str, int]


class KnownConstants:
    """Constants before each bundle of a program that starts at its lowest address.

    Jumps by registers are followed where the register is known; `targets` has where each branch leads by its address,
    None for what is not known. If there are such, all targets that no way reaches are entered with nothing known.
    """

    def __init__(self, program: ControlFlow) -> None:
        self.program = program
        self._states: dict[int, dict[Place, Constants]] = {}
        self._follow((min(program.bundles, default=0), 0, 0))
        for address in sorted(program.bundles):
            if not address % TARGET_BYTES and address not in self._states and self._jumps_anywhere():
                self._follow((address, 0, 0))
        self.targets = {address: self._target(address) for address in program.branches}
        self._entries: dict[int, list[Place]] = {}
        for place in (place for places in self._states.values() for place in places):
            for target, left, _ in self._following(place):
                if not left:
                    self._entries.setdefault(target, []).append(place)

    def before(self, address: int) -> Constants:
        """Registers that have one value on every way to a bundle."""
        return _common(self._states.get(address, {}).values())

    def entering(self, start: int, last: int) -> Constants:
        """Registers that have one value on every way from elsewhere to the start of the bundles up to `last`."""
        ways = (place for place in self._entries.get(start, ()) if not start <= place[0] <= last)
        return _common(map(self._behind, ways))

    def _jumps_anywhere(self) -> bool:
        """Whether a register that is not known leads somewhere, on a way that is followed."""
        branches = ((at, branch) for at, branch in self.program.branches.items() if at in self._states)
        return any(not branch.returns and self._target(at) is None for at, branch in branches)

    def _target(self, address: int) -> int | None:
        branch = self.program.branches[address]
        if branch.target is not None or branch.returns:
            return branch.target
        jumps = (i for i in self.program.bundles[address] if i.form.delay_slots)
        registers = (value for i in jumps for value in i.values if isinstance(value, str) and value.startswith("p"))
        return next((self.before(address).get(register) for register in registers), None)

    def _follow(self, entry: Place) -> None:
        waiting = [entry] if self._joins(entry, {}) else []
        while waiting:
            place = waiting.pop()
            behind = self._behind(place)
            waiting += [place for place in self._following(place) if self._joins(place, behind)]

    def _following(self, place: Place) -> Iterator[Place]:
        address, left, origin = place
        yield from self.program.following(place, self._states[address][place])
        if left == 1 and (target := self._target(origin)) is not None:
            yield target, 0, 0

    def _behind(self, place: Place) -> Constants:
        parts = issued(self.program.generation, self.program.bundles[place[0]])
        return stepped_constants(self._states[place[0]][place], parts)

    def _joins(self, place: Place, constants: Constants) -> bool:
        """Take in what one way to a place knows; whether less is known there now, or it is new."""
        if place[0] not in self.program.bundles:
            return False
        known = self._states.setdefault(place[0], {})
        before = known.get(place)
        known[place] = constants if before is None else _common([before, constants])
        return before is None or len(known[place]) < len(before)


def _common(found: Iterable[Constants]) -> Constants:
    """What all have, with the same value."""
    states = list(found)
    return reduce(lambda one, other: dict(one.items() & other.items()), states) if states else {}
