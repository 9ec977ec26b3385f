"""Time of a composition: what is written ahead hides behind the rounds of the step before that still run then."""

from types import SimpleNamespace
from typing import Any

import pytest

from bd_patterns import Pattern
from bdforge.design.sequences.interpret import Await, Event, NumberedBd, Reconfigure, Start, StartedTask
from bdforge.devices import device_named, mlir_device_named
from bdforge.devices.timing import timing_of
from bdforge.devices.txn_format.operations import BlockWrite, Write
from bdforge.operators import ComposedPlan, Problem, plan, spec_from
from bdforge.perf.bounds import composition_time
from bdforge.perf.bounds.composition_time import change_us, list_us, step_times
from bdforge.perf.bounds.early_time import held_bytes, shortened_us
from bdforge.perf.composed_run import EmulatedStep, emulated_steps, step_spans

TIMING = timing_of("strix_halo")
WRITES = tuple(Write(4 * i, 0) for i in range(1000))  # 86 us
CHANGES = (WRITES, WRITES[:100], (BlockWrite(0, (0,) * 800),))


def rounds(count: int, in_flight: int) -> list[Event]:
    """A step of so many rounds, of which `in_flight` run at a time."""
    events: list[Event] = []
    for number in range(count):
        if number >= in_flight:
            events.append(Await(number - in_flight, ()))
        events.append(Start(number, ()))
    return events


def ended(count: int, in_flight: int) -> list[Event]:
    return [Await(number, ()) for number in range(max(0, count - in_flight), count)]


def test_a_change_takes_what_its_operations_take():
    assert change_us(WRITES, TIMING) == pytest.approx(86)
    assert change_us(CHANGES[2], TIMING) == pytest.approx(0.086 + 800 * 0.014 / 8)


@pytest.mark.parametrize(("commands", "us"), [(1, 150), (24, 150 + 23 * 14.5), (30, 2 * 150 + 28 * 14.5)])
def test_a_list_takes_a_dispatch_for_each_24_commands_and_less_for_the_others(commands: int, us: float):
    assert list_us(commands, TIMING) == pytest.approx(us)


@pytest.mark.parametrize(
    ("count", "in_flight", "step_us", "seen_us"),
    [  # all rounds run at once; the last quarter does; a step too short to hide any; one round
        (3, 4, 200.0, 0.0), (16, 4, 200.0, 86.0 - 50.0), (16, 4, 0.0, 86.0), (1, 1, 40.0, 46.0),
    ],
)  # fmt: skip
def test_what_is_written_ahead_hides(
    monkeypatch: pytest.MonkeyPatch, count: int, in_flight: int, step_us: float, seen_us: float
):
    events = [
        Reconfigure(None), Start(-1, ()), *rounds(count, in_flight), Reconfigure(0, ahead=True),
        *ended(count, in_flight), Reconfigure(1), *rounds(2, 2), *ended(2, 2), Reconfigure(2), Start(-1, ()),
    ]  # fmt: skip
    steps = [(name, SimpleNamespace(spec=SimpleNamespace(name=name)), Problem("rows", {}), {}) for name in "ab"]
    plan: Any = SimpleNamespace(steps=lambda _: steps)
    sequence: Any = SimpleNamespace(events=events, configurations=CHANGES)
    monkeypatch.setattr(composition_time, "_alone", lambda *_: (step_us, "compute"))
    found = [*step_times(plan, Problem("composition", {}), sequence, TIMING)]
    assert [step.name for step in found] == ["a", "b", "back to the first"]
    assert [step.us for step in found] == [step_us, step_us, 0.0]
    assert [step.change_us for step in found] == pytest.approx([0.0, 8.6 + seen_us, change_us(CHANGES[2], TIMING)])


@pytest.mark.parametrize(
    ("before_us", "early", "late", "left_us"),
    [
        (50.0, {(0, 1): 1 << 20}, {}, 100 - 49_152 / 55_500),  # as much as tiles hold
        (50.0, {(0, 1): 1_000, (1, 1): 2_000}, {}, 100 - 3_000 / 55_500),  # all that there is
        (0.5, {(0, 1): 1 << 20}, {}, 99.5),  # as long as the step before runs
        (50.0, {(0, 1): 1 << 20}, {(0, 1): 1_000}, 100 - 49_152 / 55_500),
        (50.0, {(0, 1): 1 << 20}, {(7, 1): 2 << 20}, 100.0),  # one channel of 2 MiB takes longer than that
        (50.0, {}, {}, 100.0),
    ],
)
def test_what_flows_early_saves_its_time(before_us: float, early: dict, late: dict, left_us: float):
    held = {(0, 1): 49_152, (1, 1): 49_152}
    assert shortened_us(100.0, before_us, early, late, held, TIMING) == pytest.approx(left_us)


