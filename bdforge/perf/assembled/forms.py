"""Cycles of cores with assembled kernels for every tile at once: forms through exact counts of a few small tiles.

A search asks for more tiles than anybody could assemble. A matrix kernel's call on rows x k x n in blocks of 2 x 2
micro-tiles, `down` and `across` of them, takes

    c0 + c1 · down + (c2 + c3 · k) · down · across

issue cycles, a pass over C a constant and a share for each element, and what is around the kernels a constant, from two
parts on with a share for each. Counted on designs of one core (`core.core_costs`); blocks at odd edges are taken for
their share of a whole one, and banks for free. `core_costs` tells one design exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bdforge.devices import DEVICES
from bdforge.operators.gemm import plan_gemm, spec_from
from bdforge.operators.gemm.kernels import KERNELS
from bdforge.operators.specs import SpecError
from bdforge.perf.assembled.core import MAIN, CoreCosts, core_costs

_BLOCK = 2  # micro-tiles down and across
_DEPTHS = (6, 24)  # of samples, in steps that micro-tiles make
_SHAPES = ((1, 1), (2, 1), (2, 2))
_PARTS = 2  # of samples: small calls are parts of a tile
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
    """The forms of one kind; sizes are numbers or arrays.

    `block` are rows and columns of a block, `call` c0 to c3, `around` the cycles of a step in one part, and a constant
    and a part's share of others, `ends` a constant, a part's share and an element's.
    """

    block: tuple[int, int]
    call: Sequence[float]
    around: tuple[float, float, float]
    ends: tuple[float, float, float]

    def step(self, rho: Any, m: Any, k: Any, n: Any) -> Any:
        """Issue cycles of the rho calls of a step of K on a tile m x k x n."""
        terms = _terms(m / rho / self.block[0], k, n / self.block[1])
        return rho * sum(share * term for share, term in zip(self.call, terms, strict=True))

    def around_step(self, rho: Any) -> Any:
        """Cycles around the calls of a step."""
        whole, first, each = self.around
        return np.where(np.equal(rho, 1), whole, first + each * rho)[()]

    def ends_of(self, rho: Any, m: Any, n: Any) -> Any:
        """Cycles of zeroing and finishing a tile of C, calls and locks with them."""
        fixed, part, each = self.ends
        return fixed + part * rho + each * m * n


def _terms(down: Any, k: Any, across: Any) -> tuple[Any, ...]:
    return 1.0, down, down * across, down * across * k


@cache
def core_form(kind: Kind) -> CoreForm:
    """The forms of a kind; CodegenError where a kernel has no machine code."""
    a, b, _, accumulator = kind.types
    kernel = KERNELS.get((DEVICES[kind.device].generation.name, a, b, accumulator))
    if kernel is None:
        raise SpecError(f"no kernel multiplies {a} by {b} in {accumulator} on {kind.device}")
    across, block = max(_BLOCK * kernel.t, kernel.multiples[2]), (_BLOCK * kernel.r, _BLOCK * kernel.t)
    tiles = [(down * block[0], depth * kernel.s, wide * across) for depth in _DEPTHS for down, wide in _SHAPES]
    found = [kind.costs(_PARTS, _PARTS * m, k, n) for m, k, n in tiles]
    calls = [costs.step.issue[costs.multiply] / _PARTS for costs in found]
    call = _fitted([_terms(m / block[0], k, n / block[1]) for m, k, n in tiles], calls)
    fixed, each = _fitted(
        [(1.0, _PARTS * m * n) for m, _, n in tiles], [sum(costs.ends.issue.values()) for costs in found]
    )
    around = _around(kind, *tiles[0])
    ends = (0.0, fixed / _PARTS, each) if kind.c_in_parts else (fixed, 0.0, each)
    return CoreForm(block, call, around, ends)


def _around(kind: Kind, m: int, k: int, n: int) -> tuple[float, float, float]:
    few, many = (kind.costs(rho, rho * m, k, n).step.issue[MAIN] for rho in (_PARTS, 2 * _PARTS))
    each = (many - few) / _PARTS
    whole = few if kind.c_in_parts else kind.costs(1, m, k, n).step.issue[MAIN]
    return whole, few - each * _PARTS, each


def _fitted(terms: Sequence[Sequence[float]], cycles: Sequence[float]) -> tuple[float, ...]:
    """Least squares of relative errors."""
    wanted = np.array(cycles)
    found, *_ = np.linalg.lstsq(np.array(terms) / wanted[:, None], np.ones(len(wanted)), rcond=None)
    return tuple(float(number) for number in found)
