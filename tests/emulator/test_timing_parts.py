"""Timed parties by themselves: the way between tiles, short waits for a lock, and what a report divides by what."""

from dataclasses import replace
from typing import Any

import pytest
from rich.table import Table

from bdforge.array.emulator.timed.bank_conflicts import DMA, NEIGHBOURS, Banks, Conflicts
from bdforge.array.emulator.timed.controller_time import operation_ns
from bdforge.array.emulator.timed.time_report import DramTime, PartyTime, TimingReport
from bdforge.array.emulator.timed.time_tables import (
    bank_table,
    channel_table,
    controller_table,
    core_table,
    summary_table,
    tables,
)
from bdforge.array.emulator.timed.timed_run import Clock, TimedParty
from bdforge.array.emulator.trace import Party
from support.timed_designs import FREE


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


def cells(table: Table) -> list[tuple[str, ...]]:
    """A table's rows."""
    return list(zip(*(map(str, column.cells) for column in table.columns), strict=True))


def test_cores_are_told_by_their_mean_the_least_and_the_most():
    """Of two cores in 100 cycles; what takes less than 0.05 % is left out, and roles of locks are taken together."""
    first = party({"mm": 60.0, "seldom": 0.1, "never": 0.09}, {"lock a_0_2_full": 10.0, "lock a_0_3_full": 5.0})
    second = party({"mm": 20.0}, {"DRAM": 50.0, "lock a_1_2_full": 5.0})
    found = replace(report(), cores=(first, second))
    assert cells(core_table(found)) == [
        ("mm", "40.0 %", "20.0 %", "60.0 %"), ("seldom", "0.1 %", "0.0 %", "0.1 %"),
        ("waits for DRAM", "25.0 %", "0.0 %", "50.0 %"), ("waits for lock a_full", "10.0 %", "5.0 %", "15.0 %"),
    ]  # fmt: skip


def test_conflicts_are_told_by_cause_of_the_cores_that_have_them():
    one = {"DMA": Conflicts(10, 20), "neighbours": Conflicts(1, 2)}
    cores = (replace(party({}, {}), conflicts=one), replace(party({}, {}), conflicts={"DMA": Conflicts(30, 50)}))
    found = replace(report(), cores=(*cores, party({}, {})))
    assert cells(bank_table(found)) == [("DMA", "20", "35"), ("neighbours", "1", "2")]


def channel(kind: str, column: int, name: str, busy: dict[str, float], stalled: dict[str, float]) -> PartyTime:
    return PartyTime(f"{kind} ({column}, 1) {name}", "channel", (column, 1), kind, name[:4], busy, stalled)


def test_channels_of_one_kind_and_number_share_a_row():
    spent = {"no data": 10.0, "back-pressure": 20.0, "lock x": 5.0, "lock y": 5.0, "no task": 30.0, "task start": 2.0}
    channels = (
        channel("memtile", 0, "S2MM 0", {"transfer": 28.0}, spent | {"DRAM": 8.0}),
        channel("memtile", 1, "S2MM 0", {}, {}), channel("memtile", 1, "MM2S 0", {"transfer": 100.0}, {}),
        channel("shim", 1, "S2MM 0", {}, {"DRAM": 50.0}),
    )  # fmt: skip
    assert cells(channel_table(replace(report(), channels=channels))) == [
        ("memtile MM2S 0", "1", "100.0 %", "0.0 %", "0.0 %", "0.0 %", "0.0 %", "0.0 %"),
        ("memtile S2MM 0", "2", "14.0 %", "4.0 %", "15.0 %", "5.0 %", "15.0 %", "1.0 %"),
        ("shim S2MM 0", "1", "0.0 %", "50.0 %", "0.0 %", "0.0 %", "0.0 %", "0.0 %"),
    ]


def test_the_controller_is_told_in_microseconds_and_shares():
    waits = {"token of shim (0, 0) MM2S 0": 30.0, "token of shim (1, 0) S2MM 0": 10.0, "lock ml": 4.0}
    found = replace(report(), controller=party({"Write": 20.0}, waits))
    assert cells(controller_table(found)) == [
        ("Write", "20.0", "20.0 %"), ("waits for token", "40.0", "40.0 %"), ("waits for lock ml", "4.0", "4.0 %"),
    ]  # fmt: skip


def summary(found: TimingReport) -> dict[str, str]:
    return {row[0]: row[1] for row in cells(summary_table(found, "it"))}


