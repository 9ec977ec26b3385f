"""GEMMs: the rows of the tables of measurements, and their quantities by the estimate model and by formulas of memory.

TOPS are those of `estimate` at the kernel rate that the row gives, where it gives one. What a core's kernel reaches
(`core_macs_per_cycle`, `peak_tops`) is the sequential schedule of our loops in mlir-aie's blocks, to which nothing is
fitted, whatever the row says.
"""

from dataclasses import replace
from functools import cache

from bdforge.design.sequences import SequenceOptions
from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators.gemm import GemmProblem, GemmSpec, plan_gemm
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.kernel_cost import kernel_cost, mlir_aie_blocking
from bdforge.perf.plots.roofline import intensity
from bdforge.perf.reproduce.quantity import Producer, Quantity
from bdforge.perf.rows import Row, row_from
from bdforge.perf.table import step_of_core
from bdforge.perf.timed import timed
from bdforge.perf.tune.candidate_search import Search, buildable
from bdforge.perf.tune.emulated_finalists import ROUNDS, emulated
from bdforge.perf.tune.space import B_LAYOUTS, Candidate, SearchSpace, search_space

_KB = 1024
_STACK_BYTES = 1024  # what published designs leave, as their tables of memory say


@cache
def _modelled(case: GemmCase) -> Estimate:
    return estimate(case)


def _tops(row: Row) -> float:
    """Of the whole problem, or of one core's steps where the row has none; a core's rate is modelled then."""
    if row.core_only:
        return step_of_core(estimate(replace(row.case, core_macs_per_cycle=None)))[1]
    return _modelled(row.case).tops


def _design(case: GemmCase) -> tuple[SearchSpace, Candidate]:
    """The design of a row as bdforge plans it; PerfError where it cannot, SpecError or TypeNameError for its types."""
    if case.columns != case.array.columns or case.rows != case.array.core_rows:
        raise PerfError("only designs of a whole array are emulated")
    types, device = f"{case.a},{case.b},{case.c}", device_named(case.device)
    space = search_space(device, types, case.K, b_layouts=(case.b_layout,), stack_bytes=_STACK_BYTES)
    sizes = (case.m, case.k, case.n, case.k_mt, case.c_buffers, space.c_memtile_buffers, case.rho, case.a_shims)
    found = buildable(space, Candidate.of([(*sizes, B_LAYOUTS.index(case.b_layout))]))
    if not found.length:
        raise PerfError("bdforge cannot plan this design: its buffers or slabs do not fit")
    return space, found.row(0)


def _emulated_tops(row: Row) -> float:
    """The modelled time, its steady part as emulation corrects it: `emulated_finalists` on two reduced problems."""
    case, once = row.case, sum(_modelled(row.case).serial.values())
    if row.core_only or not case.bd_overlap or case.b_kept:
        raise PerfError("a core alone, BDs between rounds and a B that stays have no emulated TOPS")
    space, candidate = _design(case)
    problem = GemmProblem(case.M, case.K, case.N)
    ratio = emulated(Search(space, "compiled", ((problem, 1),)), candidate).ratio
    return 2 * case.macs / (once + (_modelled(case).time_us - once) * ratio) / 1e6


def _emulated_loss(row: Row) -> float:
    """Of a round's time, when each is awaited before the next one's BDs are written.

    Two row panels are two steps, of several rounds each: what awaiting the first costs is the pause of a round.
    """
    space, candidate = _design(row.case)
    spec, (few, many) = space.spec(candidate), ROUNDS
    awaited = replace(spec, sequence=SequenceOptions(in_flight=1))
    short, long = (_two_panels_seconds(spec, row.case, columns) for columns in ROUNDS)
    pause = _two_panels_seconds(awaited, row.case, few) - short
    return 100 * pause / ((long - short) / (2 * (many - few)) + pause)


def _two_panels_seconds(spec: GemmSpec, case: GemmCase, column_steps: int) -> float:
    problem = GemmProblem(2 * case.panel_rows, case.K, column_steps * case.n * case.columns)
    return timed(plan_gemm(spec, device_named(case.device)), problem, "compiled").array_seconds


