"""Sequence programs of no operator: what they tell the controller, what is refused."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bdforge.design.sequences import (
    Builder,
    Expr,
    Program,
    ProgramError,
    Start,
    StartedTask,
    Stored,
    evaluate,
    interpret,
    select,
)
from bdforge.design.sequences.builder import register_words
from bdforge.design.sequences.instruction_words import illegal, operations, target_facts
from bdforge.design.sequences.interpret import values_of
from bdforge.design.sequences.program_check import load_program
from bdforge.design.sequences.sequence_program import loops_of
from bdforge.devices import AIE2P, TileKind, mlir_device_named
from bdforge.devices.registers import TILE_REGISTERS
from bdforge.devices.txn_format.operations import BlockWrite, Patch, Sync, Write
from support.differences import same
from support.named import fields_of, rows

SHIM = AIE2P.limits(TileKind.SHIM)
SYNC, PATTERN = "direction channel column row columns rows", "sizes strides offset"


def copy_program(in_flight: int = 2, token: bool = True) -> Program:
    """X to Y in pieces of 1024 words, the last one shorter, over two columns in turn."""
    build = Builder(["n"], in_flight)
    n = build.parameter("n")
    build.require(n > 0, "n = {} is below 1", n)
    x, y = build.argument("X", "i32", 32, n), build.argument("Y", "i8", 8, 4 * n, "bytes")
    pieces = (n + 1023) // 1024
    with build.loop(pieces) as i:
        column, length = i % 2, select(i.equals(pieces - 1), n - 1024 * i, 1024)
        awaits = [("S2MM", 0, column, 1)] if token else []
        with build.step(awaits, "piece {}", [i]):
            build.task("MM2S", 1, column, build.bd(x, 1024 * i, (length,), (1,)))
            with build.when(i.equals(0)):
                build.write(0x200400, n)
            build.task("S2MM", 0, column, build.bd(y, 4096 * i, (4 * length,), (1,)), token=token)
    return build.program


def told(program: Program, n: int, **options) -> list:
    return list(interpret(program, {"n": n}, SHIM, **options))


def test_a_program_tells_steps_tasks_and_waits():
    events = told(copy_program(), 2500)
    assert [(type(e).__name__, e.index) for e in events] == [
        ("Start", 0), ("Start", 1), ("Await", 0), ("Start", 2), ("Await", 1), ("Await", 2),
    ]  # fmt: skip
    first, last = events[0], events[3]
    assert isinstance(first, Start)
    assert first.note == "piece 0"
    assert [type(item) for item in first.items] == [StartedTask, Stored, StartedTask]
    assert first.items[1] == Stored(0x200400, (2500,))
    read, write = (item for item in last.items if isinstance(item, StartedTask))
    task = "direction column channel runs token"
    assert fields_of((read, write), task) == rows(task, ("MM2S", 0, 1, 1, False), ("S2MM", 0, 0, 1, True))
    bds = [bd for item in (read, write) for bd in item.bds]
    assert fields_of(bds, "argument bd_id") == rows("argument bd_id", (0, 2), (1, 3))
    assert [str(bd.pattern) for bd in bds] == ["(452):(1)+2048", "(1808):(1)+8192"]
    values = values_of(copy_program(), {"n": 2500})
    assert [values[argument.elements] for argument in copy_program().arguments] == [2500, 10000]


def test_words_name_argument_offset_and_column():
    events, bits = told(copy_program(), 2500), [32, 8]
    stream = list(operations(events, bits, AIE2P, wide=False))
    patches = [op for op in stream if isinstance(op, Patch)]
    same([op.register >> 25 for op in patches], [0, 0, 1, 1, 0, 0], "columns of patches")
    assert fields_of(patches, "argument plus") == rows(
        "argument plus", (0, 0), (1, 0), (0, 4096), (1, 4096), (0, 8192), (1, 8192)
    )
    lengths = [op.words[0] for op in stream if isinstance(op, BlockWrite)]
    same(lengths, [1024, 1024, 1024, 1024, 452, 452], "words of BDs")
    syncs = fields_of((op for op in stream if isinstance(op, Sync)), SYNC)
    assert syncs == rows(SYNC, *((0, 0, column, 0, 1, 1) for column in (0, 1, 0)))
    assert Write(0x200400, 2500) in stream


def test_a_program_survives_json():
    program = copy_program()
    content = json.loads(json.dumps(program.model_dump(exclude_none=True)))
    assert load_program(content) == program


def test_bds_are_free_only_after_tokens():
    with pytest.raises(ProgramError, match="step 0 awaits no token; nothing says when its BDs are free"):
        told(copy_program(in_flight=1, token=False), 2500)
    assert len(told(copy_program(in_flight=1, token=False), 1000)) == 2


def steps(times: int, bds: int, *in_flight: int) -> Program:
    """So many steps of a task of so many BDs."""
    build = Builder([], *in_flight)
    x = build.argument("X", "i32", 32, 64)
    with build.loop(times), build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, *(build.bd(x, i, (1,), (1,)) for i in range(bds)), token=True)
    return build.program


def most_running(program: Program, asked: int | None = None) -> int:
    running = [0]
    for event in interpret(program, {}, SHIM, asked):
        running.append(running[-1] + (1 if isinstance(event, Start) else -1))
    return max(running)


def test_bds_are_taken_from_a_ring_of_all_that_a_shim_has():
    """Steps of 3, one at a time: numbers go on where the last step ended, and round."""
    starts = [event for event in interpret(steps(12, 3, 1), {}, SHIM) if isinstance(event, Start)]
    taken = [bd.bd_id for start in starts for item in start.items for bd in getattr(item, "bds", ())]
    same(taken, [i % 16 for i in range(36)], "numbers of BDs")


def test_steps_wait_until_their_bds_are_free_again():
    """Of 16 BDs three steps of 5 hold 15, though four steps may be in flight."""
    assert most_running(steps(9, 5, 4)) == 3


def test_parameters_are_those_of_the_program():
    with pytest.raises(ProgramError, match="the program has the parameters n; check M, n"):
        list(interpret(copy_program(), {"M": 1}, SHIM))


def test_bds_that_a_shim_cannot_hold_are_listed():
    build = Builder([], 1)
    x = build.argument("X", "i32", 32, 1 << 22)
    with build.step():
        build.task("MM2S", 0, 0, build.bd(x, 0, (2, 2000), (1 << 21, 1)))
    program = build.program
    (first, second) = illegal(program, interpret(program, {}, SHIM), mlir_device_named("npu2"))
    assert first.startswith("X: size 2000 elements = 2000 granules in dimension 1 (d0) exceeds the 1023")
    assert second.startswith("X: stride 2097152")


def faulty(change) -> dict:
    content = json.loads(json.dumps(copy_program().model_dump(exclude_none=True)))
    change(content)
    return content


def _value(entry):
    return lambda content: content["values"].append(entry)


def _of_itself(content):
    content["values"].append(["add", 0, len(content["values"])])


def _task(**changes):
    return lambda content: content["do"][0]["do"][0]["do"][0].update(changes)


def _outside(content):
    content["do"].append(content["do"][0]["do"][0])


def _bd(**changes):
    return lambda content: content["do"][0]["do"][0]["do"][0]["bds"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_value(["pow", 0, 1]), "is no operation; there are add, sub"),
        (_value(["add", 0]), "has 1 operands, add takes 2"),
        (_value(["add", 0, 5000]), "names a value that does not stand before it"),
        (_value(["add", -1, 0]), "names a value that does not stand before it"),
        (_of_itself, "names a value that does not stand before it"),
        (_value("m"), "is no parameter; there are n"),
        (_value(["index", 7]), "is the counter of no loop"),
        (_value(["index"]), "is the counter of no loop"),
        (_value(["index", 0, 0]), "is the counter of no loop"),
        (_value([]), "is no operation"),
        (_value(1 << 63), "needs more than 64 bits"),
        (_value(1.5), "sequence program: values"),
        (_task(extra=1), "extra inputs are not permitted"),
        (_bd(argument=2), "a BD's argument is 2; there are 2"),
        (_bd(sizes=[0, 0]), "a BD has 2 sizes and 1 strides"),
        (_outside, "outside of it"),
        (lambda c: c["do"].append(c["do"][0]), "loop 0 stands twice"),
        (lambda c: c["do"].append(c["do"][0]["do"][0]["do"][1]), "an? (choice|write) uses value"),
        (lambda c: c["do"].append({"kind": "step", "do": [{"kind": "step", "do": []}]}), "a step stands in another"),
        (lambda c: c.pop("arguments"), "arguments: field required"),
        (lambda c: c["requires"][0]["otherwise"].update(text="{} {}"), "has 2 places for 1 values"),
        (lambda c: c["do"][0]["do"][0]["note"].update(text="{0.real}"), "has 0 places for 1 values"),
        (lambda c: c["do"].append({"kind": "jump"}), "sequence program: do"),
    ],
)
def test_malformed_programs_are_refused(change, message):
    with pytest.raises(ProgramError, match=message):
        load_program(faulty(change))


@pytest.mark.parametrize("value", [-(1 << 63), (1 << 63) - 1])
def test_a_constant_has_64_bits(value: int):
    assert load_program(faulty(_value(value))).values[-1] == value
    place = len(load_program(faulty(_value(value))).values) - 1
    with pytest.raises(ProgramError, match=f"value {place} needs more than 64 bits"):
        load_program(faulty(_value(value + (1 if value > 0 else -1))))


def test_a_task_outside_of_a_step_is_refused():
    build = Builder([], 1)
    x = build.argument("X", "i32", 32, 64)
    build.task("MM2S", 0, 0, build.bd(x, 0, (1,), (1,)))
    with pytest.raises(ProgramError, match="a task stands in no step"):
        _ = build.program


def test_what_never_runs_may_hold_loops():
    build = Builder([], 1)
    with build.when(0), build.loop(3) as i:
        build.write(i, i)
    build.write(4, 5)
    assert list(interpret(build.program, {}, SHIM)) == [Start(-1, (Stored(4, (5,)),))]


def test_several_registers_are_one_operation():
    build = Builder(["n"], in_flight=1, in_flight_max=2)
    n = build.parameter("n")
    with build.step():
        build.write(0x1A0000, n, n * 3, 1 << 31)
        build.write(0x1A0604, 7)
    events = list(interpret(build.program, {"n": 5}, SHIM))
    found = list(operations(events, [], mlir_device_named("npu2").generation, wide=False))
    assert [type(operation) for operation in found] == [BlockWrite, Write]
    assert isinstance(found[0], BlockWrite)
    same(found[0].words, (5, 15, 1 << 31), f"words from {found[0].address:#x} on")
    assert (found[0].address, found[1]) == (0x1A0000, Write(0x1A0604, 7))


def test_no_more_steps_run_than_the_queues_of_a_program_hold():
    assert [Builder([], most, 2).program.in_flight for most in (1, 2, 3)] == [1, 2, 2]
    assert {asked: most_running(steps(4, 1, 4, 2), asked) for asked in (None, 1, 4)} == {None: 2, 1: 1, 4: 2}


def staged(*columns: int, later: Sequence[int] = ()) -> Program:
    """A step of one task on each column, one after the other, with a change before each but the first; before the
    second one tasks on the columns `later` start for the third."""
    build = Builder([], 2)
    x = build.argument("X", "i32", 32, 1 << 22)
    for number, column in enumerate(columns):
        if number:
            with build.configure(None, 2), build.sooner():
                for other in later if number == 1 else ():
                    build.task("MM2S", 0, other, build.bd(x, 0, (4,), (1,)))
        with build.step([("S2MM", 0, column, 1)]):
            build.task("S2MM", 0, column, build.bd(x, 0, (4,), (1,)), token=True)
    return build.program


def bd_ids(program: Program, bds: int = 4) -> list[tuple[int, int, int]]:
    """Index of the start, column and number of each BD, on shims of so many."""
    events = interpret(program, {}, replace(SHIM, bds=bds))
    starts = (event for event in events if isinstance(event, Start))
    return [(s.index, task.column, bd.bd_id) for s in starts for task in s.items for bd in task.bds]  # type: ignore[union-attr]


def test_what_starts_two_steps_early_keeps_its_bds_until_its_own_step_has_ended():
    own = [(0, 0, 0), (-2, 0, 1), (1, 1, 0), (2, 0, 2), (3, 0, 3), (4, 0, 0), (5, 0, 1), (6, 0, 2)]
    assert bd_ids(staged(0, 1, 0, 0, 0, 0, 0, later=[0])) == own
    assert bd_ids(staged(0, 1, 0, later=[0]), 2) == [(0, 0, 0), (-2, 0, 1), (1, 1, 0), (2, 0, 0)]


@pytest.mark.parametrize(
    ("columns", "later", "message"),
    [((0, 0, 0), [0], "BDs of shim 0 are taken behind those of a later step"), ((0, 1), [0], "no step follows")],
)
def test_what_starts_early_is_of_a_later_step_that_no_other_comes_before_on_its_shim(columns, later, message):
    with pytest.raises(ProgramError, match=message):
        bd_ids(staged(*columns, later=later))


def writes(program: Program, **parameters: int) -> list[tuple[int, int]]:
    """Address and value of every register that a program of writes alone sets."""
    items = [item for event in interpret(program, parameters, SHIM) for item in getattr(event, "items", ())]
    return [(item.address + 4 * at, value) for item in items for at, value in enumerate(item.values)]


def test_a_choice_does_one_block_or_the_other_with_its_loops():
    """Every statement of the form: loops in both blocks have counters of their own."""
    values = ["n", ["index", 0], ["index", 1], 2, 3]
    loops = [
        {"kind": "for", "loop": loop, "count": 3 + loop, "do": [{"kind": "write", "address": 0, "values": [1 + loop]}]}
        for loop in (0, 1)
    ]
    choice = {"kind": "if", "when": 0, "do": loops[:1], "otherwise": loops[1:]}
    content = {"parameters": ["n"], "values": values, "arguments": [], "do": [choice], "in_flight": 1}
    program = load_program(content)
    assert {n: writes(program, n=n) for n in (-1, 0, 1)} == {
        -1: [(-1, 0), (-1, 1)], 0: [(0, 0), (0, 1), (0, 2)], 1: [(1, 0), (1, 1)],
    }  # fmt: skip
    assert loops_of(program.do) == {0: (), 1: ()}
    twice = content | {"do": [choice | {"otherwise": loops[:1]}]}
    with pytest.raises(ProgramError, match="loop 0 stands twice"):
        load_program(twice)


def test_a_counter_may_stand_in_several_places():
    """Files may say it as often as they like; all of them count."""
    values = [3, ["index", 0], ["index", 0], ["add", 1, 2]]
    loop = {"kind": "for", "loop": 0, "count": 0, "do": [{"kind": "write", "address": 1, "values": [2, 3]}]}
    program = load_program({"parameters": [], "values": values, "arguments": [], "do": [loop], "in_flight": 1})
    assert writes(program) == [(0, 0), (4, 0), (1, 1), (5, 2), (2, 2), (6, 4)]


def test_a_core_is_told_words_by_slot_and_then_to_go():
    build = Builder(["n"], 1)
    build.set_parameters(0x1000, {0: 7, 3: build.parameter("n")}, 0x2000)
    assert writes(build.program, n=5) == [(0x1000, 7), (0x100C, 5), (0x2000, 1)]


def test_words_of_registers_hold_fields_and_negative_ones_as_twos_complement():
    """A queue of a shim: BD in bits 0 to 3, repeat in 16 to 23, token in 31 (AM025); one's field is 8 bits."""
    layout = TILE_REGISTERS[TileKind.SHIM].queue
    for repeat, bits in ((0, 0), (255, 0xFF0000), (-1, 0xFF0000), (-256, 0)):
        (found,) = register_words(layout, {"bd": 5, "repeat": repeat, "token": 1})
        same(found.constant, 1 << 31 | bits | 5, f"a queue's word that repeats {repeat}")
    (found,) = register_words(layout, {"repeat": Expr("parameter", ("n",))})
    assert evaluate(found, {"n": 3}) == 3 << 16


