"""From a core program to operations on SSA values: turns of rotations become values that loops and switches give."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bdforge.design.core_code import (
    Advance,
    Call,
    Core,
    Load,
    Loop,
    Rotating,
    Rotation,
    Statement,
    Store,
    SwitchOn,
    rotations,
)
from bdforge.design.core_values import FOREVER, INTEGER, CoreValues, turn_type
from bdforge.design.model import Tile
from bdforge.design.modes import Parts
from bdforge.design.op_tree import Op, Value
from bdforge.design.reasons import Reason
from bdforge.design.tile_memory import Acquire, Buffer, Release

Argument = Buffer | Rotating | Value
Body = Sequence[Statement]
Case = tuple[int, Body]
Kernels = dict[str, Sequence[Buffer | Value]]
"""By name, arguments like those of its calls: what a declaration needs."""


def core_program(
    tile: Tile, core: Core, taken: Iterable[str], kernels: Kernels, parts: Parts
) -> tuple[Op, list[Reason]]:
    """The program of a tile's core, and what is wrong with its names and calls; `taken` are names of other values.

    `parts` say where buffers of modes lie, which the core sees as views. Kernels that it calls are added to `kernels`;
    those that are there must be called in the same way.
    """
    lowering = _Lowering(set(taken), parts, kernels=kernels)
    lowering.turns = {r: lowering.constant(0, turn_type(r)) for r in rotations(core.body) if r.turns > 1}
    body = lowering.body(core.body)
    constants = tuple(Op("constant", (value,)) for value in lowering.constants.values())
    inside = (*constants, *lowering.views.values(), *body, Op("end"))
    return Op("core", (tile,), (inside,)), lowering.reasons


@dataclass(slots=True)
class _Lowering(CoreValues):
    kernels: Kernels = field(default_factory=dict)

    def body(self, body: Iterable[Statement]) -> tuple[Op, ...]:
        return tuple(op for statement in body for op in self.statement(statement))

    def statement(self, statement: Statement) -> Sequence[Op]:
        match statement:
            case Acquire():
                return [Op("acquire", (statement,))]
            case Release():
                return [Op("release", (statement,))]
            case Advance(rotation):
                return self.advance(rotation)
            case Call(function, arguments):
                return self.call(function, arguments)
            case Load():
                return self.load(statement)
            case Store():
                return self.store(statement)
            case Loop():
                return [self.loop(statement)]
            case SwitchOn():
                return self.switch(statement)

    def load(self, load: Load) -> list[Op]:
        """A loaded integer as it is, and as a number of rounds."""
        place = self.value(load.index)
        word, index = self.fresh(f"{load.name}_word", load.buffer.type), self.fresh(load.name, "index")
        self.named[load.name] = (word, index)
        return [Op("load", (word, self.reach(load.buffer), place)), Op("index_cast", (index, word))]

    def store(self, store: Store) -> list[Op]:
        ops, value = self.integer(store.value, store.buffer.type)
        if value.type != store.buffer.type:
            what = f"{store.value} is {value.type}, an element of {store.buffer.name} {store.buffer.type}"
            self.reasons.append(Reason("store", what, "use one type"))
        return [*ops, Op("store", (value, self.reach(store.buffer), self.value(store.index)))]

    def loop(self, loop: Loop) -> Op:
        """A loop carries the turns that change inside."""
        moved = [rotation for rotation in rotations(loop.body) if rotation.turns > 1]
        end = self.value(FOREVER if loop.count is None else loop.count)
        before, outside = [self.turns[rotation] for rotation in moved], dict(self.named)
        index, carried = self.fresh(loop.index, "index"), [self.turn(rotation) for rotation in moved]
        self.named[loop.index] = (index,)
        body, after = self.body(loop.body), [self.turns[rotation] for rotation in moved]
        self.named = outside
        results = [self.turn(rotation) for rotation in moved]
        head = (index, self.constant(0), end, self.constant(1), results, list(zip(carried, before, strict=True)))
        return Op("scf_for", head, ((*body, Op("scf_yield", (after,))) if moved else body,))

    def switch(self, switch: SwitchOn) -> Sequence[Op]:
        """A choice for each case, the next one inside what is else; it gives the turns that change in any.

        mlir-aie's cores are known to be compiled with scf.if; of scf.index_switch nobody shows that in a core.
        """
        moved = [rotation for rotation in rotations([switch]) if rotation.turns > 1]
        return self.cases(self.value(switch.name), list(switch.cases), switch.default, moved)

    def cases(self, value: Value, cases: Sequence[Case], default: Body, moved: list[Rotation]) -> Sequence[Op]:
        if not cases:
            return self.body(default)
        (number, body), *others = cases
        mine = self.fresh("mine", "i1")
        compare = Op("cmpi_eq", (mine, value, self.constant(number)))
        then = self.arm(lambda: self.body(body), moved)
        otherwise = self.arm(lambda: self.cases(value, others, default, moved), moved)
        results = [self.turn(rotation) for rotation in moved]
        return [compare, Op("scf_if", (mine, results), (then, otherwise) if otherwise else (then,))]

    def arm(self, inside: Callable[[], Sequence[Op]], moved: list[Rotation]) -> tuple[Op, ...]:
        """What an arm of a choice does and gives; its names and turns end with it."""
        turns, named = dict(self.turns), dict(self.named)
        body, after = inside(), [self.turns[rotation] for rotation in moved]
        self.turns, self.named = turns, named
        return (*body, Op("scf_yield", (after,))) if moved else tuple(body)

    def advance(self, rotation: Rotation) -> list[Op]:
        if rotation.turns == 1:
            return []
        before, after = self.turns[rotation], self.turn(rotation)
        if rotation.turns == 2:
            return [Op("xori", (after, before, self.constant(1, "i1")))]
        more, ended = self.fresh("next", "index"), self.fresh("around", "i1")
        return [
            Op("addi", (more, before, self.constant(1))),
            Op("cmpi_eq", (ended, more, self.constant(rotation.turns))),
            Op("select", (after, ended, self.constant(0), more)),
        ]

    def call(self, function: str, arguments: Sequence[Buffer | Rotating | int | str]) -> list[Op]:
        """Numbers first; then one call for each combination of turns, of which one is made."""
        ops: list[Op] = []
        given: list[Argument] = []
        for argument in arguments:
            if isinstance(argument, Buffer | Rotating):
                given.append(argument)
                continue
            casts, value = self.integer(argument, INTEGER)
            ops += casts
            given.append(value)
        turning = [a.rotation for a in given if isinstance(a, Rotating) and a.rotation in self.turns]
        return [*ops, *self.turned(function, given, list(dict.fromkeys(turning)), {})]

    def turned(
        self, function: str, given: list[Argument], open_: list[Rotation], turns: dict[Rotation, int]
    ) -> list[Op]:
        """The call, inside a choice for each rotation whose turn is still open."""
        if not open_:
            chosen = [a.buffers[turns.get(a.rotation, 0)] if isinstance(a, Rotating) else a for a in given]
            chosen = [self.reach(a) if isinstance(a, Buffer) else a for a in chosen]
            self.declare(function, chosen)
            return [Op("call", (function, chosen))]
        rotation, *rest = open_
        calls = [self.turned(function, given, rest, turns | {rotation: turn}) for turn in range(rotation.turns)]
        return self.choice(self.turns[rotation], calls)

    def declare(self, function: str, arguments: list[Buffer | Value]) -> None:
        types, before = (
            ", ".join(map(_told, each)) for each in (arguments, self.kernels.setdefault(function, arguments))
        )
        if types != before:
            what = f"{function} is called with ({types}), before with ({before})"
            self.reasons.append(Reason("kernel", what, "call it in one way"))

    def choice(self, turn: Value, ways: list[list[Op]]) -> list[Op]:
        """The last way if it is its turn, else one of the others."""
        *others, last = ways
        if not others:
            return last
        if turn.type == "i1":
            return [Op("scf_if", (turn, ()), (tuple(last), tuple(others[0])))]
        mine = self.fresh("mine", "i1")
        compare = Op("cmpi_eq", (mine, turn, self.constant(len(others))))
        return [compare, Op("scf_if", (mine, ()), (tuple(last), tuple(self.choice(turn, others))))]


def _told(argument: Buffer | Value) -> str:
    return f"{argument.elements} x {argument.type}" if isinstance(argument, Buffer) else argument.type
