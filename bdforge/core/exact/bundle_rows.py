"""A bundle as the fast executor's library takes it, in whatever program: translated once for all that have it.

Programs of an array's cores share most of their bundles, and so do the contents of one program memory before and after
a change of its program.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from bdforge.core.exact import engine_build as build
from bdforge.core.exact.instruction_plan import plan_of
from bdforge.core.exact.register_layout import layout_of
from bdforge.core.exact.requests import DONE, Asking
from bdforge.core.exact.translate import Constant, EngineStep, steps_of
from bdforge.core.isa import load, memory_turn

REQUESTS: list[Asking] = [DONE]
"""Kinds of requests by number, which only grow; a kind that two threads add at once has the lower one."""
BUNDLE_BYTES = 16  # of the longest bundle


class ConstantPlace(NamedTuple):
    """A row's place that is to be that of a number among a program's constants."""

    row: int
    place: int
    value: int


@dataclass(frozen=True, slots=True)
class BundleRows:
    """A bundle: its bytes, those of its buffer, its turn at memory (`memory_turn`), its rows, and their constants.

    Where `doubtful`, it makes or counts unknown values.
    """

    size_bytes: int
    buffer_bytes: int
    memory: tuple[int, int]
    rows: bytes
    count: int
    constants: tuple[ConstantPlace, ...]
    doubtful: bool


@lru_cache(maxsize=1 << 16)
def bundle_rows(generation: str, data: bytes, careful: bool) -> BundleRows:
    """The rows of the bundle that `data` starts with; `careful` ones keep account of unknown values.

    DecodeError as of `Isa.decode`, OpenError as of `plan_of`.
    """
    bundle = load(generation).decode(data)
    plans = [plan_of(generation, instruction) for instruction in bundle]
    made: list[tuple[int, EngineStep]] = []
    used = 0
    for plan in plans:
        steps = steps_of(layout_of(generation), plan, REQUESTS, careful)
        made += [(used, step) for step in steps.made]
        used += steps.used
    made.sort(key=lambda one: (one[1].delay, one[1].phase))
    table, constants = (build.EngineRow * len(made))(), []
    for number, (offset, step) in enumerate(made):
        constants += _fill(table[number], number, offset, step)
    doubtful = any(plan.meaning.doubtful or plan.meaning.counts for plan in plans)
    return BundleRows(bundle.size, used, memory_turn(bundle), bytes(table), len(made), tuple(constants), doubtful)


def _fill(row: build.EngineRow, number: int, offset: int, step: EngineStep) -> list[ConstantPlace]:
    """Make a row of a step; the constants among its places."""
    row.function, row.offset = _numbers()[step.function], offset
    row.delay, row.phase = step.delay, step.phase
    constants = []
    for i, place in enumerate(step.places):
        if isinstance(place, Constant):
            constants.append(ConstantPlace(number, i, place.value))
        else:
            row.a[i] = place
    for i, option in enumerate(step.options):
        row.o[i] = option
    return constants


@cache
def _numbers() -> dict[str, int]:
    """The library's functions by name."""
    found = build.library()
    assert found is not None
    return {name: number for number, name in enumerate(found.engine_functions().decode().split())}
