"""What a tuner may choose: every tile, slab and buffering of a GEMM design on a device, as arrays.

A candidate is one choice of m, k, n, k_mt, c_buffers, rho, a_shims and B's layout. c_memtile_buffers is no choice of
its own: it is 2 where memtiles have room for it, since the analytical model does not tell the two apart.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bdforge.design.buffer_addresses import occupied
from bdforge.devices import Device, TileKind
from bdforge.devices.types import TYPES, ElementType, type_named
from bdforge.operators.gemm import GemmSpec, plan_gemm, spec_from
from bdforge.operators.gemm.core_tiles import core_parts
from bdforge.operators.gemm.kernels import Kernel, kernel_for
from bdforge.operators.gemm.spec_check import shims_found
from bdforge.operators.specs import STACK_BYTES
from bdforge.perf.errors import PerfError

_PARTS_MAX = 6  # of C: two buffers of so many take what A and B leave of a core's BDs
B_LAYOUTS = ("packed", "row", "column")
BUFFERS = (1, 2)


class Candidate(NamedTuple):
    """A choice: numbers, or arrays of one length for many choices side by side. `b_layout` indexes `B_LAYOUTS`."""

    m: Any
    k: Any
    n: Any
    k_mt: Any
    c_buffers: Any
    c_memtile_buffers: Any
    rho: Any
    a_shims: Any
    b_layout: Any

    @property
    def length(self) -> int:
        """How many choices arrays hold."""
        return len(self.m)

    def at(self, chosen: np.ndarray | slice) -> "Candidate":
        """Some of the choices that arrays hold."""
        return Candidate(*(values[chosen] for values in self))

    def row(self, index: int) -> "Candidate":
        """One of the choices that arrays hold, in numbers."""
        return Candidate(*(int(values[index]) for values in self))

    @classmethod
    def of(cls, rows: Sequence[tuple[int, ...]]) -> "Candidate":
        """Arrays of choices."""
        return cls(*np.array(rows, np.int64).reshape(-1, len(cls._fields)).T)


FIXABLE = tuple(name for name in Candidate._fields if name not in ("c_memtile_buffers", "b_layout"))
"""What a search may be told: the layouts of B are given by name, buffers of C in memtiles follow."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What is given: device, element types as specs name them, layouts of A and C, and B's layouts to try.

    `deepest` is the largest K of the problems: deeper slabs would only pad. `fixed` names fields of candidates and the
    values that they may have.
    """

    device: Device
    a: str
    b: str
    c: str
    accumulator: str
    b_layouts: tuple[str, ...]
    deepest: int
    a_layout: str = "row"
    c_layout: str = "row"
    stack_bytes: int = STACK_BYTES
    fixed: tuple[tuple[str, tuple[int, ...]], ...] = ()
    residency: str = "none"

    @property
    def c_memtile_buffers(self) -> int:
        """Tiles of C for each core in a memtile that are tried first: where B stays, the room is B's."""
        return 1 if self.residency == "b" else 2

    def c_in_parts(self, rho: Any, k: Any, k_mt: Any) -> Any:
        """Where C leaves cores in parts: wherever it can, of designs with B in the memtiles; numbers or arrays."""
        plain = not (self.c_type.blocked or TYPES[self.accumulator].blocked)
        return (rho > 1) & (rho <= _PARTS_MAX) & (k_mt % (2 * k) == 0) & (self.residency == "b" and plain)

    def allows(self, candidates: Candidate) -> np.ndarray:
        """Which candidates have the values that are fixed."""
        wanted = np.ones(candidates.length, bool)
        for name, values in self.fixed:
            wanted &= np.isin(getattr(candidates, name), values)
        return wanted

    @property
    def rows(self) -> int:
        return self.device.core_rows

    @property
    def columns(self) -> int:
        return self.device.columns

    @property
    def kernel(self) -> Kernel:
        return _kernel(self)

    @property
    def types(self) -> tuple[str, str, str]:
        """Types of A, B and the accumulator."""
        return self.a, self.b, self.accumulator

    @property
    def c_type(self) -> ElementType:
        """C as it leaves a core."""
        return TYPES[self.c]

    def spec(self, candidate: Candidate, name: str = "candidate") -> GemmSpec:
        """The design spec of one candidate, without problems."""
        return spec_from(self.content(candidate), name)

    def content(self, candidate: Candidate) -> dict[str, Any]:
        """The same as TOML content."""
        row = candidate._asdict()
        b_layout = B_LAYOUTS[row.pop("b_layout")]
        tile = {axis: row.pop(axis) for axis in "mkn"}
        return {
            "kind": "gemm",
            "types": {"a": self.a, "b": self.b, "c": self.c, "accumulator": self.accumulator},
            "layouts": {"a": self.a_layout, "b": b_layout, "c": self.c_layout},
            "array": {"rows": self.rows, "columns": self.columns},
            "tile": tile,
            "buffers": {**row, "stack_bytes": self.stack_bytes, **self._stays(row, tile["k"])},
        }

    def _stays(self, row: Mapping[str, int], k: int) -> dict[str, Any]:
        if self.residency == "none":
            return {}
        return {"residency": self.residency, "c_in_parts": bool(self.c_in_parts(row["rho"], k, row["k_mt"]))}


