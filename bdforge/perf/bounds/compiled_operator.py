"""Time of an operator whose kernel another compiler made, known by the time of whole runs. All results are modelled.

`cycles = c·elements + r·rows` of a core, two numbers an operator (r of attention alone, whose elements are pairs of
queries and keys); `python -m tools.fit` fits them to `data/measured_operators.csv`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bdforge.common.files import read_csv
from bdforge.devices.timing import Timing, joined_times
from bdforge.perf.bounds.estimate import INTERVAL, OVERLAP_EXPONENT

OPERATORS_FILE = Path(__file__).parents[1] / "data" / "compiled_operators.csv"


@dataclass(frozen=True, slots=True)
class OperatorForm:
    """Cycles of a core for an element and for a row; `count` published runs were fitted."""

    element_cycles: float
    row_cycles: float = 0.0
    count: int = 0


@cache
def compiled_operators() -> Mapping[str, OperatorForm]:
    """The fitted forms by operator."""
    rows = read_csv(OPERATORS_FILE)
    return {
        row["operator"]: OperatorForm(float(row["element_cycles"]), float(row["row_cycles"]), int(row["count"]))
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class CompiledOperator:
    """A run: which form its kernel has, elements and rows of one core, shims in use, bytes of DRAM, the timing.

    `assumed` says what a table's reader filled in.
    """

    operator: str
    elements: float
    rows: float
    columns: int
    read_bytes: float
    write_bytes: float
    timing: Timing
    assumed: tuple[str, ...] = ()

    def parallel_us(self, forms: Mapping[str, OperatorForm] | None = None) -> dict[str, float]:
        """Microseconds that each resource needs on its own; two channels each way a shim. KeyError for no form."""
        timing, form = self.timing, (compiled_operators() if forms is None else forms)[self.operator]
        cycles = form.element_cycles * self.elements + form.row_cycles * self.rows
        moved = ((self.read_bytes, False), (self.write_bytes, True))
        channels = [timing.channel_ns(size / self.columns / 2, write=write) for size, write in moved]
        port = timing.port_ns(self.read_bytes, self.write_bytes)
        times = {"compute": timing.cycles_ns(cycles), "shim channel": max(channels), "DRAM bandwidth": float(port)}
        return {name: ns / 1e3 for name, ns in times.items()}

    def time_us(self, forms: Mapping[str, OperatorForm] | None = None) -> float:
        """Microseconds of a run, dispatch included."""
        serial = (self.timing.dispatch_ns + self.timing.controller_sync_ns) / 1e3
        return float(joined_times(list(self.parallel_us(forms).values()), OVERLAP_EXPONENT)) + serial

    @property
    def time_range_us(self) -> tuple[float, float]:
        """Microseconds between which four in five measurements of unseen runs were (`estimate.INTERVAL`)."""
        return self.time_us() * INTERVAL[0], self.time_us() * INTERVAL[1]

    @property
    def bound(self) -> str:
        """What binds: dispatch where that is most of the time, else the slowest resource."""
        parallel = self.parallel_us()
        slowest = max(parallel, key=lambda name: parallel[name])
        return "dispatch" if self.timing.dispatch_ns / 1e3 > parallel[slowest] else slowest
