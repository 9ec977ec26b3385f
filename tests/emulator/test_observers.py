"""Who watches a run: tracks and spans of a timeline by hand, its file, and how far a run is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge.emulator.lock import Lock
from bdforge.emulator.observe import Timeline, Watched, attend, counted, watching
from bdforge.emulator.scheduler import Agent, Scheduler
from bdforge.txn import Noop
from support.differences import same
from support.small_designs import loopback

ONE, TWO, GATE = Agent("one"), Agent("two"), Lock("gate", 63, lambda _: None)


def timeline(*events: tuple[Any, ...]) -> Timeline:
    """A timeline that was told of events: who, verb, what it is about."""
    found = Timeline()
    for event in events:
        found.event(*event)
    return found


def spans(found: Timeline) -> list[tuple[str, int, int, int]]:
    """Name, beginning, length and track of what has ended."""
    return [(e["name"], e["ts"], e["dur"], e["tid"]) for e in found.events if e["ph"] == "X"]


def test_spans_of_a_party_nest_and_those_of_parties_overlap():
    found = timeline(
        (ONE, "begin", "outer"), (TWO, "begin", "other"), (ONE, "begin", "inner"), (ONE, "work", 3),
        (ONE, "end", "inner"), (None, "end", "nothing"), (TWO, "end", "other"), (ONE, "end", "outer"),
        (ONE, "end", "never begun"),
    )  # fmt: skip
    assert spans(found) == [("inner", 3, 1, 0), ("other", 2, 3, 1), ("outer", 1, 5, 0)]
    assert found.tracks == {"one": 0, "two": 1}


def test_a_lock_s_values_are_counters_of_a_track_of_their_own():
    found = timeline((ONE, "begin", "a"), (None, "value", GATE, 5), (ONE, "value", GATE, 4), (ONE, "end", "a"))
    counters = [(e["name"], e["ts"], e["tid"], e["args"]) for e in found.events if e["ph"] == "C"]
    assert counters == [("lock gate", 2, 1, {"value": 5}), ("lock gate", 3, 1, {"value": 4})]
    assert spans(found) == [("a", 1, 3, 0)]


OPEN = [(ONE, "begin", "outer"), (TWO, "begin", "other"), (TWO, "end", "other"), (ONE, "begin", "inner")]


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        (OPEN[:1], [("outer", 1, 1)]), (OPEN, [("other", 2, 1), ("inner", 4, 1), ("outer", 1, 4)]),
        (OPEN[:2], [("outer", 1, 2), ("other", 2, 1)]), ([(None, "value", GATE, 1)], []), ([], []),
    ],
)  # fmt: skip
def test_what_is_open_ends_one_behind_the_last_event(events: list, ended: list, tmp_path: Path):
    found = timeline(*events)
    found.write(tmp_path / "run.json")
    written = json.loads((tmp_path / "run.json").read_text())
    assert written["displayTimeUnit"] == "ns"
    assert [(e["name"], e["ts"], e["dur"]) for e in written["traceEvents"] if e["ph"] == "X"] == ended
    names = [(e["name"], e["pid"], e.get("tid"), e["args"]["name"]) for e in written["traceEvents"] if e["ph"] == "M"]
    same(names[0], ("process_name", 0, None, "emulated array (order, not time)"))
    same(names[1:], [("thread_name", 0, track, party) for party, track in found.tracks.items()])


def test_who_watches_sees_how_many_operations_were_taken():
    scheduler = Scheduler()
    with watching() as run:
        assert (run.done, run.total, run.steps, run.party) == (0, 0, 0, "")
        for operations in ([Noop()] * 3, [Noop()] * 2):  # one run after the other
            attend(scheduler)
            assert (run.done, run.total, run.scheduler) == (0, 0, scheduler)
            taken = []
            for _ in counted(operations):
                taken.append((run.done, run.total))
            assert taken == [(i, len(operations)) for i in range(len(operations))]
            assert run.done == len(operations)
    assert list(counted([Noop()])) == [Noop()]  # nobody watches
    assert (run.done, run.total) == (2, 2)


def test_a_run_is_watched_with_its_steps_and_who_moved_last():
    with watching() as run:
        bdforge.emulate(loopback(), [np.zeros(96, np.int32)] * 2)
    assert run.done == run.total > 0
    assert run.steps > 0
    assert run.party.split(" ")[0] in ("shim", "memtile")
    assert (Watched().steps, Watched().party) == (0, "")
