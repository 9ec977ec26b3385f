"""Timing of the arrays: one `Timing` per product, read by the analytical models and by timed emulation alike.

Sources beyond those of the package:

- *XE*: xdna-emu 7380bd56, measured on Phoenix at about 1 GHz
- *S0*: Taka et al., GEMM on XDNA and XDNA2 (Phoenix, Krackan)
- *S1*: a thesis on tensor contractions, Jena 2025 (Phoenix)
- *S2*: Wang et al., asymmetric tile buffering (Strix Point)
- *CC*: casselc/bitnet-xdna2-strix-halo, measured on Strix Halo
- *FLM*: amd/IRON, notes on its GEMM operator (Strix)
- *HS*: HUSRCF/hipscope c8fb82c2, `docs/npu/report.md` and its 405-case grid, measured on Strix Halo without XRT
- *FIT*: fitted by `python -m tools.fit` to published GEMMs; docs/accuracy.md has the rows and the errors

Confidence: H two sources or a register list, M one good source, L inference or one weak source. What XE measured in
cycles inside the array holds in cycles everywhere; what it measured at DRAM or the controller holds in nanoseconds.
That split is an assumption (L), as is every use of a Phoenix figure for AIE2P.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bdforge.devices.topology import Device, DeviceError


def _fact(unit: str, source: str, confidence: str) -> Any:
    return field(metadata={"unit": unit, "source": source, "confidence": confidence})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What things cost on one product. Each field's metadata names unit, source and confidence.

    Three things limit what shims move, and work at the same time. All share the port to DRAM: `dram_read_gb_s`,
    `dram_write_gb_s`, and `dram_gb_s` for both together. Each shim fetches runs by *requests* of at most
    `shim_burst_bytes`, one after the other for both of its channels: `shim_request_ns` each and `shim_byte_ns` for each
    byte. And DRAM serves some short runs one by one: `shared_run_ns` each where columns read side by side in one row of
    a matrix, `far_run_ns` where each run lies in a page of its own (`dram_page_bytes`). Runs that are whole pages apart
    lie at one place in each page, in the same few channels of DRAM: `aligned_byte_ns` for each byte where that is more.
    Runs in pages cost so where all columns fetch them, a share of it where some do. Formulas take numbers or arrays.
    """

    array_hz: float = _fact("Hz", "npu1 S0, XE; npu2 DRV, S0 (highest level)", "M")
    stream_bytes_per_cycle: int = _fact("B", "020 for AIE2, inferred for AIE2P", "M")
    control_bytes_per_cycle: int = _fact("B", "020, 027: core stream, control and trace ports", "M")
    switch_cycles: int = _fact("cycles", "020: crossing a switch from or to another tile", "H")
    switch_local_cycles: int = _fact("cycles", "020: at the end that is local", "H")
    packet_arbitration_cycles: int = _fact("cycles", "XE", "M")
    bd_change_cycles: int = _fact("cycles", "XE: next BD of a chain", "H")
    task_start_cycles: int = _fact("cycles", "XE: queue to first word, core tile and memtile", "M")
    done_to_resume_cycles: int = _fact("cycles", "XE: DMA done until the waiting core runs", "M")
    memtile_turn_cycles: int = _fact("cycles", "XE: memtile S2MM done until MM2S starts", "M")
    dma_lock_cycles: int = _fact("cycles", "XE: hidden between BDs", "M")
    core_lock_cycles: int = _fact("cycles", "S1: an acquire or release in compiled code", "M")
    kernel_call_cycles: int = _fact("cycles", "S1: call and return", "M")
    core_bank_stall: float = _fact(
        "cycles per issued one", "npu2 HS: 1,323 for 1,067, 1.43 where C lies in B's bank; npu1 S1: 71 of 2,659", "M"
    )
    shim_mm2s_first_ns: float = _fact("ns", "XE: first task of a channel, until data flows", "M")
    shim_mm2s_later_ns: float = _fact("ns", "XE", "M")
    shim_s2mm_first_ns: float = _fact("ns", "XE", "M")
    shim_s2mm_later_ns: float = _fact("ns", "XE", "M")
    shim_read_share: float = _fact("share of a stream", "npu2 HS: 12.8 GB/s of 14.4; npu1 XE: 1.05 cycles a word", "H")
    shim_write_share: float = _fact("share of a stream", "npu2 HS: 13.6 GB/s of 14.4; npu1 XE: 1.00 cycles a word", "H")
    shim_burst_bytes: int = _fact("B", "MA, RT: longest burst of a shim", "H")
    shim_request_ns: float = _fact("ns", "npu2 HS: bursts of 64 B on 16 channels, 42.8 GB/s; npu1 FIT", "M")
    shim_byte_ns: float = _fact("ns/B", "npu2 HS: both channels of a column, 23.8 to 25 GB/s; npu1 in requests", "M")
    shim_line_bytes: int = _fact(
        "B", "npu1 FIT: a run that starts inside a line and leaves it takes one request more; not npu2", "L"
    )
    shim_alone_share: float = _fact("share", "FIT: of a request's time where only one column has requests", "L")
    dram_page_bytes: int = _fact("B", "page of the host's address translation", "M")
    dram_read_gb_s: float = _fact("GB/s", "npu2 HS, 8 columns; npu1 at least 17.1 by S0's tables", "H")
    dram_write_gb_s: float = _fact("GB/s", "npu2 HS, 8 columns; npu1 as reads", "H")
    dram_gb_s: float = _fact("GB/s", "npu2 HS, both ways at once; npu1 as reads", "H")
    shared_run_ns: float = _fact("ns", "FIT: row-major B on Strix Halo; others by FIT's share of its bus", "L")
    far_run_ns: float = _fact("ns", "FIT: strides over a page, Strix Halo; others as above", "L")
    aligned_byte_ns: float = _fact("ns/B", "FIT: column-major bf16, K = 2048, on Strix Halo; others as above", "L")
    memory_exponent: float = _fact("exponent", "FIT: how well requests, port and runs overlap; `joined_times`", "L")
    controller_write_ns: float = _fact("ns", "XE; halved for npu2 by DRV's controller clocks", "L")
    controller_bd_ns: float = _fact("ns", "XE, a blockwrite of 8 words; halved for npu2", "L")
    controller_transfer_ns: float = _fact("ns", "XE: a dma_memcpy_nd of BD, patch and push; halved for npu2", "L")
    controller_sync_ns: float = _fact("ns", "XE: last completion until the token is seen, once per sequence", "M")
    dispatch_ns: float = _fact(
        "ns", "warm, less the final sync: FLM 107 us, CC 158 us on Strix Halo; npu1 167 us by its small GEMMs", "L"
    )
    elf_dispatch_ns: float = _fact(
        "ns", "a full ELF by XRT, less the final sync: Strix FIT by mlir-air's operators; others as by an xclbin", "L"
    )
    raw_dispatch_ns: float = _fact("ns", "HS: one ioctl there and back, 59 us, less the final sync", "M")
    runlist_dispatch_ns: float = _fact(
        "ns", "HS: each command of a row or chain, 20 to 25 us, less the final sync", "M"
    )
    reconfiguration_ns: float = _fact("ns", "S0: loading another array configuration", "M")

    def cycles_ns(self, cycles: float) -> float:
        """Nanoseconds of array cycles."""
        return cycles * 1e9 / self.array_hz

    def shim_requests(self, run_bytes: Any) -> Any:
        """Requests that a contiguous run takes, whatever it starts at, on average.

        Whole bursts; where `shim_line_bytes` count, one more with the probability that a run on its own alignment g
        starts inside a line and leaves it, (min(run, line) - g) / line.
        """
        bursts = np.ceil(run_bytes / self.shim_burst_bytes)
        if not self.shim_line_bytes:
            return bursts
        aligned = np.gcd(np.rint(run_bytes).astype(np.int64), self.shim_line_bytes)
        return bursts + np.maximum(np.minimum(run_bytes, self.shim_line_bytes) - aligned, 0) / self.shim_line_bytes

    def shim_ns(self, size_bytes: Any, run_bytes: Any, columns: Any = 2) -> Any:
        """Nanoseconds that one shim is busy with requests for `size_bytes` in such runs; `columns` are those in use."""
        share = np.where(np.asarray(columns) == 1, self.shim_alone_share, 1.0)[()]
        each = self.shim_requests(run_bytes) * self.shim_request_ns + run_bytes * self.shim_byte_ns
        return size_bytes / run_bytes * each * share

    def port_ns(self, read_bytes: Any, write_bytes: Any) -> Any:
        """Nanoseconds of the port that all shims share: reads, writes, or both together."""
        alone = np.maximum(read_bytes / self.dram_read_gb_s, write_bytes / self.dram_write_gb_s)
        return np.maximum(alone, (read_bytes + write_bytes) / self.dram_gb_s)

    def run_ns(self, run_bytes: Any, stride_bytes: Any, shared: Any, columns_share: Any = 1.0) -> Any:
        """Nanoseconds for which DRAM serves no other short run: a short run's bytes at `dram_gb_s`, or more.

        0 for runs that are not short: a whole burst, or one with the next right behind it. `shared`: whether other
        columns read the bytes beside it at the same time; `columns_share`: of the array's columns, how many fetch such
        runs.
        """
        short = (run_bytes < self.shim_burst_bytes) & (stride_bytes > run_bytes)
        aligned = np.where(stride_bytes % self.dram_page_bytes == 0, self.aligned_byte_ns * run_bytes, 0.0)
        apart = np.maximum(self.far_run_ns, aligned) * columns_share
        far = np.where(stride_bytes >= self.dram_page_bytes, apart, 0.0)
        alone = np.where(shared, self.shared_run_ns, far)
        return np.where(short, np.maximum(run_bytes / self.dram_gb_s, alone), 0.0)[()]

    def long_run_bytes(self, columns: int) -> float:
        """The shortest run at which the port limits reads, not the requests of so many shims nor runs far apart."""
        left = columns / self.dram_read_gb_s - self.shim_byte_ns
        requests = self.shim_request_ns / left if left > 0 else self.shim_burst_bytes
        return max(requests, min(self.far_run_ns * self.dram_read_gb_s, self.shim_burst_bytes))

    def channel_ns(self, size_bytes: Any, run_bytes: Any = None, *, write: bool | None = None) -> Any:
        """Nanoseconds that one stream needs for `size_bytes`; a run takes whole cycles.

        `write` tells the direction of a shim's channel, which reaches a share of its stream; None is any other.
        """
        run = size_bytes if run_bytes is None else run_bytes
        share = 1.0 if write is None else self.shim_write_share if write else self.shim_read_share
        return self.cycles_ns(size_bytes / run * np.ceil(run / self.stream_bytes_per_cycle)) / share