@cache
def _kernel(space: SearchSpace) -> Kernel:
    found = kernel_for(space.device.generation, space.spec(Candidate(64, 64, 64, 64, 1, 1, 1, 1, 0)))
    assert found is not None, "spaces are made by `search_space`, which asks for a kernel"
    return found


def search_space(
    device: Device, types: str, deepest: int, *, b_layouts: tuple[str, ...] = B_LAYOUTS,
    a_layout: str = "row", c_layout: str = "row", fixed: Mapping[str, Collection[int]] = MappingProxyType({}),
    residency: str = "none", stack_bytes: int = STACK_BYTES,
) -> SearchSpace:  # fmt: skip
    """The space for `types`, such as `int8,int2,int32`: A, B, C and, if need be, the accumulator.

    B's layouts are cut to those that its type allows; cores keep `stack_bytes` for their stacks. SpecError,
    TypeNameError or PerfError where no design has them.
    """
    names = [part for part in types.split(",") if part.strip()]
    if len(names) not in (3, 4):
        raise PerfError(f"types {types!r} are not A,B,C or A,B,C,accumulator, such as int8,int2,int32")
    if stack_bytes % (align := device.generation.vector_align_bytes):
        raise PerfError(f"a stack of {stack_bytes} bytes is no multiple of {align}, which vectors behind it need")
    named = [type_named(name).name for name in names]
    a, b, c = named[:3]
    given = {"accumulator": named[3]} if len(named) == 4 else {}
    size, at_64 = 64, {"m": 64, "k": 64, "n": 64}
    packed = {"kind": "gemm", "types": {"a": a, "b": b, "c": c, **given}, "tile": at_64, "buffers": {"k_mt": size}}
    packed["layouts"] = {"a": a_layout, "b": "packed", "c": c_layout}
    spec = spec_from({**packed, "array": {"rows": device.core_rows, "columns": device.columns}}, "types")
    kernel = plan_gemm(spec, device).kernel  # says what is wrong with types, device or layouts of A and C
    allowed = ("packed",) if kernel.b.packed_only or residency == "b" else B_LAYOUTS
    chosen = tuple(layout for layout in b_layouts if layout in allowed)
    if not chosen:
        kind = f"{b} that stays" if residency == "b" else b
        raise PerfError(f"B of {kind} can be {' or '.join(allowed)}, not {' or '.join(b_layouts)}")
    kept = tuple((name, tuple(sorted(values))) for name, values in sorted(fixed.items()))
    return SearchSpace(
        device, a, b, c, spec.accumulator, chosen, deepest, a_layout, c_layout, stack_bytes, kept, residency
    )


def rows_of_tiles(space: SearchSpace) -> list[int]:
    """Every m for which some tile fits a core: the parts in which a search is made."""
    kernel = space.kernel
    r, k, n = kernel.multiples
    free = _free_bytes(space) - 2 * buffer_bytes(r * k, kernel.a) - 2 * buffer_bytes(k * n, kernel.b)
    most = free // max(buffer_bytes(r * n, kernel.accumulator), 1)
    heights = dict(space.fixed).get("m")
    return [m for m in range(r, r * int(most) + 1, r) if heights is None or m in heights]


