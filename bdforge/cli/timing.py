"""Options of timed emulation, and what it prints and writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bdforge.array.emulator.timed import TimelineSpan, TimingOptions, TimingReport
from bdforge.array.emulator.timed.time_tables import tables, write_timeline
from bdforge.cli.options import LARGE, completing, new_path, number
from bdforge.common.screen import put, say, screen
from bdforge.devices.timing import TIMINGS, timing_of

TimelineFile = Annotated[
    Path | None, new_path("New file for a timeline in emulated time that Perfetto opens.", "--timeline")
]
Product = Annotated[
    str | None,
    typer.Option(
        "--device",
        help=f"Product whose clock and DRAM are timed, by default the array's: {', '.join(TIMINGS)}.",
        autocompletion=completing(TIMINGS),
    ),
]
KernelCycles = Annotated[
    list[str] | None,
    typer.Option("--kernel-cycles", help="NAME=CYCLES of one call of a linked kernel; repeatable."),
]
Macs = Annotated[int | None, number("MACs of the whole run, for TOPS.", least=1, most=LARGE)]


def without_timing(options: Mapping[str, object]) -> None:
    """Refuse options that only a timed run heeds: those whose value, by name, is given."""
    for name, value in options.items():
        if value:
            raise typer.BadParameter(f"{name} goes with --timing or --timeline")


def _named_cycles(entry: str) -> tuple[str, float]:
    name, equals, text = entry.partition("=")
    try:
        cycles = float(text)
        if not (name and equals and 0 <= cycles <= LARGE):
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
    def given(
        cls, timing: bool, timeline: Path | None, product: str | None, kernels: Sequence[str], macs: int | None
    ) -> "Timed | None":
        """What options ask for, of a product or the design's array; DeviceError for an unknown one. None: no timing."""
        if not timing and timeline is None:
            without_timing({"--device": product, "--kernel-cycles": kernels, "--macs": macs})
            return None
        spans: list[TimelineSpan] | None = None if timeline is None else []
        cycles = dict(map(_named_cycles, kernels))
        options = TimingOptions(timing_of(product) if product else None, cycles, macs, spans)
        return cls(options, timeline)

    def show(self, report: TimingReport, title: str) -> None:
        """Print the tables and write the timeline."""
        put(screen(), *tables(report, title))
        if self.timeline is not None and self.options.spans is not None:
            write_timeline(self.timeline, self.options.spans, report.array_hz)
            say(f"wrote {self.timeline}", err=True)