def joined_times(times: Sequence[Any], exponent: float) -> Any:
    """Time of things that overlap imperfectly, (sum of t^exponent)^(1/exponent), from their maximum upwards.

    Nearly the maximum, and 2^(1/exponent) of it where two are equal, since neither is then busy all the time.
    """
    slowest = np.maximum.reduce([np.asarray(time, float) for time in times])
    return slowest * sum((time / slowest) ** exponent for time in times) ** (1 / exponent)


PHOENIX = Timing(
    array_hz=1.0e9, stream_bytes_per_cycle=4, control_bytes_per_cycle=4, switch_cycles=4, switch_local_cycles=3,
    packet_arbitration_cycles=1, bd_change_cycles=0, task_start_cycles=13, done_to_resume_cycles=15,
    memtile_turn_cycles=13, dma_lock_cycles=1, core_lock_cycles=13, kernel_call_cycles=25, core_bank_stall=1.03,
    shim_mm2s_first_ns=1400, shim_mm2s_later_ns=330, shim_s2mm_first_ns=350, shim_s2mm_later_ns=180,
    shim_read_share=0.95, shim_write_share=1.0, shim_burst_bytes=256, shim_request_ns=37.2, shim_byte_ns=0.0,
    shim_line_bytes=64, shim_alone_share=0.786, dram_page_bytes=4096, dram_read_gb_s=20, dram_write_gb_s=20,
    dram_gb_s=20, shared_run_ns=0.0, far_run_ns=0.0, aligned_byte_ns=0.0, memory_exponent=4.4,
    controller_write_ns=100, controller_bd_ns=200, controller_transfer_ns=1050, controller_sync_ns=8000,
    dispatch_ns=159_000, elf_dispatch_ns=159_000, raw_dispatch_ns=51_000, runlist_dispatch_ns=14_500,
    reconfiguration_ns=3_400_000,
)  # fmt: skip
# S1's fastest contraction moves 1.41 GB in 29.7 ms, 47.5 GB/s, with no sign of a limit: the port is taken to be as fast
# as the streams of four columns, and a request to take Phoenix' cycles (L).
HAWK_POINT = replace(
    PHOENIX, array_hz=1.79e9, shim_request_ns=20.8, dram_read_gb_s=57.3, dram_write_gb_s=57.3, dram_gb_s=57.3,
)  # fmt: skip
STRIX_HALO = replace(
    PHOENIX, array_hz=1.8e9, stream_bytes_per_cycle=8, core_bank_stall=1.24, shim_read_share=0.9, shim_write_share=0.95,
    shim_burst_bytes=512,
    shim_request_ns=10.7, shim_byte_ns=0.02, shim_line_bytes=0, dram_read_gb_s=55.5, dram_write_gb_s=55.3,
    dram_gb_s=67.4, shared_run_ns=2.96, far_run_ns=5.13, aligned_byte_ns=0.0298,
    controller_write_ns=86, controller_bd_ns=100, controller_transfer_ns=525, dispatch_ns=150_000,
    elf_dispatch_ns=150_000, reconfiguration_ns=4_900_000,
)  # fmt: skip
NARROW_BUS = 1.287  # FIT: what such runs take on products with half of Strix Halo's memory bus
KRACKAN = replace(
    STRIX_HALO, shared_run_ns=STRIX_HALO.shared_run_ns * NARROW_BUS, dispatch_ns=99_000, elf_dispatch_ns=78_600,
    far_run_ns=STRIX_HALO.far_run_ns * NARROW_BUS, aligned_byte_ns=STRIX_HALO.aligned_byte_ns * NARROW_BUS,
)  # fmt: skip
# FLM's packed GEMMs with products left out move 72 to 79 GB/s, mlir-air's sums 71: FIT has how much faster the port is.
STRIX_PORT = 1.168
STRIX = replace(
    KRACKAN, dram_read_gb_s=STRIX_HALO.dram_read_gb_s * STRIX_PORT,
    dram_write_gb_s=STRIX_HALO.dram_write_gb_s * STRIX_PORT, dram_gb_s=STRIX_HALO.dram_gb_s * STRIX_PORT,
)  # fmt: skip

