"""Which part of a model ran where, why, and how long."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


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
    """Entries in the order in which they came up first."""

    entries: dict[tuple[str, str, str], Entry] = field(default_factory=dict)

    @contextmanager
    def timed(self, part: str, where: str, why: str, npu_us: float | None = None) -> Iterator[None]:
        """Count what is done inside, and its time."""
        start = time.perf_counter()
        yield
        entry = self.entries.setdefault((part, where, why), Entry(part, where, why))
        entry.calls += 1
        entry.host_seconds += time.perf_counter() - start
        if npu_us is not None:
            entry.npu_us = (entry.npu_us or 0.0) + npu_us

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())
