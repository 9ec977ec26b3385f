"""Traces by hand, replayed: task queues, tokens, polls, resets, configurations, cascades, packets, streams."""

from dataclasses import replace
from typing import Any

import pytest

from bdforge.array.emulator import TimingError, TimingOptions, TimingReport, replay
from bdforge.array.emulator.timed import PartyTime, TimelineSpan
from bdforge.array.emulator.trace import Party, Trace
from bdforge.devices import mlir_device_named
from bdforge.devices.timing import Timing
from support.timed_designs import FREE

Actions = list[tuple[Any, ...]]
PLACES = {"core": (0, 2), "shim": (0, 0), "memtile": (0, 1)}


def replayed(
    controller: Actions, *parties: tuple[str, Actions], timing: Timing = FREE, configurations: tuple[int, ...] = (),
    spans: list[TimelineSpan] | None = None, locks: tuple[str, ...] = ("gate (0, 2)",),
) -> TimingReport:  # fmt: skip
    """A trace of the controller and parties 1, 2, ...: "core", or a channel of a "memtile" or "shim"."""
    found = [Party(0, "controller", "controller", 0, actions=[("start", 0), *controller, ("finish",)])]
    for index, (kind, actions) in enumerate(parties, 1):
        of = configurations[index - 1] if configurations else 0
        party = Party(index, f"{kind} {index}", "core" if kind == "core" else "channel", of, PLACES[kind], kind, "MM2S")
        found.append(replace(party, actions=actions))
    return replay(
        Trace(mlir_device_named("npu2"), tuple(found), locks, 8), TimingOptions(timing, {"mm": 10}, spans=spans)
    )


def of(report: TimingReport, name: str) -> PartyTime:
    return next(party for party in (*report.cores, *report.channels) if party.name == name)


def work(cycles: int) -> tuple[str, int]:
    return "work", cycles


def queue(*tasks: tuple[int, bool]) -> Actions:
    """A channel's tasks: cycles of each, and whether it issues a token."""
    return [action for cycles, token in tasks for action in (("task",), work(cycles), ("end task", token))]


PUSH, TOKEN = ("push", 1, (0,)), ("token", 1)


@pytest.mark.parametrize(
    ("tasks", "cycles"),
    [([(10, False), (5, True)], 15), ([(10, True), (5, False)], 10), ([(10, True), (5, True)], 10)],
)
def test_a_wait_ends_with_the_first_task_that_issues_a_token(tasks, cycles):
    report = replayed([PUSH, PUSH, TOKEN], ("memtile", queue(*tasks)))
    assert report.controller.stalled == {"token of memtile 1": cycles}
    assert report.cycles == cycles


def test_each_wait_takes_a_token_of_its_own():
    report = replayed([*[PUSH] * 3, *[TOKEN] * 2], ("memtile", queue((10, True), (20, False), (5, True))))
    assert report.cycles == 35


def test_two_that_push_to_a_full_queue_both_go_on():
    """The controller and a control packet's receiver: each task that ends lets one of them in, in turn."""
    other = ("memtile", [work(1), PUSH, work(7)])
    report = replayed([*[PUSH] * 5, *[TOKEN] * 6], ("memtile", queue(*[(10, True)] * 6)), other)
    assert report.controller.stalled["full task queue of memtile 1"] == 10
    assert of(report, "memtile 2").stalled["full task queue of memtile 1"] == 19
    assert report.cycles == 60


@pytest.mark.parametrize(("pushes", "waits"), [(4, 0), (5, 10), (6, 20)])
def test_a_queue_holds_four_tasks_and_the_one_that_runs_is_one_of_them(pushes: int, waits: int):
    report = replayed([*[PUSH] * pushes, *[TOKEN] * pushes], ("memtile", queue(*[(10, True)] * pushes)))
    assert report.controller.stalled.get("full task queue of memtile 1", 0) == waits
    assert report.cycles == 10 * pushes
    assert [warning.split(" is pushed")[0] for warning in report.warnings] == ["memtile 1"] * (waits > 0)


@pytest.mark.parametrize(
    ("bd", "column", "at", "told"),
    [(0, 0, 5, True), (0, 0, 20, False), (1, 0, 5, True), (2, 0, 5, False), (0, 1, 5, False)],
)
def test_a_bd_in_flight_is_one_of_a_task_that_has_not_ended(bd: int, column: int, at: int, told: bool):
    """The task of BDs 0 and 1 runs from 0 to 10."""
    timing = replace(FREE, controller_write_ns=at)
    controller = [("push", 1, (0, 1)), ("operation", "Write", 1), ("write bd", column, 1, bd), TOKEN]
    report = replayed(controller, ("memtile", queue((10, True))), timing=timing)
    assert [w.split(" is rewritten")[0] for w in report.warnings] == [f"BD {bd} of tile (0, 1)"] * told


