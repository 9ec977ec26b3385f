"""The tuner of any operator: every choice of the free numbers that the operator declares, by what its runs cost.

A choice is a spec with other numbers in it; whether it can be built only its plan says. The fastest by the model
(`operator_bound`) are timed on the emulated array, with kernels that only take their cycles. GEMMs have a space of
their own (`space`): theirs has hundreds of thousands of choices, which are judged as arrays.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from math import log, prod
from typing import Any

from bdforge.array.emulator import EmulationError
from bdforge.common.tasks import HERE, Told, Workers, untold
from bdforge.devices import Device, device_named
from bdforge.devices.timing import timing_of
from bdforge.operators import Plan, SpecError, WalkError, operator_of, plan, spec_from
from bdforge.perf.bounds.operator_bound import cost_estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.timed import timed

CHOICES_MOST = 20_000
"""Of one search: each takes a plan, some milliseconds."""

Fixed = Mapping[str, tuple[int, ...]]
"""Values by the name of a free number: those that a search may try."""


@dataclass(frozen=True, slots=True)
class DesignChoice:
    """A design with its free numbers, and microseconds of all its problems: modelled, and emulated where that was done.

    `passed_over` says why a finalist cannot run.
    """

    numbers: tuple[tuple[str, int], ...]
    content: Mapping[str, Any]
    plan: Plan
    modelled_us: float
    emulated_us: float | None = None
    passed_over: str = ""

    @property
    def time_us(self) -> float:
        """As known best."""
        return self.modelled_us if self.emulated_us is None else self.emulated_us

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.numbers)


@dataclass(frozen=True, slots=True)
class TunedNumbers:
    """A search's result: finalists ranked, those passed over last, and how many choices there were and could be built.

    `given` is the design as it was, where that can be built.
    """

    best: tuple[DesignChoice, ...]
    examined: int
    legal: int
    given: DesignChoice | None


def tune_numbers(
    content: Mapping[str, Any], name: str, device: Device, *, fixed: Fixed | None = None, finalists: int = 8,
    workers: Workers = HERE, ended: Told = untold, emulating: Told = untold,
) -> TunedNumbers:  # fmt: skip
    """Every choice of a design's free numbers for the problems in it; `finalists` of the best are emulated (0: none).

    `ended` hears of choices done and of all, `emulating` of finalists. PerfError for a design without free numbers or
    problems, for names that are not free, for more than `CHOICES_MOST` choices, and where none can be built; SpecError
    as `spec_from`.
    """
    spec = spec_from(dict(content), name, name)
    values = _values(dict(operator_of(spec).free(spec, device)), fixed or {}, spec.kind)
    if not spec.problems:
        raise PerfError(f"{name}: has no problems to be fast at; add [[problems]]")
    examined = prod(len(tried) for tried in values.values())
    if examined > CHOICES_MOST:
        raise PerfError(f"{examined:,} choices exceed the {CHOICES_MOST:,} of a search; --fix some of {_named(values)}")
    found: list[DesignChoice] = []
    for number, numbers in enumerate(product(*values.values())):
        found += _choice(content, name, device, dict(zip(values, numbers, strict=True)))
        ended(number + 1, examined)
    if not found:
        raise PerfError(f"{name}: no choice of {_named(values)} can be built for its problems")
    given = next(iter(_choice(content, name, device, {})), None)
    ranked = sorted(found, key=_rank)
    if finalists:
        chosen = [*([given] if given else []), *ranked[:finalists]]
        tasks = [ChosenNumbers(choice.content, name, device.name) for choice in chosen]
        chosen = [_with(*pair) for pair in zip(chosen, workers.results(emulated_us, tasks, emulating), strict=True)]
        given = chosen.pop(0) if given else None
        ranked = sorted(chosen, key=lambda choice: (bool(choice.passed_over), choice.time_us))
    return TunedNumbers(tuple(ranked), examined, len(found), given)


def _rank(choice: DesignChoice) -> tuple:
    """Faster first; of those within a thousandth the one with the largest numbers, whose cores are called least."""
    return round(log(choice.modelled_us), 3), *(-value for _, value in choice.numbers)


def _values(free: dict[str, Any], fixed: Fixed, kind: str) -> dict[str, tuple[int, ...]]:
    if not free:
        raise PerfError(f"{kind} declares no free numbers; there is nothing to tune")
    if unknown := [name for name in fixed if name not in free]:
        raise PerfError(f"{', '.join(unknown)} is no free number of {kind}; free are {_named(free)}")
    return {name: tuple(fixed.get(name, values)) for name, values in free.items()}


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(values)


def _choice(content: Mapping[str, Any], name: str, device: Device, numbers: dict[str, int]) -> Iterator[DesignChoice]:
    """The design with these numbers; nothing where it cannot be built, or not for its problems."""
    changed = _changed(content, numbers)
    try:
        made = plan(spec_from(changed, name, name), device)
        times = [cost_estimate(made, problem, timing_of(device)).time_us for problem in made.problems]
    except (SpecError, WalkError):
        return
    yield DesignChoice(tuple(numbers.items()), changed, made, sum(times))


def _changed(content: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[str, Any]:
    """Content with numbers at places such as `tile.k`."""
    changed = deepcopy(dict(content))
    for place, value in numbers.items():
        *tables, key = place.split(".")
        table = changed
        for one in tables:
            table = table.setdefault(one, {})
        table[key] = value
    return changed


@dataclass(frozen=True, slots=True)
class ChosenNumbers:
    """A task: a design as its file says it, for a product, with the problems in it."""

    content: Mapping[str, Any]
    name: str
    device: str


def emulated_us(chosen: ChosenNumbers) -> float | str:
    """Microseconds of all problems of a design on the emulated array; why not, where it cannot run."""
    made = plan(spec_from(dict(chosen.content), chosen.name, chosen.name), device_named(chosen.device))
    try:
        return sum(timed(made, problem, "ideal").seconds for problem in made.problems) * 1e6
    except (SpecError, WalkError, EmulationError) as error:
        return str(error).splitlines()[0]


def _with(choice: DesignChoice, found: float | str) -> DesignChoice:
    return replace(choice, passed_over=found) if isinstance(found, str) else replace(choice, emulated_us=found)
