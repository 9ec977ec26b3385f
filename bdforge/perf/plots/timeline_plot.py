"""Timeline of a timed run: over time, what each kind of tile's cores and channels do and wait for."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bdforge.common.files import read_json
from bdforge.common.messages import clip_path
from bdforge.perf.plots.figure import BLUE, GREEN, ORANGE, SKY, TEXT, PlotError, empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 800
_STEPS = "controller: steps"
_WORK, _LOCKS, _WORDS, _DRAM = "works", "waits for a lock", "waits for words or room", "waits for DRAM or a token"
_COLORS = {_WORK: GREEN, _LOCKS: ORANGE, _WORDS: SKY, _DRAM: BLUE}
"""What is drawn; the rest of the time there is nothing to do."""
_WAITS = {"lock": _LOCKS, "no data": _WORDS, "back-pressure": _WORDS, "DRAM": _DRAM, "token": _DRAM, "polled": _DRAM}


@dataclass
class _Kind:
    """Parties of one kind: how many, and where spans of each state start and end, in microseconds."""

    parties: set[int] = field(default_factory=set)
    spans: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, state: str, start: float, end: float, cycles: Mapping[str, float]) -> None:
        """A span; a transfer waits for words or room, then for DRAM, and moves words in the end."""
        if "moving" in cycles and cycles["cycles"] > 0:
            scale = (end - start) / cycles["cycles"]
            moved = end - cycles["moving"] * scale
            slowed = moved - cycles["dram"] * scale
            self.spans[_WORDS].append((start, slowed))
            self.spans[_DRAM].append((slowed, moved))
            start = moved
        self.spans[state].append((start, end))


def timeline(path: Path) -> "Figure":
    """What `bdforge run --timeline` or `emulate --timeline` wrote; PlotError for a file of another form."""
    try:
        kinds, steps = read_timeline(read_json(path, PlotError)["traceEvents"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PlotError(f"{clip_path(path)}: is no timeline that bdforge wrote with --timeline") from None
    end = max((end for kind in kinds.values() for spans in kind.spans.values() for _, end in spans), default=0.0)
    if not end:
        raise PlotError(f"{clip_path(path)}: nothing took time in it")
    return _figure(kinds, steps, end)


def read_timeline(events: list[dict[str, Any]]) -> tuple[dict[str, _Kind], list[tuple[str, float, float]]]:
    names = {one["tid"]: one["args"]["name"] for one in events if one["ph"] == "M" and one["name"] == "thread_name"}
    kinds: dict[str, _Kind] = defaultdict(_Kind)
    steps: list[tuple[str, float, float]] = []
    for one in events:
        if one["ph"] != "X":
            continue
        party, start, end = names[one["tid"]], float(one["ts"]), float(one["ts"]) + float(one["dur"])
        if party == _STEPS:
            steps += [(str(one["name"]), start, end)] if one["cat"] == "work" else []
            continue
        kind = kinds[_kind(party)]
        kind.parties.add(one["tid"])
        if (state := _state(str(one["name"]), one["cat"] == "wait")) is not None:
            kind.add(state, start, end, one["args"])
    return kinds, steps


def _kind(party: str) -> str:
    """Such as core, memtile S2MM 0 or shim MM2S 1, of core (0, 2), memtile (3, 1) S2MM 0 or shim (1, 0) MM2S 1."""
    before, _, behind = party.partition(" (")
    return before + behind.partition(")")[2]


def _state(what: str, waits: bool) -> str | None:
    if not waits:
        return _WORK
    return next((state for start, state in _WAITS.items() if what.startswith(start)), None)


def state_shares(kind: _Kind, state: str, edges: np.ndarray) -> np.ndarray:
    """Which part of each interval between edges the parties spend in a state, as a mean over them."""
    starts, ends = np.array(kind.spans.get(state, []), float).reshape(-1, 2).T
    passed = _since(np.sort(starts), edges) - _since(np.sort(ends), edges)
    return np.diff(passed) / np.diff(edges) / len(kind.parties)


def _since(times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Time since all those that are over at each edge, summed."""
    over = np.searchsorted(times, edges)
    return over * edges - np.concatenate([[0.0], np.cumsum(times)])[over]


def _figure(kinds: Mapping[str, _Kind], steps: list[tuple[str, float, float]], end: float) -> "Figure":
    figure, edges = empty_figure(12, 1.2 + 0.55 * len(kinds) + 0.6 * bool(steps)), np.linspace(0, end, _BINS + 1)
    ordered = sorted(kinds, key=lambda name: (name.split(" ")[0] not in ("controller", "core"), name))
    rows = figure.subplots(len(ordered) + bool(steps), 1, sharex=True, squeeze=False)[:, 0]
    drawn = []
    for axes, name in zip(rows[bool(steps) :], ordered, strict=True):
        shares = [state_shares(kinds[name], state, edges) for state in _COLORS]
        drawn = axes.stackplot(edges[:-1], *shares, colors=_COLORS.values(), step="post")
        axes.set_ylim(0, 1)
        _label(axes, f"{name} ({len(kinds[name].parties)})")
        for _, start, _ in steps:
            axes.axvline(start, color=TEXT, linewidth=0.4)
    if steps:
        _draw_steps(rows[0], steps)
    rows[-1].set_xlim(0, end)
    rows[-1].set_xlabel("microseconds (emulated)", fontsize=9)
    figure.legend(drawn, _COLORS, loc="outside upper center", ncols=len(_COLORS), fontsize=9, frameon=False)
    return figure


def _draw_steps(axes: Any, steps: list[tuple[str, float, float]]) -> None:
    _label(axes, "step")
    for number, (name, start, end) in enumerate(steps):
        axes.axvspan(start, end, color="#dddddd" if number % 2 else "#bbbbbb")
        axes.text((start + end) / 2, 0.5, name, ha="center", va="center", fontsize=7, rotation=20, clip_on=True)


def _label(axes: Any, name: str) -> None:
    axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    axes.set_yticks([])
    axes.tick_params(labelsize=8, colors=TEXT)
