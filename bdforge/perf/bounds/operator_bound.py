"""Time of any operator from what a run costs (`Plan.cost`), and the bound that binds. All results are modelled.

The general case of `estimate`, whose GEMMs are known closer. What others published of other operators is of their own
kernels (`compiled_operator`), so the range of ours is as wide as what is not known of overlap.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bdforge.devices.timing import Timing, joined_times
from bdforge.operators import Cost, Plan, Problem
from bdforge.perf.bounds.estimate import OVERLAP_EXPONENT


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """A modelled run; times in microseconds. `parallel` is what each resource needs on its own, `serial` is added."""

    plan: Plan
    problem: Problem
    cost: Cost
    parallel: Mapping[str, float]
    serial: Mapping[str, float]
    time_us: float

    @property
    def bound(self) -> str:
        """What binds: dispatch where that is most of the time, else the slowest resource."""
        slowest = max(self.parallel, key=lambda name: self.parallel[name])
        return "dispatch" if self.serial["dispatch"] > self.parallel[slowest] else slowest

    @property
    def time_range_us(self) -> tuple[float, float]:
        """From everything overlapped to nothing."""
        added = sum(self.serial.values())
        return max(self.parallel.values()) + added, sum(self.parallel.values()) + added

    @property
    def gb_s(self) -> float:
        """DRAM bytes moved per time, in 10^9 per second."""
        return (self.cost.read_bytes + self.cost.write_bytes) / self.time_us / 1e3


def cost_estimate(plan: Plan, problem: Problem, timing: Timing) -> CostEstimate:
    """Model a problem of a plan; SpecError, WalkError as of its sequence."""
    cost = plan.cost(problem)
    parallel_ns = {
        "compute": timing.cycles_ns(cost.core_cycles),
        "shim channel": timing.channel_ns(cost.channel_bytes) / min(timing.shim_read_share, timing.shim_write_share),
        "DRAM bandwidth": timing.port_ns(cost.read_bytes, cost.write_bytes),
    }
    parallel = {name: float(time) / 1e3 for name, time in parallel_ns.items()}
    serial = {"dispatch": timing.dispatch_ns / 1e3, "last token": timing.controller_sync_ns / 1e3}
    time_us = float(joined_times(list(parallel.values()), OVERLAP_EXPONENT)) + sum(serial.values())
    return CostEstimate(plan, problem, cost, parallel, serial, time_us)
