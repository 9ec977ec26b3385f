"""Sequences of no operator for given sizes: bytes that move, words, forms of waiting."""

from contextlib import nullcontext

import pytest

from bd_patterns import Pattern
from bdforge.design.sequences import Builder, Expr, ProgramError, SequenceOptions, Start, WalkError, planned
from bdforge.design.sequences.expressions import expression
from bdforge.design.sequences.planned import contiguous
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Patch, Sync, Write
from support.differences import same
from support.named import fields_of, rows
from support.scaled_rows import DEVICE, sequence


def test_sizes_and_bytes_follow_from_the_parameters():
    plan = sequence()
    names = "shape elements argument_bytes"
    assert fields_of([plan], names) == rows(names, ("6x8", [48, 64, 8, 8], [48, 64, 32, 32]))
    assert plan.parameters == {"m": 6, "n": 8, "ldb": 0}
    # A once; of B 8 lines of 4 bytes three times; two halves of Y. The busiest channel reads B, 4 bytes at a time.
    traffic = plan.traffic()
    names = "read_bytes write_bytes channel_bytes run_bytes"
    assert fields_of([traffic], names) == rows(names, (48 + 3 * 32, 32, 96, 4))
    assert [task.runs for task in plan.tasks()] == [1, 3, 1, 1]


@pytest.mark.parametrize(
    ("sizes", "strides", "elements"),
    [
        ((4,), (1,), 4), ((4,), (2,), 1), ((3, 4), (4, 1), 12), ((3, 4), (8, 1), 4), ((3, 1, 4), (4, 9, 1), 12),
        ((5, 3, 4), (12, 4, 1), 60), ((2, 5, 3, 4), (60, 12, 4, 1), 60), ((3, 1), (1, 7), 3), ((1, 1), (0, 0), 1),
    ],
)  # fmt: skip
def test_elements_that_follow_one_another_are_those_of_one_run(sizes, strides, elements):
    assert contiguous(Pattern(sizes, strides)) == elements


def test_one_wait_is_for_every_column_or_for_all():
    each, wide = sequence().operations(), sequence(SequenceOptions("wide")).operations()
    names = "direction channel column row columns rows"
    waits = [fields_of((op for op in found if isinstance(op, Sync)), names) for found in (each, wide)]
    assert waits == [rows(names, (0, 1, 0, 0, 1, 1), (0, 1, 1, 0, 1, 1)), rows(names, (0, 1, 0, 0, 2, 1))]


@pytest.mark.parametrize("ways", ["loop", "two", "loop, one at a time", "loop, first turn", "one", "loop within"])
def test_parameters_are_not_written_again_while_steps_are_in_flight(ways: str):
    """A second 1 to the lock is no second one to take: a core that is late would wait for ever."""
    build = Builder(["n"], in_flight_max=1 if "one at a time" in ways else 4)
    n = build.parameter("n")

    def step(turn: Expr | int = 0) -> None:
        first = build.when(expression(turn).equals(0)) if "first" in ways else nullcontext()
        with build.step(), first, build.loop(n) if "within" in ways else nullcontext():
            build.set_parameters(0x100, {0: turn}, 0x200)

    refused = pytest.raises(ProgramError, match=r"lock 0x200 are written again .* up to 4 are in flight")
    with refused if ways in ("loop", "two") else nullcontext():
        if ways.startswith("loop,") or ways == "loop":
            with build.loop(n) as turn:
                step(turn)
        else:
            for _ in range(2 if ways == "two" else 1):
                step()