CONTEXT_NS = 1_600_000
"""What the first run of a fresh context takes beyond others (HS, Strix Halo; M)."""

PDI_BYTE_NS = 34.7
"""What each byte of a PDI's CDO takes beyond that (FIT: S0's 3.4 and 4.9 ms, `bdforge.perf.bounds.load_time`; L)."""

DISPATCHES = {
    "xrt": "dispatch_ns", "elf": "elf_dispatch_ns", "raw": "raw_dispatch_ns", "runlist": "runlist_dispatch_ns",
}  # fmt: skip
"""Ways to hand a run over: an XRT run of an xclbin or of a full ELF, an ioctl without XRT, one more command of a
runlist."""

POWER_HZ: Mapping[str, Mapping[str, float]] = {
    "phoenix": {"turbo": 1.0e9},
    "hawk_point": {"saver": 0.79e9, "balanced": 1.02e9, "turbo": 1.79e9},
    **{name: {"saver": 0.792e9, "balanced": 1.267e9, "turbo": 1.8e9} for name in ("krackan", "strix", "strix_halo")},
}
"""Clocks of the array by power mode. Phoenix S0; Hawk Point S1 (Ryzen 7 8700G, micro-benchmark); npu2 DRV, the lowest,
the middle and the highest level of the driver's table (M)."""


