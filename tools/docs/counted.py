"""Counted cycles of assembled kernels (`counted.csv`), and designs of theirs in emulated time.

The designs' table is `counted_designs.csv`.

`run_all` assembles every kernel of docs/kernel_costs.md and runs the designs with their machine code on the emulated
array (minutes); both pages are made from the tables.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from bdforge.array.emulator import TimingReport, replay
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.kernels import assembled
from bdforge.devices import Generation, device_named
from bdforge.devices.timing import Timing, timing_of
from bdforge.operators.gemm import GemmProblem, GemmSpec, SpecError, load_spec, plan_gemm
from bdforge.perf.assembled.counted_core import MAIN, CoreCosts
from bdforge.perf.assembled.counted_tiles import Kind
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.timed import recorded
from bdforge.perf.tune.time_model import kernel_on
from tools.fit.kernel_rates import comparisons

KERNELS, CHOICES, DESIGNS = (
    Path(__file__).with_name(f"counted{name}.csv") for name in ("", "_choices", "_designs")
)  # fmt: skip
TILE = (64, 128, 64)
OURS = "ours"
FLOATS = (64, 64, 64, 1)  # of twice that depth a core does not hold A, B and C
FLAGSHIP = (64, 192, 160, 4)
ASSEMBLED = (64, 128, 160, 2)  # of the design that is tuned for assembled kernels
CHOSEN_TILES = (*TILE, 1), FLAGSHIP, ASSEMBLED, (64, 96, 160, 1)
CHOSEN_OPTIONS = (
    "", "LOOPS=hardware", "BLOCKS=4x1", "BLOCKS=2x2", "BLOCKS=2x1", "BLOCKS=2x1 LOOPS=hardware",
    "BLOCKS=2x1 B_TOP_SIGNED",
)  # fmt: skip
_DRAM = (47.0, 61.0)  # GB/s both ways, between which an owner's memory may lie
_TYPES = {
    "aie2p": (
        "int8 int8 int8 int8", "int8 int8 int16 int16", "int8 int8 int32 int32", "int8 int4 int16 int16",
        "int8 int4 int32 int32", "int8 int2 int32 int32", "int8 int8 int8 int32", "int8 int8 int16 int32",
        "bf16 bf16 bf16 bf16", "bf16 bf16 f32 f32", "bfp16 bfp16 bfp16 bfp16", "bfp16 bfp16 bfp16 bf16",
        "bf16 bfp16 bf16 bf16",
    ),
    "aie2": (
        "int8 int8 int8 int8", "int8 int8 int16 int16", "int8 int8 int32 int32", "int8 int2 int32 int32",
        "int8 int4 int16 int16", "int8 int4 int32 int32",
        "bf16 bf16 bf16 bf16", "bf16 bf16 f32 f32", "bf16 bf16 bf16 f32",
    ),
}  # fmt: skip
TARGETS = (
    ("gemm_i8_i2_tuned", (1024, 2560, 2560), 25.0),
    ("gemm_i8_i2_tuned_asm", (1024, 2560, 2560), 25.0),
    ("gemm_i8_i2_resident", (1024, 2560, 2560), 25.0),
    ("gemm_i8_i2_bf16", (1024, 2560, 2560), 29.0),
    ("gemm_i8_i2_resident", (1024, 2560, 13824), 33.0),
)
"""Designs, problems, and the TOPS that they are to reach."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A function of a core: its cycles a call by issue, and stalls at the core's own banks where a plan puts buffers.

    `source` says whose tile it is: "ours", or that of a publication. `macs` of a call, 0 for passes over C; `around` is
    what a step of K takes besides its calls of a matrix kernel.
    """

    source: str
    generation: str
    types: str
    symbol: str
    m: int
    k: int
    n: int
    rho: int
    issue: float
    stalls: float
    macs: int
    around: float

    @property
    def rate(self) -> float:
        """MACs per cycle, stalls counted."""
        return self.macs / (self.issue + self.stalls)


@dataclass(frozen=True, slots=True)
class Choice:
    """A call of a matrix kernel with options beside those of its tile, written with blanks between: cycles by issue."""

    generation: str
    symbol: str
    m: int
    k: int
    n: int
    rho: int
    options: str
    issue: int


@dataclass(frozen=True, slots=True)
class Reached:
    """A problem of a design in the model and in emulated time, with DRAM that gives `dram_gb_s` both ways together.

    `ends` is the share of a tile's cycles that go into zeroing and finishing C. `stalls` is the share of a core's time
    that it waits for its own banks, `dma_stalls` what it would wait besides for banks that a DMA uses (expected).
    """

    design: str
    M: int
    K: int
    N: int
    target: float
    dram_gb_s: float
    modelled_us: float
    bound: str
    ends: float
    emulated_us: float
    stalls: float
    dma_stalls: float

    def tops(self, time_us: float) -> float:
        """10^12 operations per second in that time."""
        return 2 * self.M * self.K * self.N / time_us / 1e6


def counts() -> Iterator[Counted]:
    """Every assembled kernel on our tile and the flagship's, and on the published tiles of its types."""
    for generation, device in (("aie2p", "strix_halo"), ("aie2", "phoenix")):
        for types in _TYPES[generation]:
            yield from of_tile(OURS, device, types, FLOATS if types.startswith("bf16") else (*TILE, 1))
    yield from of_tile(OURS, "strix_halo", "int8 int2 int32 int32", FLAGSHIP)
    for row in comparisons():
        p = row.published
        yield from of_tile(p.source, p.device, " ".join((*p.types, p.types[2])), (p.m, p.k, p.n, p.rho))


