"""The analytical model for millions of candidates at a time.

The same formulas as `estimate` (there with their sources), as array arithmetic; a test holds the two together.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bdforge.devices.timing import Timing, timing_of
from bdforge.perf.case import GemmCase
from bdforge.perf.estimate import OVERLAP_EXPONENT
from bdforge.perf.kernel_rates import switch_cycles
from bdforge.perf.tune_kernel import KernelTable
from bdforge.perf.tune_space import B_LAYOUTS, Candidates, SearchSpace
from bdforge.perf.types import BLOCK_ROWS, ELEMENT_BYTES, type_named
from bdforge.plan import Problem

_LAYOUTS = {"row": "row", "column": "col", "packed": "packed"}


def case_at(space: SearchSpace, candidates: Candidates, index: int, problem: Problem) -> GemmCase:
    """One candidate on one problem, for `estimate`."""
    m, k, n, k_mt, c_buffers, _, rho, a_shims, b_layout = candidates.row(index)
    return GemmCase(
        device=space.device.name, a=type_named(space.a), b=type_named(space.b), c=type_named(space.c),
        m=m, k=k, n=n, k_mt=k_mt, rows=space.rows, columns=space.columns, M=problem.M, K=problem.K, N=problem.N,
        a_layout=_LAYOUTS[space.a_layout], b_layout=_LAYOUTS[B_LAYOUTS[b_layout]], c_layout=_LAYOUTS[space.c_layout],
        accumulator=type_named(space.accumulator), a_shims=a_shims, c_buffers=c_buffers, rho=rho,
    )  # fmt: skip


def modelled_us(table: KernelTable, candidates: Candidates, problems: list[tuple[Problem, int]]) -> np.ndarray:
    """Microseconds that each candidate needs for all problems, each as often as its count says (modelled)."""
    model = _Model(table, candidates)
    total = np.zeros(len(candidates))
    for problem, count in problems:
        total += count * model.time_us(problem)
    return total


@dataclass
class _Model:
    """The formulas of `estimate`, `core` and `traffic` for arrays of candidates."""

    table: KernelTable
    c: Candidates

    def __post_init__(self):
        self.space = self.table.space
        self.timing: Timing = timing_of(self.space.device)
        names = (self.space.a, self.space.b, self.space.c)
        self.types = [type_named(name) for name in names]
        self.a, self.b, self.out = (ELEMENT_BYTES[name] for name in self.types)

    @cached_property
    def step(self) -> np.ndarray:
        """Cycles of kernel and switches for one step."""
        return self.table.cycles(self.c) + self.c.rho * switch_cycles(self.timing)

    @cached_property
    def stream_in(self) -> np.ndarray:
        c = self.c
        return np.maximum(c.m * c.k * self.a, c.k * c.n * self.b) / self.timing.stream_bytes_per_cycle

    def tile_cycles(self, K: np.ndarray) -> np.ndarray:
        """Cycles of a core for one tile of C (`core.core_cycles`)."""
        c, timing = self.c, self.timing
        out = c.m * c.n * self.out / timing.stream_bytes_per_cycle
        whole = K / c.k * np.maximum(self.step, self.stream_in)
        drain = np.where(c.c_buffers == 1, out + timing.done_to_resume_cycles, np.maximum(0, out - whole))
        return whole + drain

    def time_us(self, problem: Problem) -> np.ndarray:
        """Microseconds of one problem (`estimate`)."""
        c, space, timing = self.c, self.space, self.timing
        panel, step = c.m * space.rows, c.n * space.columns
        M, K, N = (_padded(size, by) for size, by in ((problem.M, panel), (problem.K, c.k_mt), (problem.N, step)))
        rounds = M // panel * (N // step)
        a_channels = np.minimum(space.rows * c.a_shims, space.columns)
        transfers = self.transfers(M, K, N)
        channels = (a_channels, space.columns, space.columns)
        bounds = [
            rounds * timing.cycles_ns(1) / 1e3 * self.tile_cycles(K),
            self.shim_us(transfers, channels),
            sum(self.lines_ns(*transfer) for transfer in transfers) / 1e3,
            sum(self.pages_ns(*transfer) for transfer in transfers) / 1e3,
            rounds * (a_channels + 2 * space.columns) * timing.controller_transfer_ns / 1e3,
        ]
        fixed = (timing.dispatch_ns + timing.controller_sync_ns + self.edges_ns()) / 1e3
        return _overlapped(bounds) + fixed

    def transfers(self, M: np.ndarray, K: np.ndarray, N: np.ndarray) -> list[tuple]:
        """(bytes, run, stride, whether a write) of A, B and C (`GemmCase.transfers`)."""
        c, space = self.c, self.space
        macs = M * K * N
        packed = c.b_layout == B_LAYOUTS.index("packed")
        column = c.b_layout == B_LAYOUTS.index("column")
        a_run = self.run(0, space.a_layout == "column", (c.k_mt, K), (c.m, M))
        b_run = self.run(1, column, (c.n, N), (c.k_mt, K))
        b_run = tuple(np.where(packed, K * c.n * self.b, value) for value in b_run)
        c_run = self.run(2, space.c_layout == "column", (c.n, N), (c.m, M))
        return [
            (macs * self.a / (c.n * space.columns), *a_run, False),
            (macs * self.b / (c.m * space.rows), *b_run, False),
            (M * N * self.out, *c_run, True),
        ]

    def run(self, operand: int, column, along: tuple, down: tuple) -> tuple[np.ndarray, np.ndarray]:
        """Bytes of a contiguous run and from one start to the next, of row- or column-major lines."""
        type_ = self.types[operand]
        block = BLOCK_ROWS.get(type_, 1) * ELEMENT_BYTES[type_]
        run, line = (np.where(column, d, a) * block for a, d in zip(along, down, strict=True))
        return run, line

    def shim_us(self, transfers: list[tuple], channels: tuple) -> np.ndarray:
        width = self.timing.stream_bytes_per_cycle
        times = [
            self.timing.cycles_ns(1) * (size / count / run * np.ceil(run / width))
            for (size, run, _, _), count in zip(transfers, channels, strict=True)
        ]
        return np.maximum.reduce(times) / 1e3

    def lines_ns(self, size: np.ndarray, run: np.ndarray, stride: np.ndarray, write: bool) -> np.ndarray:
        """`Timing.dram_lines_ns`."""
        line = self.timing.dram_line_bytes
        aligned = np.gcd(np.rint(run).astype(np.int64), line)
        gb_s = self.timing.dram_write_gb_s if write else self.timing.dram_read_gb_s
        return size / run * (run + line - aligned) / gb_s

    def pages_ns(self, size: np.ndarray, run: np.ndarray, stride: np.ndarray, write: bool) -> np.ndarray:
        """`Timing.dram_pages_ns`."""
        page = self.timing.dram_page_bytes
        gap = np.maximum(stride - run, 0)
        pages = size / run * (run / page + np.minimum(1, gap / page))
        return pages * (self.timing.dram_write_page_ns if write else self.timing.dram_read_page_ns)

    def edges_ns(self) -> np.ndarray:
        """First slabs in, last tiles out."""
        c, space, timing = self.c, self.space, self.timing
        fill = c.k_mt * (space.rows * c.m * self.a + space.columns * c.n * self.b)
        last = space.rows * space.columns * c.m * c.n * self.out
        return fill / timing.dram_read_gb_s + last / timing.dram_write_gb_s


def _padded(size: int, step: np.ndarray) -> np.ndarray:
    return -(-size // step) * step


def _overlapped(times: list[np.ndarray]) -> np.ndarray:
    """`estimate.overlapped`."""
    slowest = np.maximum.reduce(times)
    share = np.sum([(time / slowest) ** OVERLAP_EXPONENT for time in times], axis=0)
    return slowest * share ** (1 / OVERLAP_EXPONENT)
