"""Time of a GEMM from its bounds, and the bound that binds. Takes one case, or one whose sizes are arrays.

Bounds of resources that work at the same time are joined (`joined_times`). Memory's own parts wait for each other more
(`Timing.memory_exponent`) than cores wait for memory (`OVERLAP_EXPONENT`), which buffers of many steps keep apart. Both
are fitted with the few facts of `bdforge.devices.timing` that nobody measured alone (`fit`); everything else comes from
that table and the formulas of `core` and `traffic`. What cannot overlap is added. All results are modelled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bdforge.devices.timing import JOB_TIMEOUT_SECONDS, Timing, joined_times
from bdforge.devices.types import TYPES
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.core_bound import CoreCycles, core_cycles
from bdforge.perf.kernels.kernel_cost import ScheduleError, pass_cycles
from bdforge.perf.kernels.rates import KernelCycles, kernel_cycles, switch_cycles

OVERLAP_EXPONENT = 9.77
"""The exponent that joins cores and memory; `Timing.memory_exponent` joins the parts of memory (docs/accuracy.md)."""

BOUNDS = (
    "compute", "L1 stream", "shim channel", "shim requests", "DRAM bandwidth", "DRAM run length", "controller",
    "dispatch", "padding", "BD reconfiguration",
)  # fmt: skip
"""What may bind. "shim requests" and "DRAM run length": runs too short for a shim, or served one by one (`Timing`)."""
_CORE = ("compute", "L1 stream")
_DRAM = ("DRAM bandwidth", "DRAM run length")
_SHIM = ("shim channel", "shim requests")

INTERVAL = (0.84, 1.19)
"""Measured over modelled time: holds at least four in five rows that were left out of the fit, every second one or a
whole publication whose kernels' compiler others have, too (docs/accuracy.md)."""

PADDING_BINDS = 2.0  # padded over useful MACs at which most of the time goes into padding


@dataclass(frozen=True, slots=True)
class Estimate:
    """A modelled GEMM: all times in microseconds.

    `parallel` holds what each resource needs on its own (they overlap), `serial` what is added. `bound` is the
    one that binds: dispatch or BD reconfiguration when they are most of the time, padding when most of the work is
    padding, else the slowest resource.
    """

    case: GemmCase
    kernel: KernelCycles
    core: CoreCycles
    parallel: Mapping[str, Any]
    serial: Mapping[str, Any]
    time_us: Any

    def __repr__(self) -> str:
        if np.ndim(self.time_us):
            return f"<Estimate of {np.size(self.time_us)} designs (modelled)>"
        return (
            f"<Estimate of {self.case.M}x{self.case.K}x{self.case.N} on {self.case.device}: {self.time_us:.0f} us, "
            f"{self.tops:.2f} TOPS (modelled), bound: {self.bound}>"
        )

    @property
    def bound(self) -> str:
        """What binds (of one case)."""
        slowest = max(self.parallel, key=lambda key: self.parallel[key])
        for name in ("dispatch", "BD reconfiguration"):
            if self.serial.get(name, 0.0) > self.parallel[slowest]:
                return name
        return "padding" if self.case.padded_macs > PADDING_BINDS * self.case.macs else slowest

    @property
    def tops(self) -> float:
        """Useful operations per second, in 10^12: 2·M·K·N / time."""
        return 2 * self.case.macs / self.time_us / 1e6

    @property
    def time_range_us(self) -> tuple[float, float]:
        """Microseconds between which four in five measurements of unseen designs were (`INTERVAL`)."""
        return self.time_us * INTERVAL[0], self.time_us * INTERVAL[1]

    @property
    def tops_range(self) -> tuple[float, float]:
        """The same in TOPS, low and high."""
        return self.tops / INTERVAL[1], self.tops / INTERVAL[0]

    @property
    def padding(self) -> float:
        """MACs that the array does over those that the answer needs."""
        return self.case.padded_macs / self.case.macs

    @property
    def core_tops(self) -> float:
        """Operations per second of all cores if only kernels and streams counted, padding included (S0)."""
        return 2 * self.case.padded_macs / max(self.parallel["compute"], self.parallel["L1 stream"]) / 1e6

    @property
    def late(self) -> str:
        """A warning when a driver may stop the command before it is done; "" otherwise."""
        seconds = self.time_us / 1e6
        if seconds < JOB_TIMEOUT_SECONDS:
            return ""
        return (
            f"{seconds:.1f} s (modelled) is more than {JOB_TIMEOUT_SECONDS:g} s, after which drivers stop a command; "
            "split the problem along M or N"
        )

    def exposed(self) -> dict[str, float]:
        """Where the time goes: the slowest resource, serial parts, what imperfect overlap adds. Sums to the time."""
        name = max(self.parallel, key=lambda key: self.parallel[key])
        parts = {name: self.parallel[name], **self.serial}
        return {**parts, "imperfect overlap": max(self.time_us - sum(parts.values()), 0.0)}


