"""Timed parties by themselves: the way between tiles, short waits for a lock, and what a report divides by what."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.emulator.timed.control import operation_ns
from bdforge.emulator.timed.links import Links
from bdforge.emulator.timed.locks import Locks
from bdforge.emulator.timed.report import DramTime, PartyTime, TimingReport
from bdforge.emulator.timed.runner import Clock
from bdforge.emulator.timed.tasks import Tasks
from support.timed_designs import FREE


@pytest.mark.parametrize(
    ("start", "end", "cycles"),
    [((0, 2), (0, 2), 3), ((0, 0), (0, 1), 4 + 3), ((0, 0), (3, 0), 12 + 3), ((4, 5), (2, 2), 20 + 3)],
)
def test_a_way_crosses_every_switch_of_columns_and_rows(start: tuple, end: tuple, cycles: int):
    links: Any = SimpleNamespace(_timing=replace(FREE, switch_cycles=4, switch_local_cycles=3))
    source, sink = (SimpleNamespace(party=SimpleNamespace(place=place)) for place in (start, end))
    assert Links._delay(links, source, sink) == cycles  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "direction", "first", "cycles"),
    [
        ("shim", "MM2S", True, 2 * 1000), ("shim", "MM2S", False, 2 * 300), ("shim", "S2MM", True, 2 * 900),
        ("shim", "S2MM", False, 2 * 50), ("memtile", "MM2S", True, 13), ("memtile", "S2MM", False, 13),
        ("core", "S2MM", True, 13),
    ],
)  # fmt: skip
def test_a_task_begins_a_latency_after_its_push(kind: str, direction: str, first: bool, cycles: int):
    timing = replace(
        FREE, array_hz=2e9, task_start_cycles=13, shim_mm2s_first_ns=1000, shim_mm2s_later_ns=300,
        shim_s2mm_first_ns=900, shim_s2mm_later_ns=50,
    )  # fmt: skip
    tasks, party = SimpleNamespace(_timing=timing), SimpleNamespace(tile_kind=kind, direction=direction)
    runner: Any = SimpleNamespace(party=party)
    assert Tasks._latency(tasks, runner, first=first) == pytest.approx(cycles)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "words", "ns"),
    [
        ("Write", 1, 40), ("MaskWrite", 1, 100), ("BlockWrite", 8, 100), ("BlockWrite", 1, 40 + 60 / 8),
        ("BlockWrite", 16, 40 + 120), ("Patch", 1, 250 - 100 - 40), ("LoadPdi", 1, 5000), ("Sync", 1, 0),
        ("MaskPoll", 1, 0), ("Noop", 1, 0),
    ],
)  # fmt: skip
def test_an_operation_of_the_controller_takes_its_time(kind: str, words: int, ns: float):
    timing = replace(
        FREE, controller_write_ns=40, controller_bd_ns=100, controller_transfer_ns=250, reconfiguration_ns=5000
    )
    assert operation_ns(timing, kind, words) == pytest.approx(ns)
    assert operation_ns(replace(timing, controller_transfer_ns=99), "Patch", 1) == 0


class Core:
    """A runner that notes when it goes on."""

    issues = False

    def __init__(self, clock: Clock, is_core: bool = True):
        self.clock, self.is_core = clock, is_core
        self.went_on: list[float] = []
        self.blocked: tuple[str, float] | None = None

    def block(self, reason: str) -> bool:
        self.blocked = reason, self.clock.now
        return False

    def unblock(self, at: float | None = None) -> None:
        self.blocked = None

    def advance_at(self, time: float) -> None:
        self.went_on.append(time)

    def spend(self, *_: object) -> None: ...

    def show(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("release", "is_core", "goes_on"),
    [(100, True, 105), (10, True, 15), (8, True, 13), (3, True, 13), (3, False, 10), (100, False, 107)],
)
def test_a_wait_ends_after_its_release_and_not_before_its_own_operation(release: int, is_core: bool, goes_on: float):
    """An acquire takes 13 cycles, a core resumes 5 after a release, a channel 7."""
    clock = Clock(0.0)
    timing = replace(FREE, core_lock_cycles=13, done_to_resume_cycles=5, memtile_turn_cycles=7)
    locks, waiter = Locks(["gate (0, 2)"], clock, timing), Core(clock, is_core)
    assert not locks.verbs["acquire"](waiter, 0, 1, False)  # type: ignore[arg-type]
    clock.at(float(release), locks.verbs["set"], waiter, 0, 1)
    clock.run()
    assert waiter.went_on == [goes_on]


def party(busy: dict[str, float], stalled: dict[str, float]) -> PartyTime:
    return PartyTime("core", "core", (0, 2), "core", "", busy, stalled)


def report(**changes: Any) -> TimingReport:
    cores = (party({"mm": 60.0, "calls": 20.0}, {"no data": 20.0}), party({}, {"no data": 100.0}))
    dram = DramTime(10, 20, 0.1, 0.2, 0.3, 0.4)
    facts: dict[str, Any] = {"macs": 6000, "peak_macs_per_cycle": 100} | changes
    return TimingReport(100.0, 1e6, 3.0, 2.0, cores, (), party({}, {}), dram, **facts)


def test_a_report_divides_by_the_cores_that_worked():
    found = report()
    assert found.utilisation == 6000 / (1 * 100 * 100)
    assert found.core_share("mm") == pytest.approx(60 / 200)
    assert found.core_share("no data") == pytest.approx(120 / 200)
    assert found.cores[0].busy_cycles == 80
    assert (report(macs=None).utilisation, report(peak_macs_per_cycle=0).utilisation) == (None, None)


def test_a_report_s_times_and_speeds():
    found = report()
    assert (found.array_seconds, found.seconds) == pytest.approx((100 / 1e6 + 2, 100 / 1e6 + 5))
    assert found.array_tops == pytest.approx(2 * 6000 / (2 + 1e-4) / 1e12)
    assert found.tops == pytest.approx(2 * 6000 / (5 + 1e-4) / 1e12)
    assert (report(macs=None).tops, report(macs=None).array_tops) == (None, None)
    assert found.dram.utilisation == 0.4
    assert replace(found.dram, write_utilisation=0.9).utilisation == 0.9
