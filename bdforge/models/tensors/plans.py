"""Plans of contractions on a design, kept from call to call."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from bdforge.design.sequences import PlannedSequence
from bdforge.operators import plan_of
from bdforge.operators.contraction import ContractionPlan, contraction, parse, plan_contraction
from bdforge.operators.gemm import GemmPlan
from bdforge.runtime import BuildError, BuiltDesign

PLANS_MAX = 256
"""Plans of a design that are kept; one has some hundred KB where its sequence is long."""
Steps = tuple[tuple[int, ...], ...]
"""A number for each axis of each array."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A contraction's plan and its sequence."""

    plan: ContractionPlan
    sequence: PlannedSequence


class Plans:
    """Plans of contractions on a design, those used last kept by expression, shapes and strides; for any thread."""

    def __init__(self, design: BuiltDesign):
        self._design = design
        self._kept = lru_cache(PLANS_MAX)(self._made)

    @cached_property
    def gemm(self) -> GemmPlan:
        """The design's plan; BuildError where it is no GEMM."""
        found = plan_of(self._design.manifest)
        if not isinstance(found, GemmPlan):
            raise BuildError(f"design {self._design.name} is no GEMM; contractions need one")
        return found

    def plan(self, expression: str, *arrays: np.ndarray, staged: str | None = None) -> Planned:
        """How a contraction of such arrays runs; ContractionError where it cannot. `staged` as of `einsum`."""
        strides = tuple(tuple(s // array.itemsize for s in array.strides) for array in arrays)
        return self._kept(expression, tuple(array.shape for array in arrays), strides, staged)

    def _made(self, expression: str, shapes: Steps, strides: Steps, staged: str | None) -> Planned:
        given = contraction(expression, sizes_of(parse(expression), shapes), (*strides, None))
        plan = plan_contraction(given, self.gemm, staged)
        return Planned(plan, plan.sequence(plan.problem))


def sizes_of(tensors: Sequence[str], shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    """Sizes by label of arrays that fit (`einsum_expression.joined`)."""
    return {label: size for labels, shape in zip(tensors, shapes, strict=False)
            for label, size in zip(labels, shape, strict=True)}  # fmt: skip