@pytest.mark.parametrize(("counts", "cycles"), [({0}, 30), ({1}, 20), ({2}, 10), ({3}, 0), ({0, 2}, 10)])
def test_a_poll_of_a_queue_ends_when_so_many_tasks_are_in_flight(counts: set[int], cycles: int):
    controller = [PUSH, PUSH, PUSH, ("poll tasks", 1, frozenset(counts)), ("operation", "Noop", 1)]
    report = replayed(controller, ("memtile", queue(*[(10, False)] * 3)))
    assert report.controller.stalled.get("status of memtile 1", 0) == cycles


@pytest.mark.parametrize(("values", "cycles"), [({0}, 0), ({1}, 10), ({3}, 30), ({1, 2}, 10)])
def test_a_poll_of_a_lock_ends_when_it_has_such_a_value(values: set[int], cycles: int):
    releases = [action for _ in range(3) for action in (work(10), ("release", 0, 1))]
    report = replayed([("poll lock", 0, frozenset(values))], ("core", releases))
    assert report.controller.stalled.get("lock gate", 0) == cycles


def test_a_reset_drops_what_its_channel_does_and_what_it_waits_for():
    """Task 1 would end at 100: the channel is reset at 7, and its next task runs from then on."""
    timing = replace(FREE, controller_write_ns=7)
    channel = [("task",), work(100), ("was reset",), *queue((10, True))]
    report = replayed([PUSH, ("operation", "Write", 1), ("reset", 1), PUSH, TOKEN], ("memtile", channel), timing=timing)
    assert report.cycles == 17
    waiting = [("task",), ("acquire", 0, 1, False), ("was reset",), *queue((10, True))]
    report = replayed([PUSH, ("operation", "Write", 1), ("reset", 1), PUSH, TOKEN], ("memtile", waiting), timing=timing)
    assert (report.cycles, of(report, "memtile 1").stalled) == (17, {"lock gate": 7})


def test_a_reset_lets_those_go_on_that_push_to_the_full_queue():
    """The queue is empty from 7 on: what waited since 1 to push is in it at once, and so is what comes then."""
    controller = [*[PUSH] * 4, ("operation", "Write", 1), ("reset", 1), PUSH, TOKEN, TOKEN, TOKEN]
    channel = [("task",), work(100), ("was reset",), *queue(*[(10, True)] * 3)]
    pushers = [("memtile", [work(1), PUSH]), ("memtile", [work(2), PUSH])]
    report = replayed(controller, ("memtile", channel), *pushers, timing=replace(FREE, controller_write_ns=7))
    waited = [of(report, f"memtile {index}").stalled["full task queue of memtile 1"] for index in (2, 3)]
    assert (waited, report.cycles) == ([6, 5], 37)


def test_a_reconfiguration_ends_who_waits_for_a_full_queue():
    timing = replace(FREE, controller_write_ns=7, reconfiguration_ns=50)
    controller = [*[PUSH] * 4, ("operation", "Write", 1), ("stop",), ("operation", "LoadPdi", 1), ("start", 1)]
    stopped = [("memtile", queue((50, False))), ("memtile", [work(1), PUSH])]
    after = ("core", [work(3)])
    report = replayed(controller, *stopped, after, timing=timing, configurations=(0, 0, 1))
    assert of(report, "memtile 2").stalled == {"full task queue of memtile 1": 6}
    assert report.cycles == 60


def test_parties_of_a_configuration_begin_with_it_and_end_with_the_next():
    """Stopped at 25, in the third of its kernels, and loaded anew until 75."""
    timing, spans = replace(FREE, controller_write_ns=25, reconfiguration_ns=50), list[TimelineSpan]()
    controller = [("operation", "Write", 1), ("stop",), ("operation", "LoadPdi", 1), ("start", 1)]
    kernels = [("kernel", "mm", (1,), 4)]
    report = replayed(
        controller, ("core", kernels * 9), ("core", kernels * 2), timing=timing, configurations=(0, 1), spans=spans
    )
    assert [(s.party, s.start) for s in spans if s.what == "mm"] == [
        ("core 1", 0), ("core 1", 10), ("core 1", 20), ("core 2", 75), ("core 2", 85),
    ]  # fmt: skip
    assert (of(report, "core 1").busy, of(report, "core 2").busy) == ({"mm": 25}, {"mm": 20})
    assert report.cycles == 95


def test_only_a_sequence_that_awaits_is_seen_by_its_host_and_only_one_with_operations_is_dispatched():
    timing = replace(FREE, controller_sync_ns=700, dispatch_ns=500)
    quiet = replayed([("operation", "Noop", 1)], ("core", [work(40)]), timing=timing)
    awaited = replayed([("operation", "Noop", 1), PUSH, TOKEN], ("memtile", queue((10, True))), timing=timing)
    assert [(r.sync_seconds, r.dispatch_seconds) for r in (quiet, awaited)] == [(0, 5e-7), (7e-7, 5e-7)]
    assert (quiet.cycles, of(quiet, "core 1").busy) == (0, {})  # what runs before the first operation counts nothing
    assert replayed([], ("core", [work(40)]), timing=timing).cycles == 40