def _core_rate(row: Row) -> float:
    """MACs per cycle of the sequential schedule of our loops on this tile, all its rho calls; ScheduleError as it."""
    case = row.case
    found = kernel_cost(
        (case.a, case.b, case.accumulator or case.c), case.m, case.k, case.n, generation=case.array.generation,
        a_rows=case.m // case.rho, blocking=mlir_aie_blocking(case.array.generation, case.a),
    )  # fmt: skip
    return case.m * case.k * case.n / (case.rho * found.sequential_cycles)


def _peak_tops(row: Row) -> float:
    case = row.case
    return 2 * _core_rate(row) * case.rows * case.columns * (case.clock_hz or case.timing.array_hz) / 1e12


def _core_kb(row: Row) -> float:
    """A and B twice, C, and where bf16 meets bfp16 a copy of A's rows in bfp16 (S2)."""
    case, (a, b, c) = row.case, row.case.element_bytes
    rows, buffers = case.m / case.rho, 1 if row.core_only else case.c_buffers
    copy = rows * case.k * TYPES["bfp16"].bytes if (case.a, case.b) == ("bf16", "bfp16") else 0
    return (2 * rows * case.k * a + 2 * case.k * case.n * b + buffers * case.m * case.n * c + copy) / _KB


def _memtile_kb(row: Row) -> float:
    """All memtiles: slabs of A for every core row and of B for every column twice, a tile of C for every core (S0)."""
    case, (a, b, c) = row.case, row.case.element_bytes
    slabs = 2 * case.k_mt * (case.rows * case.m * a + case.columns * case.n * b)
    return (slabs + case.rows * case.columns * case.m * case.n * c) / _KB


def _moved_gb_s(row: Row) -> float:
    return sum(moved.size_bytes for moved in row.case.dram_traffic()) / _modelled(row.case).time_us / 1e3


def _memory_tops(row: Row) -> float:
    return 2 * row.case.macs / _modelled(row.case).parallel["DRAM bandwidth"] / 1e6


def _loss_percent(row: Row) -> float:
    """Of TOPS, since BDs are written only between rounds."""
    return 100 * (1 - _modelled(row.case).tops / _modelled(replace(row.case, bd_overlap=True)).tops)


def _gain_percent(row: Row) -> float:
    """TOPS more than with slabs of `over_k_mt`, which the nearest K holds whole."""
    k_mt = int(row.fields["over_k_mt"])
    less = replace(row.case, k_mt=k_mt, K=round(row.case.K / k_mt) * k_mt)
    return 100 * (_modelled(row.case).tops / _modelled(less).tops - 1)


def _label(row: Row) -> str:
    case = row.case
    plain = f"{case.device} {case.a} {case.b} {case.c} {case.m}x{case.k}x{case.n}"
    rho = f" rho {case.rho}" if case.rho > 1 else ""
    if row.core_only:
        return plain + rho
    part = "" if case.columns == case.array.columns else f", {case.columns} columns"
    whole = f"{case.M}x{case.K}x{case.N}, B {case.b_layout}, k_mt {case.k_mt}{part}"
    return f"{plain}{rho}{' two C' if case.c_buffers == 2 else ''}: {whole}"


def _assumed(row: Row) -> str:
    noted = [note for note in row.case.assumed if not note.startswith("kernel rate")]
    return f"assumed {', '.join(noted)}" if noted and not row.core_only else ""


GEMMS = Producer(
    row_from,
    {
        "tops": Quantity("TOPS", "modelled", _tops, _emulated_tops),
        "core_macs_per_cycle": Quantity("MACs/cycle", "modelled", _core_rate),
        "peak_tops": Quantity("TOPS", "modelled", _peak_tops),
        "compute_tops": Quantity("TOPS", "modelled", lambda row: _modelled(row.case).core_tops),
        "memory_tops": Quantity("TOPS", "modelled", _memory_tops),
        "gb_s": Quantity("GB/s", "modelled", _moved_gb_s),
        "loss_percent": Quantity("% of TOPS", "modelled", _loss_percent, _emulated_loss),
        "gain_percent": Quantity("% of TOPS", "modelled", _gain_percent),
        "intensity": Quantity("op/B", "counted", lambda row: intensity(row.case)),
        "l1_kb": Quantity("KiB", "counted", _core_kb),
        "l2_kb": Quantity("KiB", "counted", _memtile_kb),
    },
    _label,
    _assumed,
)