def test_an_offset_beyond_4_gib_fills_both_address_words():
    build = Builder([], 1)
    x = build.argument("X", "i32", 32, 1 << 40)
    with build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, build.bd(x, (5 << 30) // 4 + 3, (4,), (1,)), token=True)
    operations = planned(build.program, {}, DEVICE).operations()
    (block,) = (op for op in operations if isinstance(op, BlockWrite))
    (patch,) = (op for op in operations if isinstance(op, Patch))
    assert len(block.words) == 8
    address = {"length": block.words[0], "low": block.words[1], "high": block.words[2] & 0xFFFF}
    assert address == {"length": 4, "low": (1 << 30) + 12, "high": 1}
    assert patch.plus == (5 << 30) + 12


def test_a_chain_becomes_its_bds_their_patches_its_token_and_one_push():
    """BDs 0 and 1 of column 2, 32 bytes apart; the first names the next (bits 27 to 30 and 26 of its last word). The
    push: the first BD, one run less than three, and a token."""
    build = Builder([], 1)
    x, y = build.argument("X", "i32", 32, 64), build.argument("Y", "i16", 16, 64)
    with build.step([("S2MM", 1, 2, 1), ("MM2S", 0, 1, 2)]):
        chain = [build.bd(x, 5, (8,), (1,)), build.bd(y, 6, (3, 4), (8, 1))]
        build.task("S2MM", 1, 2, *chain, runs=3, token=True)
        build.task("MM2S", 0, 2, build.bd(x, 0, (2,), (1,)))
    column = 2 << 25
    first, patch_x, second, patch_y, token, push, third, patch, plain, *waits = planned(
        build.program, {}, DEVICE
    ).operations()
    assert [op.address - column for op in (first, second, third)] == [0x1D000, 0x1D020, 0x1D040]  # type: ignore[union-attr]
    assert [op.words[0] for op in (first, second, third)] == [8, 6, 2], "words"  # type: ignore[union-attr]
    links = [op.words[7] >> 26 for op in (first, second, third)]  # type: ignore[union-attr]
    assert links == [1 << 1 | 1, 0, 0], "the next BD, and whether there is one"
    assert (patch_x, patch_y, patch) == (
        Patch(column + 0x1D004, 0, 20), Patch(column + 0x1D024, 1, 12), Patch(column + 0x1D044, 0, 0),
    )  # fmt: skip
    assert token == MaskWrite(column + 0x1D208, 0xF00, 0x1F00)
    assert (push, plain) == (Write(column + 0x1D20C, 1 << 31 | 2 << 16), Write(column + 0x1D214, 2))
    assert waits == [Sync(0, 0, 2, 1, 1, 1), Sync(1, 0, 1, 1, 1, 0), Sync(1, 0, 2, 1, 1, 0)]


def test_bds_of_one_shape_are_judged_by_where_they_begin_in_a_word():
    build = Builder([], 1)
    x = build.argument("X", "i8", 8, 64)
    with build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, *(build.bd(x, offset, (4,), (1,)) for offset in (0, 4)), token=True)
    assert len(planned(build.program, {}, DEVICE).words())
    with build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, build.bd(x, 6, (4,), (1,)), token=True)
    with pytest.raises(WalkError, match=r"^cannot be walked:\n  - X: [^\n]*6[^\n]*$"):
        planned(build.program, {}, DEVICE)


@pytest.mark.parametrize(
    ("wait", "in_flight", "steps"), [
        ("column", 0, 4), ("column", 4, 4), ("column", 1, 1), ("wide", 0, 1), ("wide", 1, 1),
    ],
)  # fmt: skip
def test_forms_of_waiting_say_how_many_steps(wait, in_flight, steps):
    options = SequenceOptions(wait, in_flight)
    assert (options.steps, options.wide) == (steps, wait == "wide")


@pytest.mark.parametrize(
    ("options", "wide", "most"),
    [
        (None, False, 3), (SequenceOptions(), False, 4), (SequenceOptions("column", 2), False, 2),
        (SequenceOptions("wide"), True, 1),
    ],
)  # fmt: skip
def test_a_plan_waits_as_its_options_say_or_as_the_program_does(options, wide: bool, most: int):
    build = Builder([], 3)
    x = build.argument("X", "i32", 32, 64)
    with build.loop(9), build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, build.bd(x, 0, (4,), (1,)), token=True)
    plan, running = planned(build.program, {}, DEVICE, options), [0]
    for event in plan.events:
        running.append(running[-1] + (1 if isinstance(event, Start) else -1))
    assert (plan.wide, max(running)) == (wide, most), "wide waits, and steps at a time"


def test_options_that_are_left_out_take_the_usual():
    assert SequenceOptions.given(None, None) is None
    assert SequenceOptions.given("wide", None) == SequenceOptions("wide", 0)
    assert SequenceOptions.given(None, 2) == SequenceOptions("column", 2)


def test_values_of_two_loops_are_computed_in_the_inner_one():
    build = Builder([], 1)
    with build.loop(2) as i, build.when(i + 1), build.loop(3) as j:
        build.write(10 * i + j, j + 10 * i)
    events = planned(build.program, {}, DEVICE).events
    values = [event.items[0].values[0] for event in events]  # type: ignore[union-attr]
    same(values, [0, 1, 2, 10, 11, 12], "values written")


def test_parameters_stand_in_the_programs_order_whatever_their_hashes():
    leading = [f"ld{letter}" for letter in "hgfedcba"]
    build = Builder([*leading, "n"])
    n = build.parameter("n")
    build.operand("X", build.argument("X", "i32", 32, n), "in", "int32", 32, [(n, n, None, False)])
    assert [*planned(build.program, {"n": 4}, DEVICE).parameters] == [*leading, "n"]
