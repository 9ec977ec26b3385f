"""Walks of pointers: post-increments of one access after the other, also where blocks of a nest of loops follow.

Steps inside a block are immediates, or constants in registers m. The step from a block to the next depends on how many
loops of the nest turn over there: one kind of step is a constant too, two make a 2D walk, three a 3D walk (AIE2P and
AIE2 count their passes by themselves).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bdforge.core.codegen.errors import CodegenError

_UNITS_3D = range(4)
_UNITS = range(8)


@dataclass(frozen=True, slots=True)
class PointerWalk:
    """A pointer's accesses: byte offsets from where a block starts, and what each loop of the nest adds to the start.

    `loops` are (passes, bytes), the outermost first; the pointer starts `start` bytes behind where it is set. `access`
    are the bytes of an access whose immediate steps are -8 to 7 of these; none: steps are as of all others. `moved` are
    the bytes by which an access moves the pointer by itself, as those of FIFOs do, whose steps are in registers.
    """

    pointer: str
    offsets: tuple[int, ...]
    loops: tuple[tuple[int, int], ...]
    start: int = 0
    access: int = 0
    moved: int = 0

    def turns(self) -> list[tuple[int, int]]:
        """Steps after a block's last access as (passes, bytes), those of inner loops first, equal ones merged."""
        found: list[tuple[int, int]] = []
        back = self.offsets[-1] - self.offsets[0] + self.moved
        for passes, stride in reversed(self.loops):
            if passes > 1:
                step = stride - back
                if found and found[-1][1] == step:
                    found[-1] = found[-1][0] * passes, step
                else:
                    found.append((passes, step))
            back += (passes - 1) * stride
        return found


@dataclass(slots=True)
class Steppers:
    """Registers for steps: who holds which constant. `constants` are what has to be set before the first access.

    Immediates are multiples of `granule` in the range `small`.
    """

    small: range
    granule: int
    constants: dict[str, int] = field(default_factory=dict)
    _units: list[int] = field(default_factory=lambda: list(range(8)))
    _spare: list[str] = field(default_factory=list)
    _steps: dict[int, str] = field(default_factory=dict)

    def walks(self, walks: Sequence[PointerWalk]) -> list[list[str]]:
        """What stands behind `[p],` of each access of a block, by walk: `#64`, `m3`, `d2` or `d1_3d`."""
        # 3D ones first: few registers will do for them
        order = sorted(range(len(walks)), key=lambda i: -len(walks[i].turns()))
        found = {i: self._last(walks[i], walks[i].turns()) for i in order}
        return [
            [*(self._step_of(walk, b - a - walk.moved) for a, b in pairwise(walk.offsets)), found[i]]
            for i, walk in enumerate(walks)
        ]  # fmt: skip

    def _step_of(self, walk: PointerWalk, size: int) -> str:
        return self.register(size) if walk.moved else self.step(size, walk.access)

    def step(self, size: int, access: int = 0) -> str:
        """An immediate, or a register m that holds the step."""
        small, granule = (range(-8 * access, 8 * access), access) if access else (self.small, self.granule)
        return f"#{size}" if size in small and size % granule == 0 else self.register(size)

    def register(self, size: int) -> str:
        """A register m that holds a step."""
        if size not in self._steps:
            self._steps[size] = self._spare.pop() if self._spare else f"m{self._unit(self._units[::-1])}"
            self.constants[self._steps[size]] = size
        return self._steps[size]

    def _last(self, walk: PointerWalk, turns: Sequence[tuple[int, int]]) -> str:
        if len(turns) < 2:
            return self._step_of(walk, turns[0][1] if turns else 0)
        if len(turns) > 3:
            raise CodegenError(f"a pointer goes on in {len(turns)} kinds of steps, more than a 3D walk has")
        deep = len(turns) == 3
        unit = self._unit([i for i in range(4) if i + 4 in self._units] if deep else self._units[::-1])
        self._count(unit, turns[0])
        self.constants[f"m{unit}"] = turns[-1][1]
        if not deep:
            return f"d{unit}"
        self._units.remove(unit + 4)
        self._count(unit + 4, turns[1])
        self._spare.append(f"m{unit + 4}")
        return f"d{unit}_3d"

    def _count(self, unit: int, turn: tuple[int, int]) -> None:
        self.constants |= {f"dj{unit}": turn[1], f"dn{unit}": turn[0] - 1, f"dc{unit}": 0}

    def _unit(self, candidates: Sequence[int]) -> int:
        unit = next((i for i in candidates if i in self._units), None)
        if unit is None:
            raise CodegenError("a block walks in more ways than a core has registers for steps: make it smaller")
        self._units.remove(unit)
        return unit
