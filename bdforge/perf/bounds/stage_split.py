"""Which work of a model's layers the array does by operators of its own, and which the CPU: what takes least together.

Every choice of operators that do not do the same work twice is counted. What the CPU keeps is its share of the stage;
results of products are synchronised for it where it keeps any. Changing the array's configuration between operators
of different designs costs `switch_ms` each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from bdforge.perf.bounds.array_operators import ArrayOperator, OperatorTime
from bdforge.perf.bounds.models import SYNCHRONISING, Model

RULES = ("estimate", "array", "cpu")
"""Each operator where that takes least, on the array wherever a design can, or all on the CPU."""
SWITCH_MS = (1.0, 2.4)
"""Milliseconds of array configurations in turn: hipscope's and casselc's measurements on Strix Halo."""

Work = tuple[int, str]
"""A stage and its CPU operator, or -1 and a product."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An operator of a stage, what it takes in all layers, and the work that it would do."""

    stage: int
    operator: ArrayOperator
    time: OperatorTime
    work: frozenset[Work]


@dataclass(frozen=True)
class StageSplit:
    """`ms`: what products take, and what the CPU takes for each operator of each stage, in all layers."""

    model: Model
    ms: Mapping[Work, float]
    offers: tuple[Offer, ...]
    switch_ms: float = 0.0

    def chosen(self, rule: str) -> tuple[Offer, ...]:
        """Operators by a rule of `RULES`, in order; none where the work takes as long without."""
        if rule == "cpu":
            return ()
        offered = {work for offer in self.offers for work in offer.work if work[0] >= 0}

        def counted(choice: tuple[Offer, ...]) -> tuple[float, float, int]:
            rest = self.left(choice)
            left = fsum(self.ms[work] for work in offered & rest) if rule == "array" else 0.0
            return left, self._total_ms(choice, rest), len(choice)

        return min(_choices(self.offers), key=counted)

    def left(self, choice: Sequence[Offer]) -> frozenset[Work]:
        """Work that is not an operator's: products, and what the CPU does."""
        rest = self._all.difference(*(offer.work for offer in choice))
        idle = {stage for stage in range(len(self.model.stages)) if not self._reads(rest, stage)}
        return rest - {(stage, SYNCHRONISING) for stage in idle}

    def total_ms(self, choice: Sequence[Offer]) -> float:
        """Milliseconds of the layers, changes of configuration included."""
        return self._total_ms(choice, self.left(choice))

    def _total_ms(self, choice: Sequence[Offer], rest: frozenset[Work]) -> float:
        times = [*(self.ms[work] for work in rest), *(offer.time.ms for offer in choice)]
        return fsum(times) + self.switch_ms * self._changes(choice, rest)  # the same in any order

    def changes(self, choice: Sequence[Offer]) -> int:
        """How often the array's configuration changes in all layers."""
        return self._changes(choice, self.left(choice))

    def _changes(self, choice: Sequence[Offer], rest: frozenset[Work]) -> int:
        order = [*self._order(choice, rest)]
        each = sum(before != after for before, after in zip(order, [*order[1:], order[0]], strict=True))
        return each * max(linear.count for linear in self.model.linears)

    def _order(self, choice: Sequence[Offer], rest: frozenset[Work]) -> Iterator[tuple[str, ...]]:
        """Configurations in the order of a layer; that of all products has no name."""
        for number, products in enumerate(self._products):
            yield from (offer.operator.configuration for offer in choice if offer.stage == number)
            if not products.isdisjoint(rest):
                yield ()

    @cached_property
    def _products(self) -> list[set[Work]]:
        """Those of each stage, under any name."""
        return [{(-1, name) for name in product_names(self.model, stage.linears)} for stage in self.model.stages]

    @cached_property
    def _all(self) -> frozenset[Work]:
        return frozenset(self.ms)

    def _reads(self, rest: frozenset[Work], stage: int) -> bool:
        """Whether the CPU does anything in a stage but to synchronise."""
        return any(self.ms[work] > 0 for work in rest if work[0] == stage and work[1] != SYNCHRONISING)


def product_names(model: Model, linears: Iterable[str]) -> set[str]:
    """What products of linear layers may be called, alone and fused."""
    return {*linears} | {fused for fused, parts in model.fusions.items() if set(parts) & set(linears)}


def _choices(offers: Sequence[Offer]) -> Iterator[tuple[Offer, ...]]:
    """All choices of which no two do the same work."""
    if not offers:
        yield ()
        return
    head, *rest = offers
    for choice in _choices(rest):
        yield choice
        if not any(head.work & offer.work for offer in choice):
            yield (head, *choice)
