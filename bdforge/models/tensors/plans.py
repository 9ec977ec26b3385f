"""Plans of contractions on a design, kept from call to call."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np

from bdforge.common.messages import clip
from bdforge.design.sequences import PlannedSequence
from bdforge.operators import plan_of
from bdforge.operators.contraction import ContractionPlan, contraction, parse, plan_contraction
from bdforge.operators.gemm import GemmPlan
from bdforge.runtime import BuildError, BuiltDesign, OperandError

PLANS_MAX = 256
"""Plans of a design that are kept; one has some hundred KB where its sequence is long."""
Key = tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], str | None]


@dataclass(frozen=True, slots=True)
class Planned:
    """A contraction's plan and its sequence."""

    plan: ContractionPlan
    sequence: PlannedSequence


class Plans:
    """Plans of contractions on a design, those used last kept by expression, shapes and strides; for any thread."""

    def __init__(self, design: BuiltDesign):
        self._design = design
        self._plans: dict[Key, Planned] = {}
        self._lock = Lock()

    @cached_property
    def gemm(self) -> GemmPlan:
        """The design's plan; BuildError where it is no GEMM."""
        found = plan_of(self._design.manifest)
        if not isinstance(found, GemmPlan):
            raise BuildError(f"design {self._design.name} is no GEMM; contractions need one")
        return found

    def plan(self, expression: str, *arrays: np.ndarray, staged: str | None = None) -> Planned:
        """How a contraction of such arrays runs; ContractionError where it cannot. `staged` as of `einsum`."""
        sizes = sizes_of(parse(expression), arrays)
        strides = tuple(tuple(s // array.itemsize for s in array.strides) for array in arrays)
        key = expression, tuple(array.shape for array in arrays), strides, staged
        with self._lock:
            if (known := self._plans.pop(key, None)) is not None:
                self._plans[key] = known
                return known
        plan = plan_contraction(contraction(expression, sizes, (*strides, None)), self.gemm, staged)
        found = Planned(plan, plan.sequence(plan.problem))
        with self._lock:
            while len(self._plans) >= PLANS_MAX:
                del self._plans[next(iter(self._plans))]
            return self._plans.setdefault(key, found)


def sizes_of(tensors: Sequence[str], arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """Sizes by label; OperandError for arrays that do not fit."""
    sizes: dict[str, int] = {}
    for labels, array in zip(tensors, arrays, strict=False):
        if len(labels) != array.ndim:
            raise OperandError(f"operand {clip(labels)!r} has {len(labels)} labels; its array has {array.ndim} axes")
        for label, size in zip(labels, array.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise OperandError(f"label {label} is {sizes[label]} in one operand, {size} in another")
    return sizes