def candidates_of(space: SearchSpace, m: int) -> Iterator[Candidate]:
    """All candidates with this m whose buffers fit a core, in pieces; `legal.legal` says which can be built."""
    for k, n, c_buffers, rho in _tiles(space, m):
        slices = _slices(space, k)
        layouts = np.array([B_LAYOUTS.index(layout) for layout in space.b_layouts])
        index, slices, shims, layout = _mesh(np.arange(len(k)), slices, np.array(BUFFERS), layouts)
        k_mt = k[index] * slices
        useful = k_mt < space.deepest + k[index]  # at most one slice more than the deepest problem
        useful &= shims_found(shims, space.rows, space.columns)
        index, shims, layout, k_mt = (array[useful] for array in (index, shims, layout, k_mt))
        found = Candidate(
            np.full(len(index), m), k[index], n[index], k_mt, c_buffers[index],
            np.full(len(index), space.c_memtile_buffers), rho[index], shims, layout,
        )  # fmt: skip
        yield found.at(space.allows(found))


def _tiles(space: SearchSpace, m: int) -> Iterator[tuple[np.ndarray, ...]]:
    """(k, n, c_buffers, rho) whose buffers fit a core beside its stack, for each rho."""
    kernel = space.kernel
    r, step_k, step_n = kernel.multiples
    free, wanted = _free_bytes(space), dict(space.fixed).get("rho")
    for rho in (d for d in wanted or range(1, m // r + 1) if m % (r * d) == 0):
        n_most = (free - 2 * buffer_bytes(m // rho * step_k, kernel.a)) // buffer_bytes(m * step_n, kernel.accumulator)
        left = free - buffer_bytes(m * step_n, kernel.accumulator)
        k_most = min(left // (2 * buffer_bytes(m // rho * step_k, kernel.a)), -(-space.deepest // step_k))
        if n_most < 1 or k_most < 1:
            continue
        ks, ns = step_k * np.arange(1, k_most + 1), step_n * np.arange(1, n_most + 1)
        k, n, c_buffers = _mesh(ks, ns, np.array(BUFFERS))
        chosen = core_holds(space, m, k, n, c_buffers, rho)
        k, n, c_buffers = k[chosen], n[chosen], c_buffers[chosen]
        yield k, n, c_buffers, np.full(len(k), rho)


def core_holds(space: SearchSpace, m: Any, k: Any, n: Any, c_buffers: Any, rho: Any) -> Any:
    """Whether a core's memory holds a tile's buffers beside its stack, aligned for vectors; numbers or arrays.

    None is longer than a BD then: A and B lie there twice, C beside them.
    """
    kernel, generation = space.kernel, space.device.generation
    a, b = buffer_bytes(m // rho * k, kernel.a), buffer_bytes(k * n, kernel.b)
    sums = buffer_bytes(m * n, kernel.accumulator)
    limits, align = generation.limits(TileKind.CORE), generation.vector_align_bytes
    held = occupied(space.stack_bytes, core_parts(a, b, sums, c_buffers)) <= limits.memory_bytes
    return held & (a % align == 0) & (b % align == 0) & (sums % align == 0)


def buffer_bytes(count: Any, type_: ElementType) -> Any:
    """Bytes of a buffer of `count` elements, in whole elements of memory."""
    return count * type_.bits // type_.memory_bits * type_.memory_bits // 8


def _slices(space: SearchSpace, k: np.ndarray) -> np.ndarray:
    """How many slices slabs have: as many as leave one by one, or those of the depths that are fixed."""
    depths = dict(space.fixed).get("k_mt")
    if depths is None:
        return np.arange(1, most_slices(space.device) + 1)
    counts = {depth // size for depth in depths for size in np.unique(k).tolist() if depth % size == 0}
    return np.array(sorted(counts), int)


def most_slices(device: Device) -> int:
    """Slices that a memtile's channel can send one by one: two BDs each, of the half that its channels share."""
    return len(device.generation.limits(TileKind.MEMTILE).bds_of_channel(0)) // 2


def _mesh(*axes: np.ndarray) -> list[np.ndarray]:
    return [grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]


def _free_bytes(space: SearchSpace) -> int:
    """No less than what buffers can have."""
    return space.device.generation.limits(TileKind.CORE).memory_bytes - space.stack_bytes
