"""What a mapped contraction takes, roughly: enough to choose between mappings. All times are modelled.

Cores at the MAC units' peak, DRAM by the lengths of runs (`bdforge.devices.timing`), and the host's copies. What is
known of requests is of reads; writes are taken to be as slow.
`bdforge.perf` models a chosen one closer.
"""

from dataclasses import dataclass
from math import prod

from bdforge.devices.hosts import PERMUTED_GB_S
from bdforge.devices.limits import BYTE_BITS
from bdforge.devices.timing import Timing, joined_times, timing_of
from bdforge.operators.contraction.boxes import box_size
from bdforge.operators.contraction.program import Mapped
from bdforge.operators.contraction.sides import Side

_OVERLAP = 4  # exponent at which times join; as large as this, the longest decides


@dataclass(frozen=True, slots=True)
class Price:
    """Microseconds of cores, memory and controller, which work at a time, and of the host's copies by operand."""

    core_us: float
    memory_us: float
    controller_us: float
    copies_us: tuple[float, float, float]

    @property
    def array_us(self) -> float:
        """Of the array alone: nearly the longest of them."""
        return float(joined_times([self.core_us, self.memory_us, self.controller_us], _OVERLAP))

    def total_us(self, once: str = "") -> float:
        """Of a run; operands named in `once` were staged before."""
        return self.array_us + sum(us for name, us in zip("ABC", self.copies_us, strict=True) if name not in once)


def price(mapped: Mapped) -> Price:
    """The price of a mapping."""
    gemm, tiling = mapped.gemm, mapped.gemm.tiling
    timing = timing_of(gemm.device)
    tiles = mapped.batches * mapped.rows.tiles * mapped.columns.tiles
    cycles = tiles * tiling.m * tiling.n * mapped.depth / gemm.peak_macs
    units, slabs = (tiling.rows, tiling.columns, tiling.rows * tiling.columns), mapped.depth // tiling.k_mt
    moved = [
        side.tile * side.store.bits / BYTE_BITS * tiles * count * (1 if side.tensor == 2 else slabs)
        for side, count in zip(mapped.sides, units, strict=True)
    ]
    runs = [side.run_elements() * side.store.bits / BYTE_BITS for side in mapped.sides]
    columns = (min(tiling.rows, tiling.columns), tiling.columns, tiling.columns)
    requests = sum(timing.shim_ns(moved[i] / columns[i], runs[i], tiling.columns) for i in range(3))
    alone = sum(_runs_ns(timing, side, size, run) for side, size, run in zip(mapped.sides, moved, runs, strict=True))
    memory = max(timing.port_ns(moved[0] + moved[1], moved[2]), requests, alone)
    return Price(
        timing.cycles_ns(cycles) / 1e3,
        float(memory) / 1e3,
        mapped.steps * sum(mapped.bds()) * timing.controller_transfer_ns / 1e3,
        (_copy_us(mapped.sides[0]), _copy_us(mapped.sides[1]), _copy_us(mapped.sides[2])),
    )


def _runs_ns(timing: Timing, side: Side, size: float, run: float) -> float:
    stride = run if side.staged else timing.dram_page_bytes
    return size / run * float(timing.run_ns(run, stride, False))


def _copy_us(side: Side) -> float:
    """The user's array is read once, and the buffer written; twice where dimensions are fused that are no one walk."""
    if not side.staged:
        return 0.0
    width = max(side.store.bits, BYTE_BITS) / BYTE_BITS
    user = prod(part.dim.size for part in side.parts) * width
    again = 0.0 if all(side.walks(part.dim) for part in side.parts) else user
    return (max(user, side.elements * side.store.bits / BYTE_BITS) + again) / PERMUTED_GB_S / 1e3


def useful(mapped: Mapped) -> float:
    """MACs that the answer needs over those that the array does."""
    tiling = mapped.gemm.tiling
    needed = prod({part.dim.name: part.dim.size for side in mapped.sides for part in side.parts}.values())
    tiles = mapped.batches * mapped.rows.tiles * mapped.columns.tiles * tiling.rows * tiling.columns
    return needed / (tiles * box_size(mapped.sides[0].tiles.m) * tiling.n * mapped.depth)