def test_a_run_without_waits_ends_when_the_array_is_quiet():
    assert replayed([], ("core", [work(40)])).cycles == 40
    assert replayed([PUSH, TOKEN], ("memtile", queue((10, True))), ("core", [work(40)])).cycles == 10


def test_a_sequence_that_time_never_ends_is_named_with_who_waits():
    with pytest.raises(TimingError, match=r"(?s)core 1 waits for lock gate\n.*core 2 waits for cascade in"):
        replayed([("poll lock", 0, frozenset({9}))], ("core", [("acquire", 0, 1, False)]), ("core", [("get", 3)]))


def test_a_taker_lets_who_waits_for_exactly_what_it_leaves_go_on():
    """One core waits for exactly 0 of a lock of 2, which the other takes at 30."""
    cores = [("core", [("acquire", 0, 0, True), work(5)]), ("core", [work(30), ("acquire", 0, 2, False)])]
    assert replayed([("set", 0, 2)], *[("core", [work(1), *actions]) for _, actions in cores]).cycles == 36


@pytest.mark.parametrize(("signal", "cycles"), [(10, 10), (0, 0)])
def test_the_controller_goes_on_with_a_signal(signal: int, cycles: int):
    report = replayed([("await", 1)], ("core", [work(signal), ("signal", 1), work(5)] if signal else [("signal", 1)]))
    assert report.controller.stalled.get("polled register", 0) == cycles


def test_locks_cost_cores_and_not_channels_and_nothing_where_bundles_are_counted():
    timing = replace(FREE, core_lock_cycles=6)
    locks = [("acquire", 0, 0, False), ("release", 0, 1)]
    assert replayed([], ("core", locks), timing=timing).cycles == 12
    assert replayed([], ("memtile", locks), timing=timing).cycles == 0
    code = [("run", 20, 3, {}, (("part", 23),)), *locks]
    report = replayed([], ("core", code), timing=timing)
    assert report.cycles == 23
    assert (of(report, "core 1").busy["core program"], of(report, "core 1").stalled["own banks"]) == (20, 3)


def test_packets_take_turns_in_the_order_in_which_they_came():
    timing = replace(FREE, packet_arbitration_cycles=2)
    parties = [("memtile", [work(wait), ("take", (9,)), work(10), ("give", (9,))]) for wait in (0, 3, 1)]
    report = replayed([], *parties, timing=timing)
    waits = [of(report, f"memtile {i}").stalled.get("packet arbiter", 0) for i in (1, 2, 3)]
    assert waits == [0, 24 - 3, 12 - 1]
    assert report.cycles == 36


@pytest.mark.parametrize(("count", "more"), [(11, ""), (12, "1"), (20, "9")])
def test_twelve_of_those_who_wait_are_named_and_the_rest_counted(count: int, more: str):
    """With the controller; a channel without a task waits for nobody."""
    cores = [("core", [("acquire", 0, 1, False)])] * count
    with pytest.raises(TimingError) as fault:
        replayed([("poll lock", 0, frozenset({9}))], *cores, ("memtile", queue((1, False))))
    head, *lines = str(fault.value).splitlines()
    assert head.endswith("its result depends on speed; see --schedule random")
    waits = ["controller", *(f"core {i + 1}" for i in range(count))][:12]
    assert lines == [f"  {name} waits for lock gate" for name in waits] + [f"  … and {more} more"] * bool(more)


def test_a_transfer_of_no_words_takes_no_time_and_changes_no_bd():
    timing = replace(FREE, bd_change_cycles=5)
    send, receive = [("send", 0, (2,), None)], [("receive", 0, None)]
    for more, cycles in ((0, 8), (2, 8)):
        source, sink = send * more + [("send", 16, (2,), None)], receive * more + [("receive", 16, None)]
        assert replayed([], ("memtile", source), ("memtile", sink), timing=timing).cycles == cycles
    twice = [("send", 16, (2,), None)] * 2, [("receive", 16, None)] * 2
    assert replayed([], ("memtile", twice[0]), ("memtile", twice[1]), timing=timing).cycles == 8 + 5 + 8
    assert replayed([], ("core", twice[0]), ("core", twice[1]), timing=timing).cycles == 16 + 16


@pytest.mark.parametrize(("put", "get", "waits"), [(0, 30, 0), (30, 0, 30), (30, 10, 20)])
def test_a_value_of_the_cascade_is_got_in_a_cycle_once_it_was_put(put: int, get: int, waits: int):
    report = replayed([], ("core", [work(put), ("put",)]), ("core", [work(get), ("get", 1)]))
    assert report.cycles == 31
    assert of(report, "core 2").stalled.get("cascade in", 0) == waits


def test_the_most_that_a_core_can_do_is_that_of_bytes_unless_it_is_told():
    """AIE2P multiplies 8 x 8 x 8 bytes in a cycle."""
    assert replayed([], ("core", [work(40)])).peak_macs_per_cycle == 512
