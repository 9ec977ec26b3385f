"""Plans of compositions: built designs that run one after the other, each judged by its own reference.

A step's outputs are compared with what its reference makes of the arrays that the run gave it, so that every bound is
the step's own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bdforge.common.messages import listed
from bdforge.design import Design
from bdforge.design.manifest import COMPOSITION, Manifest
from bdforge.design.sequences import Expr, PlannedSequence, Program, SequenceOptions, evaluate
from bdforge.design.sequences.expression_text import parsed
from bdforge.devices import Device
from bdforge.operators.operator_api import Cost, Expected, Kernels, Operator, Plan
from bdforge.operators.specs import Problem, Spec, SpecError

Plans = Callable[[str, Mapping[str, Any]], Plan]
"""Plans a design of a composition, by its name and what the composition's document says of it."""


def _size(size: int | str, sizes: Mapping[str, int]) -> int:
    """A step's size, by those of the composition."""
    return size if isinstance(size, int) else evaluate(parsed(size, {n: Expr("parameter", (n,)) for n in sizes}), sizes)


def _with_rows(whole: np.ndarray, rows: np.ndarray, first: int) -> np.ndarray:
    """An array with other rows from one on, which are as long as these."""
    found = whole.copy()
    found.reshape(-1, *rows.shape[1:])[first : first + len(rows)] = rows
    return found


@dataclass(frozen=True)
class ComposedSpec(Spec):
    """A composition as its manifest says it."""

    manifest: Manifest

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.manifest.design

    @property
    def kind(self) -> str:  # type: ignore[override]
        return COMPOSITION

    @property
    def facts(self) -> dict[str, Any]:
        """Its tables but for problems."""
        return {key: value for key, value in self.content.items() if key not in ("kind", "problems")}

    @property
    def content(self) -> dict[str, Any]:
        return self.manifest.document

    @property
    def sequence(self) -> SequenceOptions:  # type: ignore[override]
        return SequenceOptions("column", self.manifest.sequence.program.in_flight)

    @property
    def problems(self) -> tuple[Problem, ...]:  # type: ignore[override]
        return tuple(Problem(COMPOSITION, dict(p.sizes), p.name) for p in self.manifest.problems)

    @property
    def operator(self) -> Operator:
        """What asks for problems by shape."""

        def refuse(*_: Any) -> Any:
            raise SpecError(f"{self.name}: is a composition of built designs; bdforge compose builds it")

        return Operator(COMPOSITION, self.manifest.sequence.program.sizes, refuse, refuse)


@dataclass(frozen=True, repr=False)
class ComposedPlan(Plan):
    """A composition on a product; `plans` plans what it is made of."""

    spec: ComposedSpec
    device: Device
    plans: Plans

    @property
    def design(self) -> Design:  # type: ignore[override]
        """An array without tiles: its configurations are those of its parts."""
        return Design(self.spec.name, self.spec.manifest.mlir_device, ())

    @property
    def program(self) -> Program:
        return self.spec.manifest.sequence.program

    @property
    def kernels(self) -> Kernels:
        """None of its own."""
        return Kernels((), ())

    @property
    def writes_sequences(self) -> bool:
        return False

    @property
    def document(self) -> dict[str, Any]:
        return self.spec.content

    @cached_property
    def parts(self) -> dict[str, Plan]:
        """Plans of its designs, by name."""
        return {name: self.plans(name, facts) for name, facts in self.spec.content["designs"].items()}

    def steps(self, sizes: Mapping[str, int]) -> list[tuple[str, Plan, Problem, Mapping[str, str]]]:
        """Name, plan, problem and tensors by operand of each step."""
        found = []
        for step in self.spec.content["steps"]:
            plan = self.parts[step["design"]]
            own = {name: _size(size, sizes) for name, size in step.get("sizes", {}).items()}
            name = step.get("name") or step["design"]
            found.append((name, plan, Problem(plan.spec.kind, own), step.get("tensors", {})))
        return found

    def padding(self, sequence: PlannedSequence) -> str:
        """Nothing: all arrays are copied into slices of its buffers."""
        return "none"

    def random(self, problem: Problem, seed: int) -> dict[str, np.ndarray]:
        """Inputs as the steps that take them first would have them, floats an eighth of that.

        Products of products, such as attention's scores, would be thousands else, as no model has them.
        """
        found: dict[str, np.ndarray] = {}
        taken = {operand.name for operand in self.program.operands if operand.direction == "in"}
        for number, (_, plan, own, tensors) in enumerate(self.steps(problem.sizes)):
            inputs = plan.random(own, seed + number)
            named = {tensors[name]: array for name, array in inputs.items() if name in tensors}
            found |= {name: array for name, array in named.items() if name in taken and name not in found}
        floats = {name: array for name, array in found.items() if not np.issubdtype(array.dtype, np.integer)}
        return found | {name: (array * np.float32(1 / 8)).astype(array.dtype) for name, array in floats.items()}

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Nothing: errors of a step are the inputs of the next one."""
        return {}

    def expected(
        self, inputs: Mapping[str, np.ndarray], made: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, Expected]:
        """What each step should have made of what it got."""
        there, known = {**inputs, **(made or {})}, {operand.name for operand in self.program.operands}
        sizes = {
            name: array.shape[place]
            for operand in self.program.operands
            if (array := there.get(operand.name)) is not None
            for place, axis in enumerate(operand.axes)
            if isinstance(name := self.program.values[axis.size], str)
        }
        for name, view in self.spec.content.get("views", {}).items():
            if name in there and (of := view["of"]) in inputs:
                there[of] = _with_rows(there[of], there[name], _size(view.get("first", 0), sizes))
        found: dict[str, Expected] = {}
        for step, plan, problem, tensors in self.steps(sizes):
            gone = [tensor for tensor in tensors.values() if tensor not in known]
            if gone:  # another tensor has its place
                continue
            if missing := [tensor for tensor in tensors.values() if tensor not in there]:
                raise SpecError(f"{self.spec.name}: step {step} cannot be judged without {listed(missing)}")
            shapes = self._shapes(plan, problem)
            given = {
                o.name: there[tensors[o.name]].reshape(shapes[o.name])
                for o in plan.program.operands
                if o.direction == "in" and o.name in tensors
            }
            for name, expected in plan.expected(given).items():
                tensor = tensors[name]
                shape = there[tensor].shape
                bound = None if expected.bound is None else np.broadcast_to(expected.bound, shapes[name]).reshape(shape)
                found[tensor] = Expected(expected.values.reshape(shape), bound)
        return found

    @staticmethod
    def _shapes(plan: Plan, problem: Problem) -> dict[str, tuple[int, ...]]:
        values = plan.sequence(problem).values
        return {o.name: tuple(values[axis.size] for axis in o.axes) for o in plan.program.operands}

    def cost(self, problem: Problem) -> Cost:
        """What its steps cost together; the busiest core, channel and shortest run are those of any of them."""
        costs = [plan.cost(own) for _, plan, own, _ in self.steps(problem.sizes)]
        return Cost(
            sum(c.operations for c in costs), sum(c.core_cycles for c in costs), sum(c.read_bytes for c in costs),
            sum(c.write_bytes for c in costs), sum(c.channel_bytes for c in costs), min(c.run_bytes for c in costs),
        )  # fmt: skip