def of_tile(source: str, device: str, types: str, tile: tuple[int, int, int, int]) -> Iterator[Counted]:
    """Kernels of types "A B C accumulator" on a tile m x k x n with rho calls; none where they are not assembled."""
    m, k, n, rho = tile
    a, b, c, accumulator = types.split()
    order = "packed" if b in ("int2", "int4", "bfp16") else "row"
    try:
        costs = Kind(device, (a, b, c, accumulator), ("row", order, "row")).costs(rho, m, k, n)
    except (CodegenError, SpecError):  # a kernel that is not assembled, a tile that no plan can place
        return
    for symbol in _functions(costs) if source == OURS else [costs.multiply]:
        multiplies = symbol == costs.multiply
        cycles, calls = (costs.step, rho) if multiplies else (costs.ends, 1)
        issue, stalls = (cycles_of.get(symbol, 0.0) / calls for cycles_of in (cycles.issue, cycles.stalls))
        macs, around = (m * k * n // rho, costs.step.of(MAIN)) if multiplies else (0, 0.0)
        generation = device_named(device).generation.name.lower()
        numbers = round(issue, 1), round(stalls, 1), macs, around
        yield Counted(source, generation, types, symbol, m, k, n, rho, *numbers)


def _functions(costs: CoreCosts) -> list[str]:
    return [costs.multiply, *sorted(costs.ends.issue.keys() - {MAIN, costs.multiply})]


def choices() -> Iterator[Choice]:
    """Products of ternary weights in each way to unpack them, and with each kind of loop."""
    for (m, k, n, rho), options in product(CHOSEN_TILES, CHOSEN_OPTIONS):
        tile = f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}", f"DIM_RHO={rho}"
        kernel = assembled("mm_i8_i2_i32", "aie2p", (*tile, *options.split()))
        assert kernel.cycles is not None
        yield Choice("aie2p", "mm_i8_i2_i32", m, k, n, rho, options, kernel.cycles)


def reached() -> Iterator[Reached]:
    """The designs of `TARGETS`, each run once and timed with every DRAM."""
    for name, (M, K, N), target in TARGETS:
        plan, problem = plan_gemm(_spec(name), device_named("strix_halo")), GemmProblem(M, K, N)
        case, (result, options) = case_of(plan.spec, plan.device, problem), recorded(plan, problem, "assembled")
        assert result.trace is not None
        for timing in _timings(timing_of(plan.device)):
            modelled = estimate(case, timing=timing, kernel=kernel_on(plan, case, "assembled"))
            report = replay(result.trace, replace(options, timing=timing))
            yield Reached(
                name, M, K, N, target, timing.dram_gb_s, round(modelled.time_us, 1), modelled.bound,
                round(modelled.core.ends / modelled.core.compute, 4), round(report.seconds * 1e6, 1),
                round(report.core_share("own banks"), 4), round(_dma_share(report), 4),
            )  # fmt: skip


def _dma_share(report: TimingReport) -> float:
    waits = sum(found.expected for core in report.cores for found in core.conflicts.values())
    return waits / (len(report.cores) * report.cycles)


def _spec(name: str) -> GemmSpec:
    return load_spec(Path(__file__).parents[2] / "designs" / f"{name}.toml")


def _timings(timing: Timing) -> Iterator[Timing]:
    yield timing
    for limit in _DRAM:
        reads, writes = (min(rate, limit) for rate in (timing.dram_read_gb_s, timing.dram_write_gb_s))
        yield replace(timing, dram_gb_s=limit, dram_read_gb_s=reads, dram_write_gb_s=writes)


Row = TypeVar("Row", Counted, Choice, Reached)


def read_table(kind: type[Row], path: Path) -> list[Row]:
    """Rows as they were written."""
    with path.open(encoding="utf-8", newline="") as file:
        return [kind(**{f.name: _typed(f.type, row[f.name]) for f in fields(kind)}) for row in csv.DictReader(file)]


def _typed(kind: Any, text: str) -> Any:
    return {"int": int, "float": float, "str": str, int: int, float: float, str: str}[kind](text)


def write_table(rows: Iterable[Counted | Choice | Reached], path: Path) -> None:
    """Write rows for `read_table`."""
    rows = list(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


@cache
def counted_rows() -> tuple[Counted, ...]:
    """What was counted."""
    return tuple(read_table(Counted, KERNELS))


def counted(generation: Generation, symbol: str, tile: tuple[int, int, int, int]) -> Counted | None:
    """The count of a kernel on a tile m x k x n with rho calls, the first where several types have it."""
    wanted = generation.name.lower(), symbol, *tile
    found = (r for r in counted_rows() if (r.generation, r.symbol, r.m, r.k, r.n, r.rho) == wanted)
    return next(found, None)


def run_all() -> Iterator[str]:
    """Count and run everything, telling of each row, and write the tables."""
    for rows, path in ((counts(), KERNELS), (choices(), CHOICES), (reached(), DESIGNS)):
        found = []
        for row in rows:
            found.append(row)
            yield str(row)
        write_table(found, path)