def test_only_bds_that_are_wanted_stand_in_a_chain():
    build = Builder(["n"], 1)
    n, x = build.parameter("n"), build.argument("X", "i32", 32, 64)
    assert build.bd(x, 0, (1,), (1,), when=0) is None
    with build.step([("MM2S", 0, 0, 1)]):
        wanted = [build.bd(x, 8 * i, (1,), (1,), when=n >= i) for i in (1, 2, 3)]
        build.task("MM2S", 0, 0, None, *wanted, token=True)
    found = {}
    for n in (1, 2, 3):
        start = next(iter(interpret(build.program, {"n": n}, SHIM)))
        found[n] = [(bd.pattern.offset, bd.bd_id) for item in start.items for bd in item.bds]  # type: ignore[union-attr]
    assert found == {n: [(8 * i, i - 1) for i in range(1, n + 1)] for n in (1, 2, 3)}
    with pytest.raises(ProgramError, match="a task has no BD that is wanted"):
        list(interpret(build.program, {"n": 0}, SHIM))


@pytest.mark.parametrize(("columns", "fits"), [((0, 0), True), ((0, 1), False)])
def test_bds_of_a_step_are_counted_by_column(columns: tuple[int, int], fits: bool):
    """Two tasks of 8 fill a shim; of two shims each has 16."""
    for count in (8, 9, 16, 17):
        build = Builder([], 1)
        x = build.argument("X", "i32", 32, 64)
        with build.step([("MM2S", 0, 0, 1)]):
            for channel, column in enumerate(columns):
                chain = [build.bd(x, i, (1,), (1,)) for i in range(count)]
                build.task("MM2S", channel, column, *chain, token=True)
        if count <= (8 if fits else 16):
            (start, _) = interpret(build.program, {}, SHIM)
            taken = [[bd.bd_id for bd in getattr(item, "bds", ())] for item in start.items]  # type: ignore[union-attr]
            first = count if fits else 0
            assert taken == [[*range(count)], [*range(first, first + count)]], f"numbers of two tasks of {count}"
        else:
            with pytest.raises(ProgramError, match="more than the 16 BDs of a shim"):
                pytest.fail(f"{count} twice: {list(interpret(build.program, {}, SHIM))}")


