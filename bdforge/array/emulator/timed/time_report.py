"""What a timed run tells. Every figure is emulated: it comes from the constants of `bdforge.devices.timing`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bdforge.array.emulator.timed.bank_conflicts import Conflicts


@dataclass(frozen=True, slots=True)
class PartyTime:
    """Where one party's time went, in cycles from the first operation of the sequence to its end.

    `busy` by what it did (kernels by name, `transfer`, …), `stalled` by what it waited for (`lock …`, `no data`,
    `back-pressure`, `DRAM`, `no task`, …). Together they are the whole time, but for work that outlasts the sequence.
    `conflicts` are cycles that machine code may wait besides for banks that DMA or neighbours use (modelled).
    """

    name: str
    kind: str
    place: tuple[int, int]
    tile_kind: str
    direction: str
    busy: Mapping[str, float]
    stalled: Mapping[str, float]
    conflicts: Mapping[str, Conflicts] = field(default_factory=dict)

    @property
    def busy_cycles(self) -> float:
        return sum(self.busy.values())


@dataclass(frozen=True, slots=True)
class DramTime:
    """DRAM: bytes, and shares used of the port (reads, writes, both ways) and of the busiest shim's requests.

    Both ways holds what DRAM serves run by run.
    """

    read_bytes: int
    write_bytes: int
    read_utilisation: float
    write_utilisation: float
    port_utilisation: float
    request_utilisation: float

    @property
    def utilisation(self) -> float:
        port = max(self.read_utilisation, self.write_utilisation, self.port_utilisation)
        return max(port, self.request_utilisation)


@dataclass(frozen=True, slots=True)
class TimingReport:
    """Time of one run.

    `cycles` are array cycles from the first operation of the sequence to its last one, without `sync_seconds` (until
    the host sees the last token) and `dispatch_seconds` (before the first operation). `macs` are multiplications with
    accumulation, where the caller told them. `operations` are the cycles at which the controller started each operation
    of the sequence.
    """

    cycles: float
    array_hz: float
    dispatch_seconds: float
    sync_seconds: float
    cores: tuple[PartyTime, ...]
    channels: tuple[PartyTime, ...]
    controller: PartyTime
    dram: DramTime
    macs: int | None = None
    peak_macs_per_cycle: int = 0
    warnings: tuple[str, ...] = ()
    operations: tuple[float, ...] = ()

    @property
    def array_seconds(self) -> float:
        """From the first operation of the sequence until the last token is seen."""
        return self.cycles / self.array_hz + self.sync_seconds

    @property
    def seconds(self) -> float:
        """All of it, as a host measures a warm run."""
        return self.dispatch_seconds + self.array_seconds

    @property
    def tops(self) -> float | None:
        """10^12 operations per second over `seconds`; a MAC is two."""
        return None if self.macs is None else 2 * self.macs / self.seconds / 1e12

    @property
    def array_tops(self) -> float | None:
        """The same without the dispatch."""
        return None if self.macs is None else 2 * self.macs / self.array_seconds / 1e12

    @property
    def utilisation(self) -> float | None:
        """MACs over what the cores that ran could have done in `cycles`."""
        working = sum(1 for core in self.cores if core.busy)
        possible = working * self.peak_macs_per_cycle * self.cycles
        return None if self.macs is None or not possible else self.macs / possible

    def core_share(self, what: str) -> float:
        """Mean share of the cores' time that `what`, busy or stalled, took."""
        total = sum(core.busy.get(what, 0.0) + core.stalled.get(what, 0.0) for core in self.cores)
        return total / (len(self.cores) * self.cycles) if self.cores and self.cycles else 0.0
