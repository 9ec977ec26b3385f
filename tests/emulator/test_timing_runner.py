"""One party under time by itself: what counts from time 0 on, what was counted ahead of an end, order of calls."""

import pytest

from bdforge.array.emulator.timed.timed_run import Clock, TimedParty, TimelineSpan
from bdforge.array.emulator.trace import Party


def runner(kind: str = "channel", now: float = 0.0, *actions: tuple) -> tuple[TimedParty, list[TimelineSpan]]:
    spans: list[TimelineSpan] = []
    clock = Clock(now)
    party = Party(1, "it", kind, 0, actions=list(actions))
    return TimedParty(party, clock, {"go": lambda _: True, "wait": lambda it: it.block("gate")}, spans), spans


@pytest.mark.parametrize(
    ("start", "end", "cycles"), [(2, 7, 5), (-3, 4, 4), (0, 4, 4), (-5, -1, None), (-5, 0, None), (6, 6, None)]
)
@pytest.mark.parametrize("stalls", [False, True])
def test_cycles_count_from_time_0_on(start: float, end: float, cycles: float | None, stalls: bool):
    found, spans = runner(now=10.0)
    (found.stall if stalls else found.spend)("it", start, end)
    counted = found.stalled if stalls else found.busy
    assert counted == ({} if cycles is None else {"it": cycles})
    assert [(span.start, span.end, span.waits) for span in spans] == (
        [(max(start, 0), end, True)] if stalls and cycles is not None else []
    )


@pytest.mark.parametrize(
    ("start", "end", "shown"), [(-2, -1, []), (-2, 0, [(0, 0)]), (3, 3, [(3, 3)]), (1, 4, [(1, 4)])]
)
def test_a_timeline_begins_at_0_and_has_moments(start: float, end: float, shown: list[tuple[float, float]]):
    found, spans = runner()
    found.show("it", start, end)
    assert [(span.start, span.end) for span in spans] == shown


def test_what_was_counted_ahead_ends_with_the_run():
    found, _ = runner()
    found.spend("short", 0, 4)
    found.spend("long", 4, 30)
    found.stall("later", 30, 50, visible=False)
    found.close(20)
    assert (found.busy, found.stalled) == ({"short": 4, "long": 16}, {"later": 0})


@pytest.mark.parametrize(("kind", "reason"), [("channel", "no task"), ("core", "ended"), ("control port", "ended")])
def test_a_party_that_has_done_all_is_idle_until_the_end(kind: str, reason: str):
    found, spans = runner(kind, 3.0, ("go",), ("go",))
    assert not found.ended
    found.advance()
    assert found.ended
    found.close(10)
    assert (found.stalled, spans) == ({reason: 7}, [])


def test_a_wait_that_never_ends_counts_to_the_end():
    found, spans = runner("core", 3.0, ("go",), ("wait",), ("go",))
    found.advance()
    assert (found.blocked, found.ended) == (("gate", 3.0), False)
    found.close(10)
    assert found.stalled == {"gate": 7}
    assert [(span.what, span.start, span.end) for span in spans] == [("gate", 3, 10)]


@pytest.mark.parametrize(("until", "cycles"), [(None, 5), (12.0, 9)])
def test_a_wait_ends_now_or_when_it_is_told(until: float | None, cycles: float):
    found, _ = runner("core", 3.0, ("wait",), ("go",))
    found.advance()
    found.clock.now = 8.0
    found.unblock(until)
    assert (found.blocked, found.stalled) == (None, {"gate": cycles})
    found.advance()
    assert found.ended


def test_calls_at_one_time_run_as_they_were_asked_for():
    clock, made = Clock(0.0), []
    for time, name in ((2.0, "c"), (1.0, "a"), (2.0, "d"), (1.0, "b")):
        clock.at(time, lambda name=name: made.append((clock.now, name)))
    clock.at(1.0, clock.at, 1.5, lambda: made.append((clock.now, "between")))
    clock.run()
    assert made == [(1.0, "a"), (1.0, "b"), (1.5, "between"), (2.0, "c"), (2.0, "d")]


def test_a_reset_goes_on_behind_its_mark_and_drops_what_was_under_way():
    found, _ = runner("channel", 0.0, ("wait",), ("go",), ("was reset",), ("wait",), ("go",))
    found.advance()
    found.advance_at(5.0)  # of before the reset: has no effect
    found.reset()
    assert found.blocked is None
    found.clock.run()
    assert (found.blocked, found._next) == (("gate", 0.0), 4)
