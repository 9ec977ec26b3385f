"""How a run of an image with an instruction stream ends, and what binds it: tried on the emulated array, on zeros."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bdforge.array.emulator import emulate
from bdforge.array.emulator.api import Result
from bdforge.array.emulator.errors import BudgetExceeded, Deadlock
from bdforge.array.emulator.timed import TimingOptions, TimingReport
from bdforge.array.explain.instruction_steps import ArgumentUse
from bdforge.array.images.xclbin import HostKernels
from bdforge.common.messages import InputError, RunFault
from bdforge.devices.limits import GRANULE_BYTES

MOST_BYTES = 1 << 31
"""Of all arguments together: a run on more is not tried."""
STEPS = 1 << 26
"""Of a run, and bundles of each core: some seconds."""


@dataclass(frozen=True, slots=True)
class CoreRuns:
    """Cores whose runs were alike: bundles from the fewest to the most, and the MACs of all."""

    cores: int
    least_bundles: int
    most_bundles: int
    macs: int


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """How a run ended: `ends`, `hangs`, `fails` or `unknown`; `reason` says why where it does not end.

    `shares` are how much of the time each part is busy, `cycles` those of the array and `seconds` with dispatch: all
    emulated, None and empty where nothing was timed.
    """

    verdict: str
    reason: str = ""
    cores: CoreRuns | None = None
    cycles: float | None = None
    seconds: float | None = None
    shares: Mapping[str, float] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def binding(self) -> str:
        """The part that is busiest, if it is for more than half of the time."""
        if not self.shares:
            return ""
        name, share = max(self.shares.items(), key=lambda item: item[1])
        return name if share > 0.5 else ""


def tried(
    image: bytes, instructions: bytes, arguments: Sequence[ArgumentUse], device: str | None, budget: int = STEPS
) -> RunVerdict:
    """Run an image on zeros in all arguments, as large as its stream moves them."""
    if (size := sum(use.end for use in arguments)) > MOST_BYTES:
        return RunVerdict("unknown", f"its arguments have {size} bytes; runs on {MOST_BYTES} at most are tried")
    arrays = [np.zeros(-(-use.end // GRANULE_BYTES) * GRANULE_BYTES, np.uint8) for use in arguments]
    try:
        result = emulate(
            "", arrays, instructions=instructions, image=image, device=device, budget=budget, timing=TimingOptions()
        )
    except Deadlock as error:
        return RunVerdict("hangs", str(error))
    except BudgetExceeded as error:
        return RunVerdict("unknown", f"{error}; --budget lets it take more")
    except (RunFault, InputError) as error:
        return RunVerdict("fails", str(error))
    report = result.timing
    assert report is not None
    return RunVerdict("ends", "", _cores(result), report.cycles, report.seconds, _shares(report), result.warnings)


def without_run(host_kernels: HostKernels, instructions: bytes | None, configurations: int) -> str:
    """Why nothing can be tried; "" where it can."""
    if instructions is None:
        return "how a run ends is not told without its instruction words: give them with --insts"
    if configurations != 1:
        return f"the file has {configurations} configurations, of which the words do not tell the one that they are for"
    if host_kernels:
        return "cores without machine code run bodies of a text, which an image has not"
    return ""


def _cores(result: Result) -> CoreRuns | None:
    bundles = [core.bundles for core in result.cores]
    macs = sum(core.macs for core in result.cores)
    return CoreRuns(len(bundles), min(bundles), max(bundles), macs) if bundles else None


def _shares(report: TimingReport) -> dict[str, float]:
    """Busy shares: of cores that work, of DMA by kind of tile, of DRAM, of the controller."""
    if not report.cycles:
        return {}
    groups: dict[str, list[float]] = {}
    for core in report.cores:
        groups.setdefault("cores", []).append(core.busy_cycles / report.cycles)
    for channel in report.channels:
        groups.setdefault(f"{channel.tile_kind} {channel.direction}", []).append(channel.busy_cycles / report.cycles)
    found = {name: max(shares) for name, shares in groups.items()}
    return found | {"DRAM": report.dram.utilisation, "controller": report.controller.busy_cycles / report.cycles}
