"""Core programs as data: what their MLIR does on the emulated array, against reading the data from top to bottom."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

import bdforge
from bdforge.design import (
    Advance,
    Buffer,
    Call,
    Core,
    Design,
    Load,
    Loop,
    Rotating,
    Rotation,
    Store,
    SwitchOn,
    Tile,
    placed,
    render,
)
from bdforge.design.core_code import Statement, rotations, statements
from bdforge.design.document import design_of as design_told
from bdforge.design.document import document
from bdforge.devices import TileKind

PARAMETERS = (3, 0, 2, 1)
ROTATIONS = [Rotation("one", 1), Rotation("two"), Rotation("three", 3), Rotation("five", 5)]
RINGS = {
    r: tuple(Buffer(f"{r.name}_{i}", 16, "i32", values=(100 * r.turns + i,) * 16) for i in range(r.turns))
    for r in ROTATIONS
}
FIXED = Buffer("fixed", 16, "i32", values=(7,) * 16)
PARAMETER = Buffer("parameters", 16, "i32", values=PARAMETERS + (0,) * 12)
WRITTEN = Buffer("written", 16, "i32", values=(0,) * 16)


class Writer:
    """Random programs; names are those of the loops and loads around."""

    def __init__(self, seed: int):
        self.rng, self.loops, self.loads = random.Random(seed), 0, 0

    def body(self, names: tuple[str, ...], depth: int) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for _ in range(self.rng.randint(1, 5)):
            made.append(self.statement(names, depth))
            if isinstance(made[-1], Load):
                names = (*names, made[-1].name)
        return tuple(made)

    def statement(self, names: tuple[str, ...], depth: int) -> Statement:
        kind = self.rng.choice(
            ["call", "call", "advance", "advance", "loop", "loop", "switch", "load", "load", "store"]
        )
        if kind == "loop" and depth:
            self.loops += 1
            index, loaded = f"round_{self.loops}", [name for name in names if name.startswith("load")]
            count = self.rng.choice([0, 1, 2, 3, *loaded])
            return Loop(count, self.body((*names, index), depth - 1), index)
        if kind == "switch" and depth and names:
            numbers = self.rng.sample([-1, 0, 1, 2, 3], self.rng.randint(1, 3))
            cases = tuple((number, self.body(names, depth - 1)) for number in numbers)
            return SwitchOn(
                self.rng.choice(names), cases, self.body(names, depth - 1) if self.rng.random() < 0.6 else ()
            )
        if kind == "load":
            self.loads += 1
            return Load(f"load_{self.loads}", PARAMETER, self.rng.randrange(4))
        if kind == "store":
            return Store(self.rng.choice([-5, 9, *names]), WRITTEN, self.rng.choice([0, 3, *names]))
        if kind == "advance":
            return Advance(self.rng.choice(ROTATIONS))
        rotating = [r.of(RINGS[r]).ahead(self.rng.randint(-2, 2)) for r in self.rng.sample(ROTATIONS, 2)]
        return Call("probe", (*rotating, FIXED, self.rng.choice([3, -1, *names])))


def meaning(
    body: tuple[Statement, ...], turns: dict[Rotation, int], names: dict[str, int], memory: list[int]
) -> Iterator:
    """What each call is given; the slow and obvious way."""

    def number(value: float | str) -> int:
        return names[value] if isinstance(value, str) else int(value)

    for statement in body:
        match statement:
            case Loop(count, inner, index):
                for i in range(number(count or 0)):
                    names[index] = i
                    yield from meaning(inner, turns, names, memory)
            case SwitchOn(name, cases, default):
                yield from meaning(dict(cases).get(names[name], default), turns, names, memory)
            case Load(name, _, index):
                names[name] = PARAMETERS[number(index)]
            case Store(value, _, index):
                memory[number(index)] = number(value)
            case Advance(rotation):
                turns[rotation] += 1
            case Call(_, arguments):
                now = [
                    a.buffers[turns[a.rotation] % len(a.buffers)] if isinstance(a, Rotating) else a for a in arguments
                ]
                yield tuple(a.values[0] if isinstance(a, Buffer) else number(a) for a in now)


def design_of(*body: Statement) -> Design:
    buffers = (*(buffer for ring in RINGS.values() for buffer in ring), FIXED, PARAMETER, WRITTEN)
    return placed(Design("probe", "npu2_1col", (Tile("core", 0, 2, TileKind.CORE, buffers, core=Core(body)),)))


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", range(60))
def test_turns_indices_and_parameters_are_what_the_data_say(seed):
    body = Writer(seed).body((), 3)
    calls, memory = [], [0] * 16

    def probe(one: np.ndarray, two: np.ndarray, fixed: np.ndarray, value: int) -> None:
        calls.append((int(one[0]), int(two[0]), int(fixed[0]), value))

    result = bdforge.emulate(render(design_of(*body)), (), {"probe": probe})
    assert calls == list(meaning(body, dict.fromkeys(ROTATIONS, 0), {}, memory))
    assert result.buffers["written"].tolist() == memory


def test_random_programs_use_every_statement_and_turn_every_rotation():
    """Otherwise the test above would say little."""
    seen, turned, switched = set(), dict.fromkeys(ROTATIONS, 0), 0
    for seed in range(60):
        body, turns = Writer(seed).body((), 3), dict.fromkeys(ROTATIONS, 0)
        calls = list(meaning(body, turns, {}, [0] * 16))
        seen |= {type(s) for s in statements(body) if calls}
        switched += sum(isinstance(s, SwitchOn) and bool(rotations([s])) for s in statements(body))
        turned = {r: max(turned[r], turns[r]) for r in ROTATIONS}
    assert seen == {Loop, SwitchOn, Load, Store, Advance, Call}
    assert switched > 10
    assert all(turned[r] > r.turns for r in ROTATIONS)


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_random_programs_are_their_documents(seed):
    design = design_of(*Writer(seed).body((), 3))
    content = document(design)
    again = design_told(content, "again.toml")
    assert (render(again), document(again)) == (render(design), content)


def test_a_turn_outlives_the_loops_that_moved_it():
    """Three rounds of two steps leave a pair as it was, three of one turn it."""
    pair, ring = ROTATIONS[1], ROTATIONS[1].of(RINGS[ROTATIONS[1]])
    found: list[int] = []

    def probe(buffer: np.ndarray) -> None:
        found.append(int(buffer[0]))

    steps = Loop(3, (Loop(2, (Call("probe", (ring,)), Advance(pair))), Call("probe", (ring,))))
    bdforge.emulate(render(design_of(steps, Loop(3, (Advance(pair),)), Call("probe", (ring,)))), (), {"probe": probe})
    assert found == [200, 201, 200] * 3 + [201]