def test_a_summary_has_times_speeds_and_what_dram_does():
    rows = summary(report())
    assert rows == {
        "time with dispatch": "5000100.0 us", "dispatch": "3000000.0 us", "final sync": "2000000.0 us",
        "sequence": "100.0 us = 100 cycles at 0.001 GHz", "with dispatch": "0.00 TOPS", "without": "0.00 TOPS",
        "MACs of the cores' peak": "60.0 %", "DRAM read": "0.00 MB, 0.0 GB/s, 10.0 % of its rate",
        "DRAM written": "0.00 MB, 0.0 GB/s, 20.0 % of its rate", "DRAM both ways": "30.0 % of the port",
        "requests": "40.0 % of the busiest shim's",
    }  # fmt: skip
    fast = replace(
        report(macs=6 * 10**12),
        dispatch_seconds=3e-4,
        sync_seconds=1e-4,
        dram=DramTime(3 * 10**6, 5 * 10**6, *[0.0] * 4),
    )
    rows = summary(fast)
    assert (rows["with dispatch"], rows["without"]) == ("24000.00 TOPS", "60000.00 TOPS")
    assert rows["DRAM read"].startswith("3.00 MB, 30.0 GB/s")
    assert rows["DRAM written"].startswith("5.00 MB, 50.0 GB/s")
    assert "with dispatch" not in summary(report(macs=None))


def test_tables_are_shown_of_what_is_there():
    found, no_cores = report(), replace(report(), cores=())
    conflicting = replace(found, cores=(replace(party({}, {}), conflicts={"DMA": Conflicts(1, 2)}),))
    with_channels = replace(no_cores, channels=(channel("shim", 0, "S2MM 0", {}, {}),))
    assert [len(tables(one, "it")) for one in (found, no_cores, conflicting, with_channels)] == [3, 2, 4, 3]


def used(*uses: tuple[str, float, float, float]) -> dict[str, dict[str, tuple[float, float]]]:
    """Conflicts of cores for one bank, by name, from who used it, when, and how often; channels begin with d."""
    banks, runners = Banks(), dict[str, Any]()
    for name, start, end, accesses in uses:
        party = Party(len(runners), name, "channel" if name[0] == "d" else "core", 0, (0, 2))
        runner = runners.setdefault(name, TimedParty(party, Clock(0.0), {}, None))
        if runner.is_core:
            banks.ran(runner, start, end, {(0, 2, 1): int(accesses)})
            continue
        banks.touches(runner, {1: int(4 * accesses)})
        banks.moved(runner, start, end)
        banks.moved(runner, start, end)  # what was told of one transfer is not of the next
    found = {runner.party.name: causes for runner, causes in banks.conflicts().items()}
    return {name: {cause: (c.expected, c.most) for cause, c in causes.items()} for name, causes in found.items()}


SHARED_BANK = {
    "one behind the other": ([("a", 0, 10, 10), ("d", 10, 20, 10)], {}),
    "a cycle together": ([("a", 0, 10, 10), ("d", 9, 19, 5)], {"a": {DMA: (0.5, 0.5)}}),
    "in no time": ([("a", 0, 10, 10), ("d", 5, 5, 5)], {}),
    "a core twice": ([("a", 0, 10, 10), ("a", 5, 15, 10)], {}),
    "two channels": ([("d", 0, 10, 10), ("d2", 0, 10, 10)], {}),
    "two cores": ([("a", 0, 10, 5), ("b", 5, 10, 5)], {"a": {NEIGHBOURS: (2.5, 2.5)}, "b": {NEIGHBOURS: (2.5, 2.5)}}),
    "two channels in turn": ([("a", 0, 10, 5), ("d", 0, 4, 4), ("d2", 4, 8, 2)], {"a": {DMA: (3.0, 4.0)}}),
    "the longest of three": ([("d", 0, 20, 20), ("d2", 1, 2, 1), ("a", 10, 20, 5)], {"a": {DMA: (5.0, 5.0)}}),
}  # fmt: skip


@pytest.mark.parametrize(("uses", "wanted"), SHARED_BANK.values(), ids=SHARED_BANK)
def test_those_who_use_a_bank_at_one_time_may_wait(uses: list, wanted: dict):
    """Expected is the product of both rates over the time together, most the lesser rate."""
    assert used(*uses) == wanted
