"""Whether a core can run its program: names, turns, memory and locks within reach, kernels called in one way."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bdforge.design.memory import Acquire, Buffer, Release
from bdforge.design.model import Tile
from bdforge.design.program import Advance, Argument, Call, Load, Loop, Rotating, Statement, Store
from bdforge.design.reasons import Reason
from bdforge.devices import TileKind
from bdforge.devices.limits import CORE, CORE_LOCK_WINDOWS

Signatures = dict[str, tuple[str, ...]]


def program_reasons(tile: Tile, places: Mapping[tuple[int, int], Tile], kernels: Signatures) -> Iterator[Reason]:
    """What is wrong with a tile's core program; `kernels` collects how each was called first."""
    if tile.core is None:
        return
    if tile.kind is not TileKind.CORE:
        yield Reason("core", f"a {tile.kind} runs no program", "use a core")
        return
    around = ((tile.column + east, tile.row + north) for east, north in CORE_LOCK_WINDOWS)
    reach = [places[place] for place in around if place in places and places[place].kind is TileKind.CORE]
    buffers = {buffer.name for near in reach for buffer in near.buffers}
    locks = {lock.name for near in reach for lock in near.locks}
    yield from _Program(buffers, locks, kernels).body(tile.core.body, {})


@dataclass(frozen=True, slots=True)
class _Program:
    buffers: set[str]
    locks: set[str]
    kernels: Signatures

    def body(self, body: tuple[Statement, ...], names: dict[str, str]) -> Iterator[Reason]:
        """`names` are known so far, with the type that a kernel gets."""
        for place, statement in enumerate(body):
            match statement:
                case Acquire() | Release():
                    yield from self.use(statement)
                case Load(name, buffer, index):
                    yield from self.element(buffer, index, names)
                    names[name] = buffer.type
                    if "f" in buffer.type:
                        yield Reason("load", f"{name} would be {buffer.type}", "load integers, give kernels buffers")
                case Store(value, buffer, index):
                    yield from self.element(buffer, index, names)
                    yield from self.known(value, names)
                    if isinstance(value, str) and names.get(value, buffer.type) != buffer.type:
                        what = f"{value} is {names[value]}, an element of {buffer.name} {buffer.type}"
                        yield Reason("store", what, "use one type")
                case Call():
                    yield from self.call(statement, names)
                case Loop():
                    yield from self.loop(statement, names)
                    if statement.count is None and body[place + 1 :]:
                        yield Reason(
                            "loop", f"{len(body) - place - 1} statements follow a loop without end", "drop them"
                        )
                case Advance(rotation):
                    if rotation.turns < 1:
                        yield Reason("rotation", f"{rotation.name} has {rotation.turns} turns", "give it 1 or more")

    def use(self, use: Acquire | Release) -> Iterator[Reason]:
        if use.lock.name not in self.locks:
            yield Reason("reach", f"{use.lock.name} is no lock of the core or its neighbours", "use a nearer lock")
        if not 1 <= use.count <= CORE.lock_value_max:
            what = f"it takes or gives {use.count} of {use.lock.name}"
            yield Reason("lock", what, f"use 1 to {CORE.lock_value_max}")

    def loop(self, loop: Loop, names: dict[str, str]) -> Iterator[Reason]:
        yield from self.known(loop.count or 0, names)
        if isinstance(loop.count, int) and loop.count < 0:
            yield Reason("loop", f"{loop.count} rounds", "use 0 or more")
        yield from self.body(loop.body, names | {loop.index: "i32"})

    def element(self, buffer: Buffer, index: int | str, names: dict[str, str]) -> Iterator[Reason]:
        yield from self.reached(buffer)
        yield from self.known(index, names)
        if isinstance(index, int) and not 0 <= index < buffer.elements:
            yield Reason("index", f"element {index} of {buffer.name}, which has {buffer.elements}", "stay inside")

    def reached(self, buffer: Buffer) -> Iterator[Reason]:
        if buffer.name not in self.buffers:
            yield Reason("reach", f"{buffer.name} lies in no memory that the core reaches", "use a nearer buffer")

    def known(self, value: float | str, names: dict[str, str]) -> Iterator[Reason]:
        if isinstance(value, str) and value not in names:
            yield Reason("name", f"{value} is no name here, but {', '.join(names) or 'none'}", "load it first")

    def call(self, call: Call, names: dict[str, str]) -> Iterator[Reason]:
        for argument in call.arguments:
            if isinstance(argument, Rotating) and len(argument.buffers) != argument.rotation.turns:
                rotation, got = argument.rotation, len(argument.buffers)
                what = f"{call.function} gets {got} buffers for the {rotation.turns} turns of {rotation.name}"
                yield Reason("rotation", what, "give one buffer for each turn")
            for buffer in _buffers(argument):
                yield from self.reached(buffer)
            if isinstance(argument, str):
                yield from self.known(argument, names)
        kinds = {tuple(_type(buffer) for buffer in _buffers(a)) for a in call.arguments}
        if any(len(set(types)) > 1 for types in kinds):
            yield Reason("rotation", f"{call.function} gets buffers of different types in turn", "give them one type")
        types = tuple(next((_type(b) for b in _buffers(a)), names.get(str(a), "i32")) for a in call.arguments)
        if types != (first := self.kernels.setdefault(call.function, types)):
            what = f"{call.function} is called with ({', '.join(types)}), before with ({', '.join(first)})"
            yield Reason("kernel", what, "call it in one way")


def _buffers(argument: Argument) -> tuple[Buffer, ...]:
    if isinstance(argument, Rotating):
        return argument.buffers
    return (argument,) if isinstance(argument, Buffer) else ()


def _type(buffer: Buffer) -> str:
    return f"{buffer.elements} x {buffer.type}"
