"""Who watches a run: tracks and spans of a timeline by hand, its file, and how far a run is."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Result
from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.observe import PerfettoTrace, Watched, attend, counted, watching
from bdforge.array.emulator.scheduler import Agent, Scheduler
from bdforge.array.emulator.trace import DramAccess, Recorder
from bdforge.devices import mlir_device_named
from bdforge.devices.txn_format.operations import Noop
from support.differences import same
from support.small_designs import loopback

ONE, TWO, GATE = Agent("one"), Agent("two"), EmulatedLock("gate", 63, lambda _: None)


def timeline(*events: tuple[Any, ...]) -> PerfettoTrace:
    """A timeline that was told of events: who, verb, what it is about."""
    found = PerfettoTrace()
    for event in events:
        found.event(*event)
    return found


def spans(found: PerfettoTrace) -> list[tuple[str, int, int, int]]:
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


def recorded(*events: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """What party ONE did, as a recorder notes it."""
    recorder = Recorder()
    recorder.event(ONE, "join")
    recorder.event(TWO, "join")
    for verb, *about in events:
        recorder.event(ONE, verb, *about)
    return recorder._parties[ONE].actions


ORDER = Order(4, None, 0, 3)


@pytest.mark.parametrize(
    ("events", "actions"),
    [
        ([("receive", 10, None), ("received", 4)], [("receive", 4, None)]),
        ([("receive", 10, None), ("end", "BD 3"), ("received", 0)], [("receive", 0, None)]),
        ([("receive", 4, (ORDER, 4096))], [("receive", 4, DramAccess(16.0, 0, 4096))]),
        ([("send", 4, [TWO], (ORDER, 64))], [("send", 4, (2,), DramAccess(16.0, 0, 64))]),
        ([("write bd", 0, 1, 5)] * 3, [("write bd", 0, 1, 5)]),
        ([("write bd", 0, 1, 5), ("write bd", 0, 1, 6)], [("write bd", 0, 1, 5), ("write bd", 0, 1, 6)]),
        ([("write bd", 0, 1, 5), ("task",), ("write bd", 0, 1, 5)],
         [("write bd", 0, 1, 5), ("task",), ("write bd", 0, 1, 5)]),
        ([("acquire", GATE, 1, False), ("release", GATE, 2)], [("acquire", 0, 1, False), ("release", 0, 2)]),
        ([("kernel", "mm", [np.zeros((2, 3), np.int16), 5, np.zeros(4, np.int8)])], [("kernel", "mm", (6, 4), 16)]),
        ([("take", [TWO]), ("give", [TWO]), ("get", TWO)], [("take", (2,)), ("give", (2,)), ("get", 2)]),
        ([("push", TWO, (3, 4)), ("value", GATE, 7), ("begin", "x")], [("push", 2, (3, 4))]),
    ],
)  # fmt: skip
def test_a_recorder_notes_what_a_party_does(events: list, actions: list):
    same(recorded(*events), actions)


def test_operations_of_a_program_are_told_before_what_comes_next():
    recorder, core = Recorder(), Agent("core")
    recorder.event(core, "join")
    core.work = 5
    recorder.event(core, "task")
    core.work = 7
    (party,) = (p for p in recorder.finish(mlir_device_named("npu2"), 0).parties if p.name == "core")
    assert party.actions == [("work", 5), ("task",), ("work", 7)]


def test_a_poll_that_somebody_ended_waits_for_his_signal():
    recorder = Recorder()
    recorder.event(ONE, "join")
    for last in (None, ONE, ONE):
        recorder.event(None, "satisfied", last)
    assert recorder._parties[ONE].actions == [("signal", 1), ("signal", 2)]
    assert recorder.controller.actions == [("await", 1), ("await", 2)]


def test_a_result_tells_its_arrays_buffers_warnings_and_time():
    arrays = (np.zeros((2, 3), np.int8), np.zeros(4, np.float32))
    told = Result(arrays, ("one",), {"x": np.zeros(1)})
    assert repr(told) == "<Result of a run on int8[2, 3], float32[4]: 1 named buffers, 1 warnings>"
    timing: Any = SimpleNamespace(seconds=0.00123456)
    assert repr(Result((), (), {}, timing)).endswith(
        "run on no arrays: 0 named buffers, 0 warnings, 1234.6 us (emulated)>"
    )
