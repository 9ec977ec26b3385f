"""One GEMM on one array: all that the models need to know."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bdforge.devices import Device
from bdforge.devices.timing import Timing, timing_in, timing_of
from bdforge.devices.topology import DEVICES, MLIR_DEVICES
from bdforge.devices.types import TYPES
from bdforge.operators.gemm.finish import fed_operands
from bdforge.operators.gemm.mapping import kept_share
from bdforge.operators.gemm.spec import GemmProblem, GemmSpec
from bdforge.perf.bounds import traffic
from bdforge.perf.bounds.traffic import padded


@dataclass(frozen=True, slots=True, kw_only=True)
class DramTraffic:
    """What DRAM sees of an operand: bytes in contiguous runs that start `stride_bytes` apart, over shim channels.

    `shared`: whether several channels read side by side in the same rows (or columns) of the matrix. Numbers or arrays.
    """

    operand: str
    size_bytes: Any
    run_bytes: Any
    stride_bytes: Any
    channels: Any
    write: bool = False
    shared: Any = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmCase:
    """A GEMM of M x K x N with its design. Sizes in elements, types by name.

    Layouts are those in DRAM: of B "row" (runs of n), "column" (runs of k_mt) or "packed" (in the order of use), of A
    and C "row" or "column". `accumulator` is the type in which cores keep C, when it is another than C's; `a_shims`
    bring one row's A. `bd_overlap` tells whether BDs are written while others run, `b_kept` which share of a panel of
    B is read once and stays in memtiles. `c_in_parts`: C leaves a core in its rho parts; `scaled`: times scales of rows
    and columns; `matrices`: how many columns of B, which N and n count, make one of C. With `m_used` only so many of a
    tile's m rows hold data (0: all), memtiles make the rest.
    `core_macs_per_cycle` is the kernel's rate when known, `compiler` what made it where that is none of ours (as in
    `rates.compiled_kernels`), `dispatch` how its runs are handed over, `clock_hz` the array's clock when it is not the
    device's highest. `assumed` says what a table's reader filled in.
    Sizes and buffering (m, k, n, k_mt, a_shims, c_buffers, rho, b_kept, c_in_parts) may be arrays of one length: many
    designs of one kind, which `estimate` models at once.
    """

    device: str
    a: str
    b: str
    c: str
    m: int
    k: int
    n: int
    k_mt: int
    rows: int
    columns: int
    M: int
    K: int
    N: int
    a_layout: str = "row"
    b_layout: str = "row"
    c_layout: str = "row"
    accumulator: str = ""
    a_shims: int = 1
    c_buffers: int = 1
    rho: int = 1
    core_macs_per_cycle: float | None = None
    compiler: str = ""
    dispatch: str = "xrt"
    clock_hz: float | None = None
    bd_overlap: bool = True
    m_used: int = 0
    b_kept: Any = 0.0
    c_in_parts: Any = False
    scaled: bool = False
    matrices: int = 1
    assumed: tuple[str, ...] = field(default=())

    @property
    def array(self) -> Device:
        return DEVICES.get(self.device) or MLIR_DEVICES[self.device]

    @property
    def timing(self) -> Timing:
        return timing_in(timing_of(self.device), self.device, dispatch=self.dispatch)

    @property
    def element_bytes(self) -> tuple[float, float, float]:
        """Bytes of an element of A, B and C."""
        return TYPES[self.a].bytes, TYPES[self.b].bytes, TYPES[self.c].bytes

    @property
    def padded(self) -> tuple[int, int, int]:
        """M, K and N in whole panels: of the rows that hold data, k_mt and n·columns."""
        return padded(self.M, self.panel_rows), padded(self.K, self.k_mt), padded(self.N, self.n * self.columns)

    @property
    def panel_rows(self) -> Any:
        """Rows of the problem that all core rows take at a time."""
        return (self.m_used if self.m_used else self.m) * self.rows

    @property
    def rounds(self) -> int:
        """Tiles of C that each core makes."""
        M, _, N = self.padded
        return M // self.panel_rows * (N // (self.n * self.columns))

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the answer needs."""
        return self.M * self.K * self.N

    @property
    def padded_macs(self) -> int:
        """Multiply-accumulates that the array does."""
        M, K, N = self.padded
        return M // self.panel_rows * (self.m * self.rows) * K * N

    def dram_traffic(self) -> tuple[DramTraffic, DramTraffic, DramTraffic]:
        """A, B and C as DRAM sees them over the whole problem (`traffic` has the formulas)."""
        M, K, N = self.padded
        a, b, c = self.element_bytes
        channels = np.minimum(self.rows * self.a_shims, self.columns)
        once, again = (traffic.b_bytes(M, K, N, b, rows, 1) for rows in (M, self.panel_rows))
        return (
            self._traffic("A", traffic.a_bytes(M, K, N, a, self.n, self.columns), channels),
            self._traffic("B", once * self.b_kept + again * (1 - self.b_kept), self.columns),
            self._traffic("C", traffic.c_bytes(M, N, c) / self.matrices, self.columns),
        )

    def _traffic(self, operand: str, size_bytes: Any, channels: Any) -> DramTraffic:
        run, stride = self._runs(operand)
        across = {"A": self.a_layout == "column", "B": self.b_layout == "row", "C": False}[operand]
        return DramTraffic(
            operand=operand, size_bytes=size_bytes, run_bytes=run, stride_bytes=np.maximum(stride, run),
            channels=channels, write=operand == "C", shared=across & (channels > 1),
        )  # fmt: skip

    def _runs(self, operand: str) -> tuple[Any, Any]:
        """Contiguous run in DRAM and the distance of run starts in the host's matrix, in bytes.

        A run is as long as the slab or tile in the direction in which the operand is contiguous, and as many rows as a
        block float's micro-tile has; packed B is one run for a panel.
        """
        type_, layout, (rows, row_run), (columns, column_run) = {
            "A": (self.a, self.a_layout, (self.K, self.k_mt), (self.M, self.m)),
            "B": (self.b, self.b_layout, (self.N, self.n), (self.K, self.k_mt)),
            "C": (self.c, self.c_layout, (self.N / self.matrices, self.n / self.matrices), (self.M, self.m)),
        }[operand]
        size = TYPES[type_].bytes
        if layout == "packed":
            panel = self.padded[1] * self.n * size
            return panel, panel
        line, run = (rows, row_run) if layout == "row" else (columns, column_run)
        block = TYPES[type_].block * size
        return run * block, line * block

    def fill_bytes(self) -> float:
        """Bytes of the first slabs of A and B, before which no core can start."""
        a, b, _ = self.element_bytes
        return self.k_mt * (self.panel_rows * a + self.columns * self.n * b)

    def round_bytes(self) -> float:
        """Bytes of the tiles of C that all cores make in one round."""
        return self.columns * self.panel_rows * self.n * self.element_bytes[2] / self.matrices


def case_of(
    spec: GemmSpec, device: Device, problem: GemmProblem, *, core_macs_per_cycle: float | None = None
) -> GemmCase:
    """The case of `problem` on `spec`'s design, all buffers and layouts as in the spec."""
    return GemmCase(
        device=device.name, a=spec.a, b=spec.b, c=spec.c,
        m=spec.tile.m, k=spec.tile.k, n=spec.tile.n, k_mt=spec.buffers.k_mt, rows=spec.rows, columns=spec.columns,
        M=problem.M, K=problem.K, N=problem.N * spec.matrices,
        a_layout=spec.layouts.a, b_layout=spec.layouts.b, c_layout=spec.layouts.c,
        accumulator=spec.accumulator, a_shims=spec.buffers.a_shims,
        m_used=spec.tile.m_used, c_buffers=spec.buffers.c_buffers, rho=spec.buffers.rho,
        core_macs_per_cycle=core_macs_per_cycle, b_kept=kept_share(spec, device, problem.K),
        c_in_parts=spec.buffers.c_in_parts, scaled=fed_operands(spec)[0], matrices=spec.matrices,
    )  # fmt: skip