def timing_in(timing: Timing, product: str, *, power: str | None = None, dispatch: str = "xrt") -> Timing:
    """`timing` in a power mode of a product, runs handed over in one of `DISPATCHES`; DeviceError lists what is known.

    Only what the array does follows its clock: DRAM, its port and the controller keep their nanoseconds.
    """
    if dispatch not in DISPATCHES:
        raise DeviceError(f"dispatch {dispatch!r} is not one of {', '.join(DISPATCHES)}")
    timing = replace(timing, dispatch_ns=getattr(timing, DISPATCHES[dispatch]))
    if power is None:
        return timing
    clocks = POWER_HZ.get(product, {})
    if power not in clocks:
        raise DeviceError(
            f"no clock of {product} is published for power mode {power!r}; known: {', '.join(clocks) or 'none'}"
        )
    return replace(timing, array_hz=clocks[power])


TIMINGS: Mapping[str, Timing] = {
    "phoenix": PHOENIX,
    "hawk_point": HAWK_POINT,
    "krackan": KRACKAN,
    "strix": STRIX,
    "strix_halo": STRIX_HALO,
    "npu1": PHOENIX,
    "npu2": KRACKAN,
}
"""Timings by product, and by array for designs that name no product: Phoenix and Krackan, the best measured ones."""


def timing_of(device: Device | str) -> Timing:
    """Timing of a product or of an array named as in MLIR (`npu2_4col` is `npu2`); DeviceError lists the known ones."""
    name = device if isinstance(device, str) else device.name
    known = TIMINGS.get(name) or TIMINGS.get(name.split("_")[0])
    if known is None:
        raise DeviceError(f"no timing for device {name!r}; known: {', '.join(TIMINGS)}")
    return known


JOB_TIMEOUT_SECONDS = 2.0
"""Without a command that ends, after which drivers stop what runs: 2 s since Linux 6.17 (amdxdna's `tdr_timeout_ms`,
set where the module is loaded), 4 to 60 s before (xdna-emu, amd/xdna-driver 51, hipscope). The driver sees no progress
inside of a command; that a runlist counts as one is assumed."""

RUNLIST_COMMANDS_MAX = 24
"""Commands that are submitted at once: XRT 2.25 splits longer lists into submissions of 24 itself (seen below it), and
the firmware takes a chain of 4 KiB, 36 commands of 112 bytes. host/src/backend.hpp has the same."""


def submissions(commands: int) -> int:
    """Dispatches that a list of so many commands takes."""
    return -(-commands // RUNLIST_COMMANDS_MAX)
