"""Operators of a model's layers as designs of their own on the array: rows of data, and what each takes.

A row says which design, its sizes for so many tokens, and whose work it does: of the CPU's operators in its stage, or
of products too, which a design with another epilogue makes instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bdforge.common.files import read_toml
from bdforge.common.tree import tree
from bdforge.devices import Device
from bdforge.devices.timing import Timing
from bdforge.operators import Spec, SpecError, operator_of, plan, spec_from
from bdforge.operators.gemm import GemmProblem, GemmSpec
from bdforge.perf.bounds.estimate import Estimate
from bdforge.perf.bounds.operator_bound import CostEstimate, cost_estimate


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """What one operator of a model takes in all its layers, on "NPU" or "CPU"; `dispatch_ms` is part of `ms`.

    `submissions`: how often the array is handed work; GEMMs that join others are part of theirs. `instead`: what its
    work takes elsewhere, where that is known.
    """

    operator: str
    where: str
    count: int
    ms: float
    dispatch_ms: float = 0.0
    bound: str = ""
    problem: str = ""
    submissions: int = 0
    instead: str = ""

    def times(self, count: int) -> "OperatorTime":
        """It so many times."""
        ms, dispatch_ms = count * self.ms, count * self.dispatch_ms
        submissions = count * self.submissions
        return replace(self, count=count * self.count, ms=ms, dispatch_ms=dispatch_ms, submissions=submissions)


@dataclass(frozen=True, slots=True)
class ArrayOperator:
    """Work of a stage that a design does on the array, with one dispatch a layer.

    `design` names a file of `designs/`, of which `changes` replace keys. `replaces`: CPU operators of its stage, all of
    their share there, and products of the model. An axis of its problem is a size that is always so (`sizes`) or
    `per_token` times the tokens.
    """

    name: str
    design: str
    replaces: tuple[str, ...]
    per_token: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def configuration(self) -> tuple[str, str]:
        """What is loaded for it: operators that share it follow one another without another."""
        return self.design, str(dict(self.changes))

    def spec(self) -> Spec:
        """Its design's, with the changes. SpecError for those that it does not know."""
        path = tree() / "designs" / f"{self.design}.toml"
        return spec_from({**read_toml(path, SpecError), **self.changes}, self.design, str(path))

    def sizes_of(self, tokens: int) -> dict[str, int]:
        """By axis, for so many tokens."""
        return {axis: each * tokens for axis, each in self.per_token.items()} | dict(self.sizes)


Timed = Callable[[ArrayOperator, int], OperatorTime]
"""What one run of an operator takes for so many tokens."""
_Modelled = Callable[[dict[str, int]], Estimate | CostEstimate]


def operators_on(
    device: Device, timing: Timing, gemms: Callable[[GemmSpec], Callable[[GemmProblem], Estimate]]
) -> Timed:
    """Times on a product: of GEMMs as `gemms` models a spec, of others by what their runs cost.

    Each design is planned once. Errors of the calls as of `plan`, `cost_estimate` and what `gemms` makes.
    """
    made: dict[tuple[str, str], _Modelled] = {}

    def of_design(spec: Spec) -> _Modelled:
        if isinstance(spec, GemmSpec):
            modelled = gemms(spec)
            return lambda sizes: modelled(GemmProblem.of(sizes))
        planned, operator = plan(spec, device), operator_of(spec)
        return lambda sizes: cost_estimate(planned, operator.problem([sizes[axis] for axis in operator.axes]), timing)

    def timed(operator: ArrayOperator, tokens: int) -> OperatorTime:
        if operator.configuration not in made:
            made[operator.configuration] = of_design(operator.spec())
        sizes = operator.sizes_of(tokens)
        found = made[operator.configuration](sizes)
        dispatch_us = found.serial["dispatch"] + found.serial.get("last token", 0.0)
        problem = "x".join(map(str, sizes.values()))
        return OperatorTime(operator.name, "NPU", 1, found.time_us / 1e3, dispatch_us / 1e3, found.bound, problem, 1)

    return timed
