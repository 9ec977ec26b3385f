"""What a timed run shows: tables for the terminal, and a timeline for Perfetto. Times are emulated.

Shares are means over the parties of a row, of the time from first to last operation.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from bdforge.array.emulator.observe import write_trace
from bdforge.array.emulator.timed.links import DRAM, NO_DATA, NO_ROOM, TRANSFER
from bdforge.array.emulator.timed.task_time import TASK_START
from bdforge.array.emulator.timed.time_report import PartyTime, TimingReport
from bdforge.array.emulator.timed.timed_run import NO_TASK, TimelineSpan
from bdforge.common.screen import new_table

_SMALLEST_SHARE = 0.0005  # less is left out: it would be printed as 0.0 %


def tables(report: TimingReport, title: str) -> list[Table]:
    found = [summary_table(report, title)]
    if report.cores:
        found.append(core_table(report))
    if any(core.conflicts for core in report.cores):
        found.append(bank_table(report))
    if report.channels:
        found.append(channel_table(report))
    found.append(controller_table(report))
    return found


def summary_table(report: TimingReport, title: str) -> Table:
    """What the run takes, what that makes in TOPS, and what DRAM does meanwhile."""
    table = new_table(f"{title}: time (emulated)", "", ">")
    table.show_header = False
    dram, seconds = report.dram, report.cycles / report.array_hz
    table.add_row("time with dispatch", f"{report.seconds * 1e6:.1f} us")
    table.add_row("dispatch", f"{report.dispatch_seconds * 1e6:.1f} us")
    table.add_row("sequence", f"{seconds * 1e6:.1f} us = {report.cycles:.0f} cycles at {report.array_hz / 1e9:g} GHz")
    table.add_row("final sync", f"{report.sync_seconds * 1e6:.1f} us")
    if report.macs is not None:
        table.add_row("with dispatch", f"{report.tops:.2f} TOPS")
        table.add_row("without", f"{report.array_tops:.2f} TOPS")
    if report.utilisation is not None:
        table.add_row("MACs of the cores' peak", _percent(report.utilisation))
    for way, size, used in (
        ("read", dram.read_bytes, dram.read_utilisation),
        ("written", dram.write_bytes, dram.write_utilisation),
    ):
        rate = size / seconds / 1e9 if seconds else 0.0
        table.add_row(f"DRAM {way}", f"{size / 1e6:.2f} MB, {rate:.1f} GB/s, {_percent(used)} of its rate")
    table.add_row("DRAM both ways", f"{_percent(dram.port_utilisation)} of the port")
    table.add_row("requests", f"{_percent(dram.request_utilisation)} of the busiest shim's")
    return table


def core_table(report: TimingReport) -> Table:
    """What cores do and wait for: the mean over all, the least and the most."""
    table = new_table(f"{len(report.cores)} cores (emulated)", "cores", ">mean", ">least", ">most")
    for label, of in (("", "busy"), ("waits for ", "stalled")):
        rows: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(report.cores))
        for place, core in enumerate(report.cores):
            for what, cycles in getattr(core, of).items():
                rows[label + role(what)][place] += cycles / report.cycles
        for what, shares in sorted(rows.items(), key=lambda row: -sum(row[1])):
            if (mean := sum(shares) / len(shares)) >= _SMALLEST_SHARE:
                table.add_row(what, _percent(mean), _percent(min(shares)), _percent(max(shares)))
    return table


def bank_table(report: TimingReport) -> Table:
    """Cycles that cores of machine code may wait for banks that others use: the mean over those that may."""
    table = new_table("cycles a core may wait for banks besides (modelled)", "used by", ">expected", ">most")
    for cause in dict.fromkeys(cause for core in report.cores for cause in core.conflicts):
        found = [core.conflicts[cause] for core in report.cores if cause in core.conflicts]
        expected, most = (sum(values) / len(found) for values in ([c.expected for c in found], [c.most for c in found]))
        table.add_row(cause, f"{expected:.0f}", f"{most:.0f}")
    return table


def channel_table(report: TimingReport) -> Table:
    """Channels of the same kind of tile and the same number, taken together."""
    shares = (f">{name}" for name in ("tiles", TRANSFER, DRAM, "other end", "locks", NO_TASK, TASK_START))
    table = new_table("DMA channels (emulated)", "channel", *shares)
    groups: dict[str, list[PartyTime]] = defaultdict(list)
    for channel in report.channels:
        groups[f"{channel.tile_kind} {' '.join(channel.name.split(' ')[-2:])}"].append(channel)
    for name, channels in sorted(groups.items()):
        spent = [_share(report, channels, reasons) for reasons in ((TRANSFER,), (DRAM,), (NO_DATA, NO_ROOM))]
        locks = _share(report, channels, {r for c in channels for r in c.stalled if r.startswith("lock ")})
        rest = [_share(report, channels, (reason,)) for reason in (NO_TASK, TASK_START)]
        table.add_row(name, str(len(channels)), *map(_percent, [*spent, locks, *rest]))
    return table


def controller_table(report: TimingReport) -> Table:
    table = new_table("controller (emulated)", "controller", ">us", ">share")
    waiting: dict[str, float] = defaultdict(float)
    for what, cycles in report.controller.stalled.items():
        waiting[f"waits for {what.partition(' of ')[0]}"] += cycles
    for what, cycles in (*report.controller.busy.items(), *waiting.items()):
        table.add_row(what, f"{cycles / report.array_hz * 1e6:.1f}", _percent(cycles / report.cycles))
    return table


def role(what: str) -> str:
    """A lock's name without the places in it: `lock core_0_2_a_full` is `lock core_a_full`."""
    if not what.startswith("lock "):
        return what
    return re.sub(r"_\d+(?=_|$)", "", what)


def _share(report: TimingReport, parties: Sequence[PartyTime], reasons: Iterable[str]) -> float:
    wanted = set(reasons)
    spent = sum(c for p in parties for of in (p.busy, p.stalled) for what, c in of.items() if what in wanted)
    return spent / (len(parties) * report.cycles) if report.cycles else 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


_GROUPS = ("controller", "core", "memtile", "shim")  # processes of the trace, in this order


def write_timeline(path: Path, spans: Sequence[TimelineSpan], array_hz: float) -> None:
    """Write spans with their times in microseconds; waits have the category `wait`. FileError if that fails."""
    tracks = {name: number for number, name in enumerate(sorted({span.party for span in spans}, key=_order))}
    groups = [f"{group} (emulated time)" for group in (*_GROUPS, "other")]
    events = [_event(span, tracks[span.party], 1e6 / array_hz) for span in spans]
    write_trace(path, groups, [(_group(name), track, name) for name, track in tracks.items()], events)


def _event(span: TimelineSpan, track: int, scale: float) -> dict[str, Any]:
    cycles = span.end - span.start
    parts = {} if span.moving is None else {"moving": span.moving, "dram": span.dram}
    return {
        "ph": "X", "pid": _group(span.party), "tid": track, "name": span.what, "cat": "wait" if span.waits else "work",
        "ts": span.start * scale, "dur": (span.end - span.start) * scale, "args": {"cycles": cycles, **parts},
    }  # fmt: skip


def _group(party: str) -> int:
    first = party.split(" ", 1)[0].rstrip(":")
    return _GROUPS.index(first) if first in _GROUPS else len(_GROUPS)


def _order(party: str) -> tuple[int, str]:
    return _group(party), party