@pytest.mark.parametrize(
    ("sizes", "strides", "found"),
    [
        ((2,), (1,), ((1, 1, 2), (0, 0, 1))), ((4, 2), (9, 1), ((1, 4, 2), (0, 9, 1))),
        ((5, 4, 2), (99, 9, 1), ((5, 4, 2), (99, 9, 1))),
    ],
)  # fmt: skip
def test_runs_are_the_fourth_dimension_of_any_bd(sizes, strides, found):
    build = Builder(["n"], 1)
    n, x = build.parameter("n"), build.argument("X", "i32", 32, 4096)
    with build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, build.bd(x, 1, sizes, strides, runs=(n, 64)), runs=n, token=True)
    inner, apart = found
    for n, shape in ((1, (sizes, strides)), (2, ((2, *inner), (64, *apart))), (3, ((3, *inner), (64, *apart)))):
        (start, _) = interpret(build.program, {"n": n}, SHIM)
        patterns = [bd.pattern for item in start.items for bd in item.bds]  # type: ignore[union-attr]
        assert fields_of(patterns, PATTERN) == rows(PATTERN, (*shape, 1)), f"{n} runs"
        assert [(item.runs, item.token) for item in start.items] == [(n, True)]  # type: ignore[union-attr]


def test_every_requirement_that_does_not_hold_is_said():
    build = Builder(["n"], 1)
    n = build.parameter("n")
    for most in (1, 2, 3):
        build.require(n <= most, "n = {} is above {}", n, most)
    assert writes(build.program, n=1) == []
    with pytest.raises(ProgramError, match=r"^n = 3 is above 1\nn = 3 is above 2$"):
        writes(build.program, n=3)


