"""Parts of a model with their times, some of the CPU's work given to operators on the array."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bdforge.perf.bounds.array_operators import ArrayOperator, OperatorTime, Timed
from bdforge.perf.bounds.models import Model
from bdforge.perf.bounds.stage_split import Offer, StageSplit, Work, product_names


@dataclass(frozen=True, slots=True)
class OperatorSplit:
    """Which operators of a model the array does: how they are timed, by which of `RULES`, and what a change of the
    array's configuration costs (milliseconds)."""

    timed: Timed
    rule: str = "estimate"
    switch_ms: float = 0.0


def split_parts(
    model: Model, tokens: int, npu: Sequence[OperatorTime], cpu: Sequence[OperatorTime], split: OperatorSplit
) -> tuple[list[OperatorTime], int]:
    """Products and CPU operators, some of whose work operators on the array do; how often its configuration changes."""
    whole, layers = {part.operator: part.ms for part in cpu}, max(linear.count for linear in model.linears)
    ms: dict[Work, float] = {(-1, part.operator): part.ms for part in npu}
    for number, stage in enumerate(model.stages):
        ms |= {(number, name): share * whole[name] for name, share in stage.shares.items()}
    offers = tuple(
        Offer(number, operator, split.timed(operator, tokens).times(layers), _work(model, ms, number, operator))
        for number, stage in enumerate(model.stages)
        for operator in stage.operators
    )
    stages = StageSplit(model, ms, offers, split.switch_ms)
    chosen = stages.chosen(split.rule)
    left = stages.left(chosen)
    kept = [part for part in npu if (-1, part.operator) in left]
    return [*kept, *_on_array(chosen, ms), *_on_cpu(stages, left, cpu)], stages.changes(chosen)


def _work(model: Model, ms: Mapping[Work, float], stage: int, operator: ArrayOperator) -> frozenset[Work]:
    names = {(stage, name) for name in operator.replaces}
    return frozenset(ms) & (names | {(-1, name) for name in product_names(model, operator.replaces)})


def _on_array(chosen: Sequence[Offer], ms: Mapping[Work, float]) -> list[OperatorTime]:
    """Operators that were chosen, those of one name and size as one, with what their work took before."""
    found: dict[tuple[str, str], list[Offer]] = {}
    for offer in chosen:
        found.setdefault((offer.operator.name, offer.time.problem), []).append(offer)
    return [
        replace(same[0].time.times(len(same)), instead=_named(ms, {work for offer in same for work in offer.work}))
        for same in found.values()
    ]


def _named(ms: Mapping[Work, float], done: set[Work]) -> str:
    """Milliseconds of work by name, what the CPU does of it marked so."""
    names = dict.fromkeys(name for _, name in ms if any(work[1] == name for work in done))
    shown = [f"{name} {sum(ms[work] for work in done if work[1] == name):.1f}" for name in names]
    return "CPU: " * all(stage >= 0 for stage, _ in done) + ", ".join(shown)


def _on_cpu(stages: StageSplit, left: frozenset[Work], cpu: Sequence[OperatorTime]) -> Iterator[OperatorTime]:
    """What the CPU does still, with what the array would take for it: the fastest of its operators by name."""
    shared = {name for stage in stages.model.stages for name in stage.shares}
    for part in cpu:
        mine = {work for work in left if work[1] == part.operator}
        if part.operator not in shared:
            yield part
        elif mine:
            yield replace(part, ms=sum(stages.ms[work] for work in mine), instead=_offered(stages, left, mine))


def _offered(stages: StageSplit, left: frozenset[Work], mine: set[Work]) -> str:
    """Operators that could do the work, and it alone or with more that is left."""
    found: dict[str, list[float]] = {}
    for offer in stages.offers:
        if offer.work & mine and offer.work <= left:
            found.setdefault(offer.operator.design, []).append(offer.time.ms)
    return ", ".join(f"{design}: {sum(times):.1f}" for design, times in found.items())
