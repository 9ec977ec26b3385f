"""Functions of a model beside its products, by designs of their own on the array where that is faster.

A design serves a function when its spec says so: operator, function and sizes that it was built for. What it computes
is in bfloat16, within its operator's bounds; the CPU computes in float32.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES
from bdforge.models.split import PLACES, Decision, Ledger
from bdforge.operators import Plan, operator_of, plan_of
from bdforge.operators.gemm import GemmSpec
from bdforge.perf.bounds.operator_bound import cost_estimate
from bdforge.runtime import Loaded, load

_BF16 = TYPES["bf16"].dtype


@dataclass(frozen=True, slots=True, eq=False)
class PartDesign:
    """A loaded design of an operator."""

    loaded: Loaded
    plan: Plan

    def serves(self, facts: Mapping[str, Any]) -> bool:
        """Whether its spec says all of them; what it does not say is off."""
        spec = self.plan.spec
        said = {"kind": spec.kind, **spec.facts}
        return all(said.get(name, False) == value for name, value in facts.items())

    def us(self, sizes: Sequence[int]) -> float:
        """Microseconds of an NPU, modelled, dispatch included; changes of its configuration are not."""
        problem = operator_of(self.plan.spec).problem(sizes)
        return cost_estimate(self.plan, problem, timing_of(self.plan.device)).time_us

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Its outputs in order, bfloat16 as float32, of inputs that are rounded to bfloat16."""
        made = self.loaded(**{name: array.astype(_BF16) for name, array in inputs.items()})
        outputs = [*made.values()] if isinstance(made, dict) else [made]
        return [out.astype(np.float32) if out.dtype == _BF16 else out for out in outputs]


@dataclass
class ArrayParts:
    """Designs that are there, and by which of `RULES` they are taken. Each call is an entry of the ledger."""

    designs: tuple[PartDesign, ...] = ()
    rule: str = "estimate"
    ledger: Ledger = field(default_factory=Ledger)
    _made: dict[tuple[str, tuple[int, ...]], Decision] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, folders: Sequence[Path | str], device: str | None, rule: str, ledger: Ledger) -> "ArrayParts":
        """Designs built in folders; `device` as of `bdforge.load`, `rule` as of `Split`."""
        loaded: list[Loaded] = []
        for folder in folders:
            loaded.append(load(folder, device, beside=loaded))
        return cls(
            tuple(PartDesign(one, plan_of(one.design.manifest, one.design.folder)) for one in loaded), rule, ledger
        )

    def design(self, **facts: Any) -> PartDesign | None:
        """One whose spec says this, if it is there and may be taken."""
        if self.rule == "cpu":
            return None
        return next((design for design in self.designs if design.serves(facts)), None)

    def product(self, gate: str = "none", outputs: Sequence[int] = ()) -> PartDesign | None:
        """The GEMM whose epilogue gates so, or whose outputs have so many columns, if it is there and may be taken."""
        gemms = [(design, design.plan.spec) for design in self.designs if isinstance(design.plan.spec, GemmSpec)]
        wanted = gate, tuple(outputs)
        found = (one for one, spec in gemms if (spec.epilogue.gate, tuple(o.columns for o in spec.outputs)) == wanted)
        return None if self.rule == "cpu" else next(found, None)

    def __call__(
        self, part: str, design: PartDesign, sizes: tuple[int, ...], inputs: Mapping[str, np.ndarray],
        on_cpu: Callable[[], list[np.ndarray]],
    ) -> list[np.ndarray]:  # fmt: skip
        """What a design makes of inputs of these sizes, or `on_cpu` does where that takes less. Numbers that are not
        finite are the CPU's, whose results show where they came from."""
        decision = self._decision(part, design, sizes, on_cpu)
        finite = all(np.isfinite(array).all() for array in inputs.values())
        if not (decision.array and finite):
            with self.ledger.timed(part, "CPU", decision.why if finite else "not all numbers are finite"):
                return on_cpu()
        with self.ledger.timed(part, PLACES[design.loaded.device], decision.why, decision.npu_us):
            return design(inputs)

    def _decision(
        self, part: str, design: PartDesign, sizes: tuple[int, ...], on_cpu: Callable[[], object]
    ) -> Decision:
        """Made once for a size; the CPU's time is then that of one run here."""
        key = f"{part} {design.loaded.design.name}", sizes
        if key not in self._made:
            npu_us = design.us(sizes)
            if self.rule == "estimate":
                start = time.perf_counter()
                on_cpu()
                cpu_us = 1e6 * (time.perf_counter() - start)
                self._made[key] = Decision.faster(f"of {_shown(sizes)}", npu_us, cpu_us, "one run timed")
            else:
                self._made[key] = Decision(self.rule == "array", f"as asked, of {_shown(sizes)}", npu_us)
        return self._made[key]


def _shown(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))
