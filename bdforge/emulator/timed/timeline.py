"""The timeline of a timed run as Chrome trace JSON, which Perfetto and chrome://tracing open. Times are emulated."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bdforge.emulator.timed.runner import Span
from bdforge.files import write_whole

_GROUPS = ("controller", "core", "memtile", "shim")  # processes of the trace, in this order


def write_timeline(path: Path, spans: Sequence[Span], array_hz: float) -> None:
    """Write spans with their times in microseconds; waits have the category `wait`. FileError if that fails."""
    tracks = {name: number for number, name in enumerate(sorted({span.party for span in spans}, key=_order))}
    names = [
        {"ph": "M", "name": "thread_name", "pid": _group(name), "tid": track, "args": {"name": name}}
        for name, track in tracks.items()
    ]
    groups = [
        {"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"{group} (emulated time)"}}
        for number, group in enumerate((*_GROUPS, "other"))
    ]
    events = [_event(span, tracks[span.party], 1e6 / array_hz) for span in spans]
    write_whole(path, json.dumps({"traceEvents": [*groups, *names, *events], "displayTimeUnit": "ns"}))


def _event(span: Span, track: int, scale: float) -> dict[str, Any]:
    return {
        "ph": "X", "pid": _group(span.party), "tid": track, "name": span.what, "cat": "wait" if span.waits else "work",
        "ts": span.start * scale, "dur": (span.end - span.start) * scale, "args": {"cycles": span.end - span.start},
    }  # fmt: skip


def _group(party: str) -> int:
    first = party.split(" ", 1)[0]
    return _GROUPS.index(first) if first in _GROUPS else len(_GROUPS)


def _order(party: str) -> tuple[int, str]:
    return _group(party), party
