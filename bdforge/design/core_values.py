"""The SSA values of a core's program: constants, what its names stand for, turns of rotations, views of modes."""

from dataclasses import dataclass, field, replace
from itertools import chain, count

from bdforge.design.core_code import Rotation
from bdforge.design.modes import Parts
from bdforge.design.op_tree import Op, Value
from bdforge.design.reasons import Reason
from bdforge.design.tile_memory import Buffer

FOREVER = (1 << 63) - 1  # rounds of an scf.for, whose bounds are signed 64 bit
INTEGER = "i32"  # of numbers and indices that kernels get


def turn_type(rotation: Rotation) -> str:
    """The type of a rotation's values."""
    return "i1" if rotation.turns == 2 else "index"


@dataclass(slots=True)
class CoreValues:
    """SSA values of a core's program; `taken` are names of others, `parts` say where buffers of modes lie."""

    taken: set[str]
    parts: Parts
    views: dict[str, Op] = field(default_factory=dict)
    """What the core sees of modes, by name; it stands at the core's start."""
    reasons: list[Reason] = field(default_factory=list)
    constants: dict[tuple[float, str], Value] = field(default_factory=dict)
    named: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    """What a program's names stand for: one value of each type."""
    turns: dict[Rotation, Value] = field(default_factory=dict)

    def fresh(self, name: str, type_: str) -> Value:
        """A value called `name`, or that with a number behind."""
        free = next(n for n in chain([name], (f"{name}_{i}" for i in count(1))) if n not in self.taken)
        self.taken.add(free)
        return Value(free, type_)

    def turn(self, rotation: Rotation) -> Value:
        """The next value of a rotation, from here on its turn."""
        self.turns[rotation] = self.fresh(f"{rotation.name}_turn", turn_type(rotation))
        return self.turns[rotation]

    def reach(self, buffer: Buffer) -> Buffer:
        """A buffer that is named; of a mode, a view of the mode's bytes."""
        part = self.parts.get(buffer.name)
        if part and buffer.name not in self.views:
            view = buffer, self.reach(part.within), self.constant(part.start)
            self.views[buffer.name] = Op("view", view)
        return buffer

    def constant(self, number: float, type_: str = "index") -> Value:
        """A constant, which stands at the core's start."""
        if (number, type_) not in self.constants:
            plain = f"c{number}".replace("-", "m").replace(".", "p")
            name = plain if type_ == "index" else f"{plain}_{type_}"
            name = "forever" if number == FOREVER else ("true" if number else "false") if type_ == "i1" else name
            exact = float(number) if "f" in type_ else number
            self.constants[number, type_] = replace(self.fresh(name, type_), number=exact)
        return self.constants[number, type_]

    def value(self, number: float | str, type_: str = "index") -> Value:
        """A constant of a type, or what a name stands for in it."""
        if not isinstance(number, str):
            return self.constant(number, type_)
        if number not in self.named:
            known = ", ".join(self.named) or "none"
            self.reasons.append(Reason("name", f"{number} is no name here, but {known}", "load it first"))
        found = [value for value in self.named.get(number, ()) if value.type == type_]
        return found[0] if found else self.constant(0, type_)

    def integer(self, number: float | str, type_: str) -> tuple[list[Op], Value]:
        """A constant of a type, or what a name stands for as memory and kernels get it, with its cast."""
        if not isinstance(number, str) or number not in self.named:
            return [], self.value(number, type_)
        if (value := self.named[number][0]).type != "index":
            return [], value
        cast = self.fresh(f"{number}_{INTEGER}", INTEGER)
        return [Op("index_cast", (cast, value))], cast
