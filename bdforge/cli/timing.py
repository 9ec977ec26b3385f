"""Options of timed emulation, and what it prints and writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bdforge.devices.timing import TIMINGS, timing_of
from bdforge.emulator.timed import Span, TimingOptions, TimingReport
from bdforge.emulator.timed.tables import tables, write_timeline
from bdforge.screen import put, say, screen

PRODUCTS = ", ".join(TIMINGS)
TimelineFile = Annotated[
    Path | None, typer.Option("--timeline", help="New file for a timeline in emulated time that Perfetto opens.")
]


def cycles_by_kernel(entries: Sequence[str]) -> Mapping[str, float]:
    """Cycles by kernel from NAME=CYCLES."""
    return dict(_named_cycles(entry) for entry in entries)


def without_timing(options: Mapping[str, object]) -> None:
    """Refuse options that only a timed run heeds: those whose value, by name, is given."""
    for name, value in options.items():
        if value:
            raise typer.BadParameter(f"{name} goes with --timing or --timeline")


def _named_cycles(entry: str) -> tuple[str, float]:
    name, equals, text = entry.partition("=")
    try:
        cycles = float(text)
        if not (name and equals and 0 <= cycles < float("inf")):
            raise ValueError
    except ValueError:
        raise typer.BadParameter(f"{entry!r} is not NAME=CYCLES, such as mm_i8_i2_i32=1200") from None
    return name, cycles


@dataclass(frozen=True)
class Timed:
    """A timed run of the command line."""

    options: TimingOptions
    timeline: Path | None

    @classmethod
    def of(cls, product: str | None, kernels: Sequence[str], macs: int | None, timeline: Path | None) -> "Timed":
        """Options for a product, or the design's array; DeviceError for an unknown one."""
        spans: list[Span] | None = None if timeline is None else []
        return cls(
            TimingOptions(timing_of(product) if product else None, cycles_by_kernel(kernels), macs, spans), timeline
        )

    def show(self, report: TimingReport, title: str) -> None:
        """Print the tables and write the timeline."""
        put(screen(), *tables(report, title))
        if self.timeline is not None and self.options.spans is not None:
            write_timeline(self.timeline, self.options.spans, report.array_hz)
            say(f"wrote {self.timeline}", err=True)
