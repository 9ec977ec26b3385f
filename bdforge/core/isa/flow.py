"""Control flow of a program: bundles by address, branches with their delay slots, calls and returns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bdforge.core.isa.forms import Bundle, Instruction
from bdforge.core.isa.operand_kinds import Immediate
from bdforge.core.isa.syntax import BRANCH_KINDS

DELAY_SLOTS = 5
"""Bundles that always run after a branch (all branch forms of both generations)."""

TARGET_BYTES = 16
"""Functions, branch targets and return addresses are multiples of this (llvm-aie aligns all of them so)."""


Place = tuple[int, int, int]
"""A bundle's address, the delay slots left including it (0: none), the address of their branch."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A control transfer: `target` is None for registers; `falls` if it may not be taken; `call` if it sets lr."""

    target: int | None
    falls: bool
    call: bool
    returns: bool


@dataclass(frozen=True, eq=False)
class ControlFlow:
    """Bundles by address, of one core; `generation` names their instruction set."""

    generation: str
    bundles: Mapping[int, Bundle]
    followers: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for address, bundle in self.bundles.items():
            if address + bundle.size in self.bundles:
                self.followers[address] = address + bundle.size

    def slots(self, address: int) -> list[int]:
        """Addresses of the delay slots after the bundle at `address`; fewer than five if the code ends there."""
        found: list[int] = []
        for _ in range(DELAY_SLOTS):
            address = self.followers.get(address, -1)
            if address < 0:
                break
            found.append(address)
        return found

    def return_address(self, call: int) -> int | None:
        """Where a call at this address returns to."""
        slots = self.slots(call)
        return slots[-1] + self.bundles[slots[-1]].size if len(slots) == DELAY_SLOTS else None

    @cached_property
    def branches(self) -> Mapping[int, Branch]:
        """Branches by the address of their bundle; of two in one bundle the first."""
        return {
            address: branch
            for address, bundle in self.bundles.items()
            if (branch := next((branch_of(i) for i in bundle if i.form.delay_slots), None))
        }

    @cached_property
    def return_sites(self) -> Mapping[int, frozenset[int]]:
        """For the address of each return: the addresses after the calls of the functions that it may end."""
        sites: dict[int, set[int]] = {}
        calls: dict[int, set[int]] = {}
        for address, branch in self.branches.items():
            back = self.return_address(address)
            if branch.call and branch.target is not None and back is not None:
                calls.setdefault(branch.target, set()).add(back)
        for entry, after in calls.items():
            for address in self.inside(entry):
                if address in self.branches and self.branches[address].returns:
                    sites.setdefault(address, set()).update(after)
        return {address: frozenset(after) for address, after in sites.items()}

    def inside(self, entry: int) -> set[int]:
        """Addresses that a function reaches without entering those that it calls."""
        seen: set[int] = set()
        waiting = [entry]
        while waiting:
            address = waiting.pop()
            if address in seen or address not in self.bundles:
                continue
            seen.add(address)
            waiting += self.next_inside(address)
        return seen

    def next_inside(self, address: int) -> Iterator[int]:
        """Where a function goes on behind a bundle; of a branch, behind its delay slots; calls are passed over."""
        branch = self.branches.get(address)
        if branch is None:
            return iter([self.followers.get(address, -1)])
        slots = self.slots(address)
        after = slots[-1] + self.bundles[slots[-1]].size if slots else -1
        stays = branch.falls or branch.call
        goes = [] if branch.call or branch.target is None else [branch.target]
        return iter([*goes, *([after] if stays else [])])

    @cached_property
    def _ends(self) -> frozenset[int]:
        return frozenset(at for at, bundle in self.bundles.items() if any(i.form.name == "DONE" for i in bundle))

    def stops(self, address: int) -> bool:
        """Whether the core ends behind a bundle."""
        return address in self._ends

    def following(self, place: Place, constants: Mapping[str, int]) -> Iterator[Place]:
        """Where execution may go on behind a place, as far as it is known; `constants` are registers there."""
        address, left, origin = place
        behind = self.followers.get(address, -1)
        if address in self.branches and left == 0:
            yield behind, DELAY_SLOTS, address
        elif left > 1:
            yield behind, left - 1, origin
        elif left == 1:
            yield from self._landed(origin, behind)
        elif not self.stops(address):
            yield behind, 0, 0
            if ends_loop(address, constants):
                yield constants["ls"], 0, 0

    def _landed(self, origin: int, behind: int) -> Iterator[Place]:
        """Where the last delay slot leads."""
        branch = self.branches[origin]
        if branch.returns:
            yield from ((site, 0, 0) for site in self.return_sites.get(origin, ()))
        if branch.target is not None:
            yield branch.target, 0, 0
        if branch.falls:
            yield behind, 0, 0


def ends_loop(address: int, constants: Mapping[str, int]) -> bool:
    """Whether a bundle is the last one of a hardware loop."""
    return constants.get("le") == address and "ls" in constants


def branch_of(instruction: Instruction) -> Branch:
    """What a branching instruction does."""
    form = instruction.form
    targets = [v for f, v in zip(form.fields, instruction.values, strict=True) if f.kind.name in BRANCH_KINDS]
    target = targets[0] if targets and isinstance(targets[0], int) else None
    return Branch(target, form.name.startswith(("JN", "JZ")), form.name.startswith("JL"), form.name.startswith("RET"))


def constant_moved(instruction: Instruction) -> tuple[str, int] | None:
    """(register, value) of an instruction that loads a constant into a scalar register, else None."""
    form, values = instruction.form, instruction.values
    numbers = [isinstance(f.kind, Immediate) for f in form.fields]
    if not form.name.startswith("MOV") or len(numbers) != 2 or sum(numbers) != 1 or not form.timing.defs:
        return None
    return str(values[numbers.index(False)]), int(values[numbers.index(True)])