def test_tiles_hold_what_their_buffers_do():
    """Of W a memtile's four tiles of 16 x 32 int2 and the core's five; of A two of 16 in the memtile, two of 8 x 16 in
    cores."""
    spec = spec_from({
        "kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "int32"}, "tile": {"m": 1, "k": 16, "n": 32},
        "buffers": {"w": 5, "w_memtile": 4}, "array": {"rows": 1, "columns": 2, "channels": 1},
        "problems": [{"M": 1, "K": 16, "N": 64}],
    }, "held")  # fmt: skip
    found = held_bytes(plan(spec, device_named("strix_halo")).design)
    assert found == {(0, 0): 2 * 16 + 2 * 8 * 16, (0, 1): 9 * 128, (1, 1): 9 * 128}


def test_what_started_behind_an_earlier_step_came_since_its_last_word(monkeypatch: pytest.MonkeyPatch):
    """The third step's 2^24 bytes started before the second; tiles hold 49,152, or more than come in that time."""
    task = StartedTask("MM2S", 1, 0, 1, False, (NumberedBd(0, Pattern((1 << 24,), (1,)), 0),))
    one: list[Event] = [*rounds(1, 1), *ended(1, 1)]
    events = [Reconfigure(None), *one, Start(-2, (task,)), Reconfigure(0), *one, Reconfigure(None), *one]
    steps = [
        (name, SimpleNamespace(spec=SimpleNamespace(name=name), design=None), Problem("rows", {}), {}) for name in "abc"
    ]
    plan: Any = SimpleNamespace(steps=lambda _: steps)
    arguments = [SimpleNamespace(bits=8)]
    sequence: Any = SimpleNamespace(
        events=events, configurations=CHANGES, program=SimpleNamespace(arguments=arguments), wide=False,
        device=mlir_device_named("npu2"),
    )  # fmt: skip
    alone = {"a": 100.0, "b": 100.0, "c": 1000.0}
    monkeypatch.setattr(composition_time, "_alone", lambda one, *_: (alone[one.spec.name], "compute"))
    for held, saved in ((49_152, 49_152 / 55_500), (1 << 30, 100 + 86 + TIMING.controller_sync_ns / 1e3)):
        monkeypatch.setattr(composition_time, "held_bytes", lambda _, held=held: {(0, 1): held})
        found = [*step_times(plan, Problem("composition", {}), sequence, TIMING)]
        assert found[2].us == pytest.approx(1000 - saved)


def test_emulated_steps_last_from_their_change_to_the_next_one():
    """Three operations before the second step, of which two change the array, one behind it; then a change back."""
    steps = [(name, SimpleNamespace(spec=SimpleNamespace(name=name.upper())), None, None) for name in "ab"]
    composed: Any = Composed(steps)
    sequence: Any = SimpleNamespace(step_starts=lambda: [(0, 0), (3, 5), (6, 7)])
    report: Any = SimpleNamespace(operations=(0.0, 1.0, 2.0, 10.0, 11.0, 13.0, 30.0), cycles=32.0)
    found = emulated_steps(composed, Problem("rows", {}), sequence, report)
    assert found == (
        EmulatedStep("a", "A", 0.0, 0.0, 10.0), EmulatedStep("b", "B", 10.0, 13.0, 30.0),
        EmulatedStep("back to the first", "", 30.0, 32.0, 32.0),
    )  # fmt: skip
    spans = [(span.what, span.start, span.end) for span in step_spans(found)]
    assert spans == [
        ("a", 0.0, 10.0),
        ("change to B", 10.0, 13.0),
        ("b", 13.0, 30.0),
        ("back to the first", 30.0, 32.0),
    ]
    assert emulated_steps(SimpleNamespace(), Problem("rows", {}), sequence, report) == ()  # type: ignore[arg-type]


class Composed(ComposedPlan):
    """Of which only the steps are known."""

    def __init__(self, steps: list[Any]) -> None:
        object.__setattr__(self, "steps", lambda _: steps)
