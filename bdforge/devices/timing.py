"""Timing of the arrays: one `Timing` per product, read by the analytical models and by timed emulation alike.

Sources beyond those of the package:

- *XE*: xdna-emu 7380bd56, measured on Phoenix at about 1 GHz
- *S0*: Taka et al., GEMM on XDNA and XDNA2 (Phoenix, Krackan)
- *S1*: a thesis on tensor contractions, Jena 2025 (Phoenix)
- *S2*: Wang et al., asymmetric tile buffering (Strix Point)
- *CC*: casselc/bitnet-xdna2-strix-halo, measured on Strix Halo
- *FLM*: amd/IRON, notes on its GEMM operator (Strix)
- *FIT*: fitted by `bdforge.perf.fit` to published GEMMs; docs/accuracy.md has the rows and the errors

Confidence: H two sources or a register list, M one good source, L inference or one weak source. What XE measured in
cycles inside the array holds in cycles everywhere; what it measured at DRAM or the controller holds in nanoseconds.
That split is an assumption (L), as is every use of a Phoenix figure for AIE2P.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, gcd
from typing import Any

from bdforge.devices.topology import Device, DeviceError


def _fact(unit: str, source: str, confidence: str) -> Any:
    return field(metadata={"unit": unit, "source": source, "confidence": confidence})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What things cost on one product. Each field's metadata names unit, source and confidence.

    All shims share two DRAM budgets that work at the same time, so the slower one decides: *lines* of `dram_line_bytes`
    move at `dram_read_gb_s` or `dram_write_gb_s`, whole lines even when a run needs a part; *pages* of
    `dram_page_bytes` are opened in `dram_read_page_ns` or `dram_write_page_ns` each. A run that starts in the page in
    which the run before it ended opens none. Short runs far apart are bound by pages, long ones by lines.
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
    shim_mm2s_first_ns: float = _fact("ns", "XE: first task of a channel, until data flows", "M")
    shim_mm2s_later_ns: float = _fact("ns", "XE", "M")
    shim_s2mm_first_ns: float = _fact("ns", "XE", "M")
    shim_s2mm_later_ns: float = _fact("ns", "XE", "M")
    dram_line_bytes: int = _fact("B", "line of the memory system; XE and MA: smallest shim burst", "M")
    dram_page_bytes: int = _fact("B", "page of the host's address translation; explains strides below it (FIT)", "L")
    dram_read_gb_s: float = _fact("GB/s", "npu2 FIT, S2 says 65, FLM 63-74; npu1 at least 17.1 by S0's tables", "M")
    dram_write_gb_s: float = _fact("GB/s", "as reads: no source measures writes apart", "L")
    dram_read_page_ns: float = _fact(
        "ns", "FIT: 60 array cycles per column of the array; 0.73 of it on Strix Halo's wider bus", "L"
    )
    dram_write_page_ns: float = _fact("ns", "as reads", "L")
    controller_write_ns: float = _fact("ns", "XE; halved for npu2 by DRV's controller clocks", "L")
    controller_bd_ns: float = _fact("ns", "XE, a blockwrite of 8 words; halved for npu2", "L")
    controller_transfer_ns: float = _fact("ns", "XE: a dma_memcpy_nd of BD, patch and push; halved for npu2", "L")
    controller_sync_ns: float = _fact("ns", "XE: last completion until the token is seen, once per sequence", "M")
    dispatch_ns: float = _fact("ns", "warm, less the final sync: FLM 107 us, CC 158 us on Strix Halo; npu1 as FLM", "L")
    reconfiguration_ns: float = _fact("ns", "S0: loading another array configuration", "M")

    def cycles_ns(self, cycles: float) -> float:
        """Nanoseconds of array cycles."""
        return cycles * 1e9 / self.array_hz

    def dram_lines_ns(self, size_bytes: float, run_bytes: float, *, write: bool = False) -> float:
        """Nanoseconds of the shared line budget that `size_bytes` in runs of `run_bytes` use.

        A run that starts anywhere on its own alignment g (the part of a line that divides it) touches
        run + line - g bytes of lines on average.
        """
        aligned = gcd(round(run_bytes), self.dram_line_bytes)
        touched = size_bytes / run_bytes * (run_bytes + self.dram_line_bytes - aligned)
        return touched / (self.dram_write_gb_s if write else self.dram_read_gb_s)

    def dram_pages(self, size_bytes: float, run_bytes: float, stride_bytes: float) -> float:
        """Pages opened by `size_bytes` in runs of `run_bytes` that start `stride_bytes` apart, anywhere in their pages.

        Each run goes through run / page pages and opens another one when it starts outside of the last one:
        always when the gap is a page or more, else with probability gap / page.
        """
        gap = max(stride_bytes - run_bytes, 0)
        return size_bytes / run_bytes * (run_bytes / self.dram_page_bytes + min(1, gap / self.dram_page_bytes))

    def dram_pages_ns(self, size_bytes: float, run_bytes: float, stride_bytes: float, *, write: bool = False) -> float:
        """Nanoseconds of the shared page budget that these runs use."""
        each_ns = self.dram_write_page_ns if write else self.dram_read_page_ns
        return self.dram_pages(size_bytes, run_bytes, stride_bytes) * each_ns

    def dram_ns(
        self, size_bytes: float, run_bytes: float, stride_bytes: float | None = None, *, write: bool = False
    ) -> float:
        """Nanoseconds of DRAM for `size_bytes` on their own: the slower of both budgets.

        Without a stride, runs shorter than a page are taken to lie a page or more apart.
        """
        far = run_bytes + self.dram_page_bytes if run_bytes < self.dram_page_bytes else run_bytes
        pages_ns = self.dram_pages_ns(size_bytes, run_bytes, stride_bytes or far, write=write)
        return max(self.dram_lines_ns(size_bytes, run_bytes, write=write), pages_ns)

    def dram_gb_s(self, run_bytes: float, stride_bytes: float | None = None, *, write: bool = False) -> float:
        """GB/s that DRAM gives to runs of `run_bytes` that start `stride_bytes` apart, as `dram_ns`."""
        return run_bytes / self.dram_ns(run_bytes, run_bytes, stride_bytes, write=write)

    def channel_ns(self, size_bytes: float, run_bytes: float | None = None) -> float:
        """Nanoseconds that one stream, and so one DMA channel, needs for `size_bytes`; a run takes whole cycles."""
        run = run_bytes or size_bytes
        return self.cycles_ns(size_bytes / run * ceil(run / self.stream_bytes_per_cycle))


PHOENIX = Timing(
    array_hz=1.0e9, stream_bytes_per_cycle=4, control_bytes_per_cycle=4, switch_cycles=4, switch_local_cycles=3,
    packet_arbitration_cycles=1, bd_change_cycles=0, task_start_cycles=13, done_to_resume_cycles=15,
    memtile_turn_cycles=13, dma_lock_cycles=1, core_lock_cycles=13, kernel_call_cycles=25,
    shim_mm2s_first_ns=1400, shim_mm2s_later_ns=330, shim_s2mm_first_ns=350, shim_s2mm_later_ns=180,
    dram_line_bytes=64, dram_page_bytes=4096,
    dram_read_gb_s=20, dram_write_gb_s=20, dram_read_page_ns=15.0, dram_write_page_ns=15.0,
    controller_write_ns=100, controller_bd_ns=200, controller_transfer_ns=1050, controller_sync_ns=8000,
    dispatch_ns=99_000, reconfiguration_ns=3_400_000,
)  # fmt: skip
KRACKAN = replace(
    PHOENIX, array_hz=1.8e9, stream_bytes_per_cycle=8,
    dram_read_gb_s=58.6, dram_write_gb_s=58.6, dram_read_page_ns=4.17, dram_write_page_ns=4.17,
    controller_write_ns=50, controller_bd_ns=100, controller_transfer_ns=525, reconfiguration_ns=4_900_000,
)  # fmt: skip
STRIX = KRACKAN  # no source tells their memory paths apart beyond the noise
STRIX_HALO = replace(KRACKAN, dram_read_page_ns=3.06, dram_write_page_ns=3.06, dispatch_ns=150_000)

TIMINGS: Mapping[str, Timing] = {
    "phoenix": PHOENIX,
    "hawk_point": PHOENIX,
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


JOB_TIMEOUT_SECONDS = 4.0
"""After which drivers end a job: Phoenix's 4 to 5 s, others 6, 16 or 60 (xdna-emu, amd/xdna-driver 51, hipscope)."""

PEAK_MACS: Mapping[str, Mapping[tuple[str, str], int]] = {
    "AIE2": {("i8", "i8"): 256, ("i8", "i4"): 512, ("i16", "i8"): 128, ("i16", "i16"): 64, ("bf16", "bf16"): 128},
    "AIE2P": {
        ("i8", "i8"): 512, ("i8", "i4"): 512, ("i8", "i2"): 512, ("i16", "i8"): 256, ("i16", "i16"): 128,
        ("bf16", "bf16"): 256, ("bf16", "bfp16"): 512, ("bfp16", "bfp16"): 512,
    },
}  # fmt: skip
"""MACs per cycle and core by generation and types of A and B (API headers and rate tables; M).

bf16 on AIE2P goes by way of bfp16. Ternary and 4-bit weights there are unpacked to int8 in other slots than the MACs'.
"""
