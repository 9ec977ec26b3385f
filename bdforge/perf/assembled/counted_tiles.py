"""Cycles of cores with assembled kernels for every tile of a search, which asks for more than anybody could assemble.

A call of a matrix kernel takes what the generator expects before it has a schedule, within a few percent. A pass over C
takes a constant and a share for each element, and what is around the kernels a constant, from two parts on with a share
for each: counted on a few small designs of one core (`core.core_costs`). Banks are taken for free here; `core_costs`
tells one design exactly, stalls at banks with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bdforge.devices import DEVICES
from bdforge.devices.types import TYPES
from bdforge.operators.gemm import plan_gemm, spec_from
from bdforge.operators.gemm.kernels import KERNELS
from bdforge.operators.specs import SpecError
from bdforge.perf.assembled.counted_core import MAIN, CoreCosts, core_costs
from bdforge.perf.kernels.kernel_cost import expected_cycles

_ROWS = (4, 16)  # of samples, in micro-tiles; their columns and parts are below
_COLUMNS = 32
_PARTS = 2
_STACK_BYTES = 256  # more than assembled programs take


@dataclass(frozen=True, slots=True)
class Kind:
    """What the costs of cores depend on besides sizes: device, types of A, B, C and the accumulator, layouts of A, B
    and C, and whether C leaves in parts."""

    device: str
    types: tuple[str, str, str, str]
    layouts: tuple[str, str, str]
    c_in_parts: bool = False

    def costs(self, rho: int, m: int, k: int, n: int) -> CoreCosts:
        """Exact costs of a tile m x k x n on a design of one core; CodegenError, SpecError where there is none."""
        names = zip(("a", "b", "c", "accumulator"), self.types, strict=True)
        content = {
            "kind": "gemm",
            "types": dict(names),
            "layouts": dict(zip("abc", self.layouts, strict=True)),
            "array": {"rows": 1, "columns": 1},
            "tile": {"m": m, "k": k, "n": n},
            "buffers": {"k_mt": 2 * k, "rho": rho, "stack_bytes": _STACK_BYTES, **self._stays},
        }
        return core_costs(plan_gemm(spec_from(content, "sample"), DEVICES[self.device]))

    @property
    def _stays(self) -> dict[str, Any]:
        return {"residency": "b", "c_in_parts": True, "c_memtile_buffers": 1} if self.c_in_parts else {}


@dataclass(frozen=True, slots=True)
class CoreForm:
    """What tiles of one kind take; sizes are numbers or arrays.

    `around` are the cycles of a step in one part, and a constant and a part's share of others, `ends` a constant, a
    part's share and an element's.
    """

    kind: Kind
    around: tuple[float, float, float]
    ends: tuple[float, float, float]

    def step(self, rho: Any, m: Any, k: Any, n: Any) -> Any:
        """Issue cycles of the rho calls of a step of K on a tile m x k x n; CodegenError for types not assembled."""
        a, b, _, accumulator = (TYPES[name].code for name in self.kind.types)
        turned = [name for name, layout in zip("abc", self.kind.layouts, strict=True) if layout == "column"]
        generation = DEVICES[self.kind.device].generation
        return rho * expected_cycles(f"mm_{a}_{b}_{accumulator}", generation, turned, m // rho, k, n)

    def around_step(self, rho: Any) -> Any:
        """Cycles around the calls of a step."""
        whole, first, each = self.around
        return np.where(np.equal(rho, 1), whole, first + each * rho)[()]

    def ends_of(self, rho: Any, m: Any, n: Any) -> Any:
        """Cycles of zeroing and finishing a tile of C, calls and locks with them."""
        fixed, part, each = self.ends
        return fixed + part * rho + each * m * n


@cache
def core_form(kind: Kind) -> CoreForm:
    """The form of a kind; CodegenError where a kernel has no machine code."""
    a, b, _, accumulator = kind.types
    kernel = KERNELS.get((DEVICES[kind.device].generation.name, a, b, accumulator))
    if kernel is None:
        raise SpecError(f"no kernel multiplies {a} by {b} in {accumulator} on {kind.device}")
    k, n = kernel.s, max(_COLUMNS, kernel.multiples[2])
    heights = [_PARTS * rows * kernel.r for rows in _ROWS]
    small, tall = (kind.costs(_PARTS, height, k, n) for height in heights)
    more = kind.costs(2 * _PARTS, heights[1], k, n)
    ends, each = _line([height * n for height in heights], [sum(costs.ends.issue.values()) for costs in (small, tall)])
    first, part = _line([_PARTS, 2 * _PARTS], [costs.step.of(MAIN) for costs in (tall, more)])
    if kind.c_in_parts:
        return CoreForm(kind, (first + part, first, part), (0.0, ends / _PARTS, each))
    return CoreForm(kind, (kind.costs(1, heights[0], k, n).step.of(MAIN), first, part), (ends, 0.0, each))


def _line(places: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """(at 0, slope) through two points."""
    slope = (values[1] - values[0]) / (places[1] - places[0])
    return values[0] - slope * places[0], slope