FIELDS = {
    "length": [0, 0], "d0_step": [3, 0], "d0_wrap": [3, 20], "d1_step": [4, 0], "d1_wrap": [4, 20], "d2_step": [5, 0],
    "iteration_step": [6, 0], "iteration_wrap": [6, 20], "use_next": [7, 26], "next": [7, 27],
}  # fmt: skip
TARGET = {
    "column_stride": 1 << 25, "bds": 16, "wraps": [1023, 1023], "step_max": 1 << 20, "iteration_max": 64,
    "length_max": (1 << 32) - 1, "repeat_max": 256, "queue_entries": 4, "bd_address": 0x1D000, "bd_stride_bytes": 0x20,
    "bd_fields": FIELDS, "patched_word": 1, "queue_fields": {"bd": 0, "repeat": 16, "token": 31},
    "queues": {"S2MM": [0x1D204, 0x1D20C], "MM2S": [0x1D214, 0x1D21C]}, "control_value": 0xF00, "control_mask": 0x1F00,
    "controls": {"S2MM": [0x1D200, 0x1D208], "MM2S": [0x1D210, 0x1D218]},
}  # fmt: skip
"""Shims as AM025 (XDNA) and AM027 (XDNA2) have them, and 15 as the controller's id for tokens."""


@pytest.mark.parametrize(
    ("array", "columns", "header", "burst"),
    [("npu2", 8, [0x06040100, 0x108], 3), ("npu1", 4, [0x06030100, 0x104], 2)],
)
def test_a_target_is_what_the_manuals_say_of_shims(array: str, columns: int, header: list[int], burst: int):
    """The header: version 0.1 of generation 4 or 3, six rows; columns, one row of memtiles. BDs are valid, their
    caching is 2, their bursts are the longest."""
    constant = [0, 0, 0, 0, burst << 30, 2 << 24, 0, 1 << 25]
    wanted = TARGET | {"columns": columns, "header": header, "bd_constant": constant}
    assert target_facts(mlir_device_named(array)) == wanted
