"""Time of a GEMM from its bounds, and the bound that binds.

Bounds of resources that work at the same time are joined as (sum of t^p)^(1/p): nearly their maximum, and 2^(1/p) of it
where two are equal, since neither is then busy all the time. p (`OVERLAP_EXPONENT`) is fitted with the DRAM budgets of
`bdforge.devices.timing` (`fit`); everything else comes from the device's table and the formulas of `core` and
`traffic`. What cannot overlap is added. All results are modelled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bdforge.devices.timing import JOB_TIMEOUT_SECONDS, Timing
from bdforge.perf.case import GemmCase
from bdforge.perf.core import CoreCycles, core_cycles
from bdforge.perf.kernel_rates import KernelCycles, kernel_cycles, switch_cycles

OVERLAP_EXPONENT = 16.0
"""p of the module's formula, fitted jointly with the DRAM budgets (docs/accuracy.md)."""

BOUNDS = (
    "compute", "L1 stream", "shim channel", "DRAM bandwidth", "DRAM run length", "controller", "dispatch", "padding",
    "BD reconfiguration",
)  # fmt: skip
"""What may bind. "DRAM run length" is the page budget: runs too short and too far apart; see `Timing`."""

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
    parallel: Mapping[str, float]
    serial: Mapping[str, float]
    bound: str
    time_us: float

    @property
    def tops(self) -> float:
        """Useful operations per second, in 10^12: 2·M·K·N / time."""
        return 2 * self.case.macs / self.time_us / 1e6

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
        """A warning when a driver may end the job before it is done; "" otherwise."""
        seconds = self.time_us / 1e6
        if seconds < JOB_TIMEOUT_SECONDS:
            return ""
        return (
            f"{seconds:.1f} s (modelled) is more than {JOB_TIMEOUT_SECONDS:g} s, after which some drivers end a job; "
            "split the problem along M or N"
        )

    def exposed(self) -> dict[str, float]:
        """Where the time goes: the slowest resource, serial parts, what imperfect overlap adds. Sums to the time."""
        name = max(self.parallel, key=lambda key: self.parallel[key])
        parts = {name: self.parallel[name], **self.serial}
        return {**parts, "imperfect overlap": max(self.time_us - sum(parts.values()), 0.0)}


def estimate(
    case: GemmCase, *, timing: Timing | None = None, exponent: float = OVERLAP_EXPONENT,
    kernel: KernelCycles | None = None,
) -> Estimate:  # fmt: skip
    """Model `case`. `kernel` replaces its kernel's cycles, `timing` the device's table."""
    timing = timing or case.timing
    if case.clock_hz:
        timing = replace(timing, array_hz=case.clock_hz)
    types = (case.a, case.b, case.accumulator or case.c)
    kernel = kernel or kernel_cycles(
        case.array.generation.name, types, case.m, case.k, case.n, macs_per_cycle=case.core_macs_per_cycle
    )
    core = tile_cycles(case, kernel.cycles, timing)
    parallel = _parallel(case, core, timing)
    serial = _serial(case, timing)
    core_us = max(parallel["compute"], parallel["L1 stream"])  # lockstep by double buffers: no joining needed
    others = [parallel[name] for name in parallel if name not in ("compute", "L1 stream")]
    joined = overlapped((core_us, *others), exponent)
    time_us = joined + sum(serial.values())
    return Estimate(case, kernel, core, parallel, serial, _bound(case, parallel, serial), time_us)


def overlapped(times: Sequence[float], exponent: float) -> float:
    """Time of things that overlap imperfectly: (sum of t^exponent)^(1/exponent), from their maximum upwards."""
    slowest = max(times)
    return slowest * sum((time / slowest) ** exponent for time in times) ** (1 / exponent)


def tile_cycles(case: GemmCase, kernel: float, timing: Timing) -> CoreCycles:
    """A core's cycles for one tile of C (`core.core_cycles`).

    Each step switches once for its locks; with asymmetric tile buffering each of its rho microkernels does, unless a
    published rate, which is that of the whole core then, holds them already.
    """
    a, b, c = case.element_bytes
    switches = 1 if case.core_macs_per_cycle else case.rho
    return core_cycles(
        case.m, case.k, case.n, a, b, c,
        depth=case.padded[1], kernel=kernel, overhead=switches * switch_cycles(timing),
        stream_bytes=timing.stream_bytes_per_cycle, resume=timing.done_to_resume_cycles, c_buffers=case.c_buffers,
    )  # fmt: skip


def _parallel(case: GemmCase, core: CoreCycles, timing: Timing) -> dict[str, float]:
    transfers = case.transfers()
    tile_us = case.rounds * timing.cycles_ns(1) / 1e3
    computes = core.bound == "compute"
    lines = sum(timing.dram_lines_ns(t.size_bytes, t.run_bytes, write=t.write) for t in transfers)
    pages = sum(timing.dram_pages_ns(t.size_bytes, t.run_bytes, t.stride_bytes, write=t.write) for t in transfers)
    return {
        "compute": tile_us * (core.tile if computes else core.compute),
        "L1 stream": tile_us * (core.steps * core.stream_in if computes else core.tile),
        "shim channel": max(timing.channel_ns(t.size_bytes / t.channels, t.run_bytes) for t in transfers) / 1e3,
        "DRAM bandwidth": lines / 1e3,
        "DRAM run length": pages / 1e3,
        "controller": case.rounds * _transfers_per_round(case) * timing.controller_transfer_ns / 1e3,
    }


def _serial(case: GemmCase, timing: Timing) -> dict[str, float]:
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
    return sum(transfer.channels for transfer in case.transfers())


def _bound(case: GemmCase, parallel: Mapping[str, float], serial: Mapping[str, float]) -> str:
    slowest = max(parallel, key=lambda key: parallel[key])
    for name in ("dispatch", "BD reconfiguration"):
        if serial.get(name, 0.0) > parallel[slowest]:
            return name
    return "padding" if case.padded_macs > PADDING_BINDS * case.macs else slowest
