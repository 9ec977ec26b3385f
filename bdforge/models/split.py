"""Where parts of a model run, why, and how long they took.

A product runs on the array, or on the CPU where that is faster: by the model of an NPU's time and by products that were
timed on this machine's processor.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from bdforge.models.processor import Numpy, processor
from bdforge.operators import Plan
from bdforge.operators.gemm import GemmProblem, GemmSpec
from bdforge.perf import estimate
from bdforge.perf.bounds.case import case_of

PLACES = {"emulated": "emulated array", "xrt": "NPU"}
"""What a ledger calls devices."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether work runs on the array, why, and how long an NPU would take (modelled, dispatch included)."""

    array: bool
    why: str
    npu_us: float

    @classmethod
    def faster(cls, what: str, npu_us: float, cpu_us: float, how: str) -> "Decision":
        """By times; `how` the CPU's is known."""
        array = npu_us < cpu_us
        faster = "array" if array else "CPU"
        why = f"{what}: {faster} faster, an NPU {npu_us:.0f} us (modelled), this CPU {cpu_us:.0f} us ({how})"
        return cls(array, why, npu_us)


@dataclass
class Split:
    """Decisions by size. `rule`: as times say, or all on the array, or all on the CPU, which is `processor`."""

    plan: Plan
    rule: str = "estimate"
    processor: Numpy = field(default_factory=processor)
    _made: dict[tuple[int, int, int], Decision] = field(default_factory=dict, repr=False)

    def __call__(self, M: int, K: int, N: int) -> Decision:
        """Where an M x K x N product runs; of two matrices where the design gates one by the other."""
        if (M, K, N) not in self._made:
            self._made[M, K, N] = self._decided(M, K, N)
        return self._made[M, K, N]

    def _decided(self, M: int, K: int, N: int) -> Decision:
        spec = self.plan.spec
        assert isinstance(spec, GemmSpec)
        npu_us = float(estimate(case_of(spec, self.plan.device, GemmProblem(M, K, N))).time_us)
        if self.rule != "estimate":
            return Decision(self.rule == "array", f"as asked, M = {M}", npu_us)
        how = f"rates measured, {self.processor.name}"
        return Decision.faster(f"M = {M}", npu_us, self.processor.us(M, K, spec.matrices * N), how)


@dataclass(slots=True)
class Entry:
    """Calls of a part at a place for a reason: their host seconds, and the NPU's modelled microseconds where it ran."""

    part: str
    where: str
    why: str
    calls: int = 0
    host_seconds: float = 0.0
    npu_us: float | None = None


@dataclass(slots=True)
class Ledger:
    """Entries in the order in which they came up first; any thread may count."""

    entries: dict[tuple[str, str, str], Entry] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @contextmanager
    def timed(self, part: str, where: str, why: str, npu_us: float | None = None) -> Iterator[None]:
        """Count what is done inside, and its time."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        with self._lock:
            entry = self.entries.setdefault((part, where, why), Entry(part, where, why))
            entry.calls += 1
            entry.host_seconds += seconds
            if npu_us is not None:
                entry.npu_us = (entry.npu_us or 0.0) + npu_us

    @property
    def us(self) -> float:
        """Microseconds of all entries: an NPU's, modelled, where parts ran on the array, else this host's."""
        return sum(1e6 * one.host_seconds if one.npu_us is None else one.npu_us for one in self)

    def __iter__(self) -> Iterator[Entry]:
        with self._lock:
            return iter([*self.entries.values()])