def estimate(
    case: GemmCase, *, timing: Timing | None = None, kernel: KernelCycles | None = None,
    exponent: float = OVERLAP_EXPONENT,
) -> Estimate:  # fmt: skip
    """Model `case`. `kernel` replaces its kernel's cycles, `timing` the device's table."""
    timing = timing or case.timing
    if case.clock_hz:
        timing = replace(timing, array_hz=case.clock_hz)
    types = (case.a, case.b, case.accumulator or case.c)
    kernel = kernel or kernel_cycles(
        case.array.generation.name, types, case.m, case.k, case.n, macs_per_cycle=case.core_macs_per_cycle,
        compiler=case.compiler,
    )  # fmt: skip
    core = tile_cycles(case, kernel, timing)
    parallel = _parallel(case, core, timing)
    serial = _serial(case, timing)
    core_us = np.maximum(*(parallel[name] for name in _CORE))  # lockstep by double buffers: no joining needed
    dram_us = np.maximum(*(parallel[name] for name in _DRAM))
    memory_us = joined_times([dram_us, *(parallel[name] for name in _SHIM)], timing.memory_exponent)
    time_us = joined_times((core_us, memory_us, parallel["controller"]), exponent) + sum(serial.values())
    parallel, serial = ({name: _plain(time) for name, time in times.items()} for times in (parallel, serial))
    return Estimate(case, kernel, core, parallel, serial, _plain(time_us))


def _plain(value: Any) -> Any:
    """A number as Python's own, an array as it is."""
    return value if np.ndim(value) else float(value)


def tile_cycles(case: GemmCase, kernel: KernelCycles, timing: Timing) -> CoreCycles:
    """A core's cycles for one tile of C (`core.core_cycles`).

    Unless `kernel` tells what is around it: each step switches once for its locks; with asymmetric tile buffering each
    of its rho microkernels does, unless a published rate, which is that of the whole core then, holds them already.
    """
    a, b, c = case.element_bytes
    switches = 1 if case.core_macs_per_cycle else case.rho
    around = switches * switch_cycles(timing) if kernel.around is None else kernel.around
    ends = _ends_cycles(case, timing) if kernel.ends is None else kernel.ends
    ends = ends + kernel.slab * case.padded[1] / case.k_mt
    return core_cycles(
        case.m, case.k, case.n, a, b, c, depth=case.padded[1], kernel=kernel.cycles, overhead=around, ends=ends,
        stream_bytes=timing.stream_bytes_per_cycle, resume=timing.done_to_resume_cycles, c_buffers=case.c_buffers,
        c_parts=np.where(case.c_in_parts, case.rho, 1),
    )  # fmt: skip


def _ends_cycles(case: GemmCase, timing: Timing) -> Any:
    """Cycles of the passes over C before the first and after the last step of K, with their calls and locks."""
    accumulator = case.accumulator or case.c
    passes = [f"zero_{TYPES[accumulator].code}"]
    if case.b == "int2" and case.c == "int32":
        passes.append("unscale_i32")
    elif accumulator != case.c:
        passes.append(f"finish_{TYPES[accumulator].code}_{TYPES[case.c].code}")
    cycles = 2 * timing.core_lock_cycles + len(passes) * timing.kernel_call_cycles
    for symbol in passes:
        try:
            cycles = cycles + pass_cycles(symbol, case.m * case.n, case.array.generation, ("SCALE",) * case.scaled)
        except ScheduleError:  # a published design of types that no kernel of ours has
            continue
    return cycles


def _parallel(case: GemmCase, core: CoreCycles, timing: Timing) -> dict[str, Any]:
    traffic = case.dram_traffic()
    tile_us = case.rounds * timing.cycles_ns(1) / 1e3
    reads = [moved for moved in traffic if not moved.write]
    read, written = (sum(t.size_bytes for t in traffic if t.write is way) for way in (False, True))
    channels = [timing.channel_ns(t.size_bytes / t.channels, t.run_bytes, write=t.write) / 1e3 for t in traffic]
    requests = sum(timing.shim_ns(t.size_bytes / t.channels, t.run_bytes, case.columns) for t in reads)
    runs = [
        timing.run_ns(t.run_bytes, t.stride_bytes, t.shared, t.channels / case.array.columns)
        * t.size_bytes
        / t.run_bytes
        for t in traffic
    ]
    return {
        "compute": tile_us * np.where(core.computes, core.tile, core.compute)[()],
        "L1 stream": tile_us * np.where(core.computes, core.steps * core.stream_in, core.tile)[()],
        "shim channel": np.maximum.reduce(channels),
        "shim requests": requests / 1e3,
        "DRAM bandwidth": timing.port_ns(read, written) / 1e3,
        "DRAM run length": sum(runs) / 1e3,
        "controller": case.rounds * _transfers_per_round(case) * timing.controller_transfer_ns / 1e3,
    }


def _serial(case: GemmCase, timing: Timing) -> dict[str, Any]:
    """Dispatch; the first slabs in and the last tiles out; every round's, when BDs are not written ahead."""
    edges_ns = _edges_ns(case, timing)
    serial = {"dispatch": (timing.dispatch_ns + timing.controller_sync_ns) / 1e3, "fill and drain": edges_ns / 1e3}
    if not case.bd_overlap:
        serial["BD reconfiguration"] = case.rounds * reconfiguration_ns(case, timing) / 1e3
    return serial


def reconfiguration_ns(case: GemmCase, timing: Timing) -> float:
    """Nanoseconds per round that nothing moves when its BDs are written only after the round before has ended.

    Write the round's BDs, start the channels, fill the first slabs, and at its end write C and see the token
    (the scheme that S0 section 5.3.3 compares with; controller costs of `Timing`).
    """
    written = _transfers_per_round(case) * timing.controller_transfer_ns
    return written + timing.shim_mm2s_later_ns + _edges_ns(case, timing) + timing.controller_sync_ns


def _edges_ns(case: GemmCase, timing: Timing) -> float:
    return case.fill_bytes() / timing.dram_read_gb_s + case.round_bytes() / timing.dram_write_gb_s


def _transfers_per_round(case: GemmCase) -> int:
    """Shim BDs of a round: one of A for each of its channels, of B and C one for each column (S0 section 4.4)."""
    return sum(moved.channels for moved in case.dram_traffic())
