"""A task that reads what another one of the run writes: right behind that one's awaited token, refused before it."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import ArgumentError, DmaError, Result
from bdforge.array.emulator.order_verification import order_faults
from bdforge.array.emulator.resident_design import Resident
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import parse
from bdforge.array.txn.lower import lower, select_sequence
from bdforge.devices import mlir_device_named
from support import register_designs
from support.differences import same
from support.two_devices import module as two_devices
from support.two_devices import run_of
from support.txn_vectors import encode_mlir

A = np.arange(1, 65, dtype=np.int32)
ARRAY = """module {{
aie.device(npu2) {{
%s0 = aie.tile(0, 0)
%s1 = aie.tile(1, 0)
{flows}
aie.runtime_sequence @sequence(%a: memref<64xi32>, %b: memref<64xi32>, %c: memref<64xi32>) {{
{sequence}
}}
}}
}}
"""
FLOWS = "\n".join(
    f"aie.flow(%s{column}, DMA : {channel}, %s{1 - column}, DMA : {channel})\n"
    f"aie.shim_dma_allocation @mm2s{column}{channel} (%s{column}, MM2S, {channel})\n"
    f"aie.shim_dma_allocation @s2mm{column}{channel} (%s{column}, S2MM, {channel})"
    for column in range(2)
    for channel in range(2)
)
"""What MM2S `channel` of a column reads, S2MM `channel` of the other column writes."""
ARRAYS = "abc"


@dataclass(frozen=True)
class Move:
    """A task: words of an array from `first` on, in (size, stride) loops, outermost first, `times` runs of them."""

    direction: str
    column: int
    channel: int
    array: str
    first: int = 0
    loops: tuple[tuple[int, int], ...] = ((64, 1),)
    times: tuple[int, int] = (1, 0)
    token: bool = True

    @property
    def walk(self) -> list[tuple[int, int]]:
        """Four loops."""
        return [self.times, *[(1, 0)] * (3 - len(self.loops)), *self.loops]

    @property
    def words(self) -> list[int]:
        found = [self.first]
        for size, stride in (self.times, *self.loops):
            found = [word + i * stride for word in found for i in range(size)]
        return found


@dataclass(frozen=True)
class Wait:
    """For a token of the channel of a move, by its place."""

    move: int


Steps = Sequence[Move | Wait]


def read(column: int, array: str, channel: int = 0, **options) -> Move:
    return Move("MM2S", column, channel, array, token=False, **options)


def write(column: int, array: str, channel: int = 0, **options) -> Move:
    return Move("S2MM", column, channel, array, **options)


# A style of writing: lines of a move, and of a wait for one, by its place.


def memcpy(number: int, move: Move) -> str:
    sizes, strides = ([pair[i] for pair in move.walk] for i in range(2))
    token = ", issue_token = true" if move.token else ""
    return (
        f"aiex.npu.dma_memcpy_nd(%{move.array}[0, 0, 0, {move.first}]{sizes}{strides}) "
        f"{{id = {number} : i64, metadata = @{channel_name(move)}{token}}} : memref<64xi32>"
    )


def channel_name(move: Move) -> str:
    return f"{move.direction.lower()}{move.column}{move.channel}"


def wait_of(number: int, move: Move) -> str:
    return f"aiex.npu.dma_wait {{symbol = @{channel_name(move)}}}"


def task(number: int, move: Move) -> str:
    loops = ", ".join(f"<size = {size}, stride = {stride}>" for size, stride in move.walk)
    length = len(move.words) // move.times[0]
    return (
        f"%t{number} = aiex.dma_configure_task(%s{move.column}, {move.direction}, {move.channel}) {{\n"
        f"aie.dma_bd(%{move.array} : memref<64xi32>, {move.first}, {length}, [{loops}]) {{bd_id = {number} : i32}}\n"
        f"aie.end\n}} {{issue_token = {str(move.token).lower()}, repeat_count = {move.times[0] - 1} : i32}}\n"
        f"aiex.dma_start_task(%t{number})"
    )


def await_of(number: int, move: Move) -> str:
    return f"aiex.dma_await_task(%t{number})"


def words(number: int, move: Move) -> str:
    times, loops = move.times, [*reversed(move.loops)]
    fields = {f"d{i}_size": size for i, (size, _) in enumerate(loops[:-1])}
    fields |= {f"d{i}_stride": stride - 1 for i, (_, stride) in enumerate(loops)}
    fields |= {"iteration_size": times[0] - 1, "iteration_stride": max(times[1] - 1, 0), "burst_length": 512}
    at, shim = register_designs, (move.column, 0)
    register = (move.column << 25) + 0x1D000 + 0x20 * number + 4
    return "\n".join([
        at.writebd(shim, number, len(move.words) // times[0], **fields),
        at.patch(register, ARRAYS.index(move.array), 4 * move.first),
        at.push(shim, f"{move.direction} : {move.channel}", number, token=move.token, repeat=times[0] - 1),
    ])  # fmt: skip


def sync_of(number: int, move: Move) -> str:
    return register_designs.sync((move.column, 0), int(move.direction == "MM2S"), move.channel)


Line = Callable[[int, Move], str]
STYLES: dict[str, tuple[Line, Line]] = {
    "memcpy": (memcpy, wait_of), "tasks": (task, await_of), "words": (words, sync_of),
}  # fmt: skip


def text(style: str, steps: Steps) -> str:
    moved, waited = STYLES[style]
    lines = [
        moved(i, step) if isinstance(step, Move) else waited(step.move, steps[step.move])  # type: ignore[arg-type]
        for i, step in enumerate(steps)
    ]
    return ARRAY.format(flows=FLOWS, sequence="\n".join(lines))


def run(mlir: str, **options) -> tuple[np.ndarray, np.ndarray, Result]:
    b, c = np.zeros((2, 64), np.int32)
    return b, c, bdforge.emulate(mlir, [A.copy(), b, c], **options)


COPIED = write(1, "b"), read(0, "a")
"""a to b: the first two steps, of which the first writes."""
RIGHT: dict[str, Steps] = {
    "awaited": [*COPIED, Wait(0), write(0, "c"), read(1, "b"), Wait(3)],
    "by another column": [*COPIED, Wait(0), write(1, "c"), read(0, "b"), Wait(3)],
    "by another channel": [*COPIED, Wait(0), write(0, "c", 1), read(1, "b", 1), Wait(3)],
    "beside what is written": [
        write(1, "b", loops=((32, 1),)), read(0, "a", loops=((32, 1),)), write(0, "c", loops=((32, 1),)),
        read(1, "b", first=32, loops=((32, 1),)), Wait(0), Wait(2),
    ],
    "between what is written": [
        write(1, "b", loops=((32, 2), (1, 1))), read(0, "a", loops=((32, 1),)), write(0, "c", loops=((32, 1),)),
        read(1, "b", first=1, loops=((32, 2), (1, 1))), Wait(0), Wait(2),
    ],
    "in place": [read(0, "b"), write(1, "b"), Wait(1)],
    "all runs": [
        write(1, "b", loops=((16, 1),), times=(4, 16)), read(0, "a"), Wait(0), write(0, "c"), read(1, "b"), Wait(3),
    ],
}  # fmt: skip
"""Programs that no order of DRAM can spoil."""


@dataclass(frozen=True)
class Wrong:
    """A program without a wait that it needs, the last word's and the reader's place, and what is told."""

    steps: Steps
    writer: int
    reader: int
    bytes: str
    advice: str = "await it"


WRONG: dict[str, Wrong] = {
    "never": Wrong([*COPIED, write(0, "c"), read(1, "b"), Wait(0), Wait(2)], 0, 3, "0 to 255"),
    "by another column": Wrong([*COPIED, write(1, "c"), read(0, "b"), Wait(0), Wait(0)], 0, 3, "0 to 255"),
    "by another channel": Wrong([*COPIED, write(0, "c", 1), read(1, "b", 1), Wait(0), Wait(2)], 0, 3, "0 to 255"),
    "another's token": Wrong(
        [*COPIED, write(0, "c", 1, loops=((1, 1),)), read(1, "a", 1, loops=((1, 1),)), Wait(2), write(0, "c"),
         read(1, "b"), Wait(5), Wait(0)], 0, 6, "0 to 255",
    ),
    "another task's token": Wrong(
        [write(1, "c"), *COPIED, read(0, "a"), Wait(0), write(0, "c"), read(1, "b"), Wait(5), Wait(0)],
        1, 6, "0 to 255",
    ),
    "the last word": Wrong(
        [write(1, "b", loops=((33, 1),)), read(0, "a", loops=((33, 1),)), write(0, "c", loops=((32, 1),)),
         read(1, "b", first=32, loops=((32, 1),)), Wait(0), Wait(2)], 0, 3, "128 to 131",
    ),
    "one word of a stride": Wrong(
        [write(1, "b", first=3, loops=((2, 30), (2, 5), (1, 1))), read(0, "a", loops=((4, 1),)),
         write(0, "c", loops=((4, 1),)), read(1, "b", first=6, loops=((4, 16), (1, 1))), Wait(0), Wait(2)],
        0, 3, "152 to 155",
    ),
    "the last run": Wrong(
        [write(1, "b", loops=((16, 1),), times=(4, 16)), read(0, "a"), write(0, "c", loops=((4, 1),)),
         read(1, "b", first=60, loops=((4, 1),)), Wait(0), Wait(2)], 0, 3, "240 to 255",
    ),
}  # fmt: skip


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_run_exactly_in_any_order_and_on_stale_memory(name, style):
    mlir = text(style, RIGHT[name])
    assert verify_design(mlir).faults == ()
    b, c, result = run(mlir)
    assert result.warnings == ()
    for seed in range(2 if style == "memcpy" else 0):  # all styles become the same operations
        again = run(mlir, dram="stale", schedule="random", seed=seed)
        same((again[0], again[1]), (b, c), f"seed {seed}")


def place(mlir: str, style: str, number: int) -> str:
    """Line of the operation that starts a task."""
    started = {
        "memcpy": f"id = {number} : i64", "tasks": rf"dma_start_task\(%t{number}\)",
        "words": f"bd_id = {number} : i32}}$",
    }[style]  # fmt: skip
    found = [i for i, line in enumerate(mlir.splitlines(), 1) if re.search(started, line)]
    return f"<string>:{found[-1]}:1"


def told(mlir: str, style: str, wrong: Wrong) -> str:
    """What a message has to say."""
    tasks = [wrong.steps[i] for i in (wrong.reader, wrong.writer)]
    reader, writer = (
        rf"shim \({move.column}, 0\) {move.direction} {move.channel}, BD {i} \({place(mlir, style, i)}\)"
        for move, i in zip(tasks, (wrong.reader, wrong.writer), strict=True)
        if isinstance(move, Move)
    )
    return f"{reader} reads bytes {wrong.bytes} of argument b, which {writer} writes .*: {wrong.advice} "


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", WRONG)
def test_a_missing_wait_is_refused_and_both_tasks_are_named(name, style):
    wrong = WRONG[name]
    mlir = text(style, wrong.steps)
    message = told(mlir, style, wrong)
    with pytest.raises(DmaError, match=message) as raised:
        run(mlir)
    assert raised.value.__notes__ == ["[dram-order]"]
    (fault,) = verify_design(mlir).faults
    assert re.search(message, fault)
    assert fault.endswith("[dram-order]")


def test_a_later_token_of_the_channel_covers_tasks_without_one():
    """Raw words and tasks can leave tokens out; a token that nobody asked for has to be asked for."""
    half = {"loops": ((32, 1),)}
    copied = [write(1, "b", token=False, **half), read(0, "a", **half), write(1, "c", **half), read(0, "a", **half)]
    back = [write(0, to, first=32, **half) if turn else read(1, source, **half)
            for source, to in ("bc", "cb") for turn in (True, False)]  # fmt: skip
    for style in ("tasks", "words"):
        for array in run(text(style, [*copied, Wait(2), *back, Wait(5)]))[:2]:
            same(array, np.r_[A[:32], A[:32]])
        alone = [*copied[:2], write(0, "c", **half), read(1, "b", **half), Wait(2)]
        with pytest.raises(DmaError, match=r"before: ask for the token \(issue_token\), await it"):
            run(text(style, alone))


def test_one_wait_for_several_columns_is_for_the_tasks_of_each():
    b, c, _ = run(text("words", [*COPIED, write(0, "c"), read(1, "a"), Wait(0)]).replace(
        register_designs.sync((1, 0), 0), register_designs.sync((0, 0), 0, columns=2)
        + "\n" + words(5, write(1, "c", 1, loops=((8, 1),))) + "\n" + words(6, read(0, "b", 1, loops=((8, 1),)))
        + "\n" + sync_of(5, write(1, "c", 1))
    ))  # fmt: skip
    same((b, c), (A, A))


def test_instruction_words_are_judged_by_their_operations():
    wrong = text("words", WRONG["never"].steps)
    source = r"\(operation \d+ of the instruction stream\)"
    with pytest.raises(DmaError, match=rf"BD 3 {source} reads bytes 0 to 255 of argument 1, which .* BD 0 {source}"):
        run(wrong, instructions=encode_mlir(wrong))


def test_without_the_check_it_is_a_warning_and_stale_memory_shows_what_goes_wrong():
    """Fresh memory hides the fault; all is there when the run has ended."""
    mlir = text("memcpy", WRONG["never"].steps)
    b, c, result = run(mlir, permissive=["dram-order"])
    same((b, c), (A, A))
    (warning,) = result.warnings
    assert warning.startswith("dram-order (permitted): shim (1, 0) MM2S 0, BD 3")
    assert verify_design(mlir, permissive=["dram-order"]).warnings == (warning,)
    seen = []
    for seed in range(20):
        b, c, _ = run(mlir, permissive=["dram-order"], dram="stale", schedule="random", seed=seed)
        same(b, A)
        assert set(c.tolist()) <= {0, *A.tolist()}
        seen.append(int((c == A).sum()))
    assert seen.count(0) > 10
    assert 64 in seen, "writes may be seen early"
    assert set(seen) - {0, 64}, "some of them, too"


def test_two_tasks_that_write_the_same_words_end_in_any_order():
    """No fault, since both may write the same; stale memory shows where they do not."""
    steps = [write(1, "b"), read(0, "a"), write(0, "b"), read(1, "c")]
    assert last_words(steps) == last_words([*steps, Wait(0), Wait(2)]) == {0, 1}
    assert last_words([*steps[:2], Wait(0), *steps[2:]]) == {0}
    assert last_words([*steps[:2], write(1, "b"), read(0, "c")]) == {0}, "tasks of a channel end in order"


def last_words(steps: Steps) -> set[int]:
    """What b has at its end, by 12 seeds."""
    seeds = range(12)
    return {int(run(text("memcpy", steps), dram="stale", schedule="random", seed=seed)[0][63]) // 64 for seed in seeds}


def test_one_array_may_be_two_arguments():
    """As where a design is used in place; stale memory tells whether that goes well."""
    for seed in range(4):
        b = A.copy()
        bdforge.emulate(
            text("memcpy", [*COPIED, Wait(0)]), [b, b, A.copy()], dram="stale", schedule="random", seed=seed
        )
        same(b, A)


def test_another_configuration_awaits_nothing():
    """What ran before it and was not awaited may still be under way."""
    mlir = two_devices(run_of("first", "a", "b"), run_of("second", "b", "c"))
    hasty = mlir.replace("aiex.npu.dma_wait {symbol = @out}", "", 1)
    assert verify_design(mlir).faults == ()
    message = "reads bytes 0 to 31 of argument b, which shim .0, 0. S2MM 0, BD 1"
    (fault,) = verify_design(hasty).faults
    assert re.search(message, fault)
    with pytest.raises(DmaError, match=message):
        bdforge.emulate(hasty, [np.arange(8, dtype=np.int32) for _ in range(3)], sequence="whole")


def test_tokens_are_lost_with_a_configuration():
    """A wait in the next one is for its own task, and tells of those that its channel ran before."""
    done = run_of("first", "a", "b"), run_of("second", "a", "c"), run_of("second", "c", "b")
    hasty = [two_devices(*done[:count]).replace("aiex.npu.dma_wait {symbol = @out}", "", 1) for count in (1, 3)]
    assert verify_design(hasty[1]).faults == ()
    resident, arrays = Resident(hasty[1], {}), [np.arange(8, dtype=np.int32) for _ in range(3)]
    for mlir in (hasty[0], two_devices(run_of("first", "a", "b"), run_of("second", "b", "c"))):
        resident.run(encode_mlir(mlir, sequence="main::whole"), arrays)
    same(arrays[2], 3 * np.arange(1, 9, dtype=np.int32))


def test_a_run_begins_with_nothing_under_way_but_tokens_that_nobody_read():
    """A token of the run before is taken for one of this run."""
    copied, back = text("words", COPIED), text("words", [write(0, "c"), read(1, "b"), Wait(0)])
    again = text("words", [*COPIED, Wait(0), write(0, "c"), read(1, "b"), Wait(3)])
    arrays = [A.copy(), *np.zeros((2, 64), np.int32)]
    first = Resident(copied, {})
    first.run(encode_mlir(copied), arrays)
    first.run(encode_mlir(back), arrays)
    same(arrays[2], A)
    with pytest.raises(DmaError, match=r"BD 4 .* reads bytes 0 to 255 of argument 1, which .* BD 0"):
        first.run(encode_mlir(again), arrays)
    second = Resident(copied, {})
    second.run(encode_mlir(copied), arrays)
    second.run(encode_mlir(text("words", [*COPIED, Wait(0), Wait(0), write(0, "c"), read(1, "b"), Wait(4)])), arrays)


@pytest.mark.parametrize("kind", ["memref<?xi32>", "memref<*xi32>", f"memref<{10**17}xi32>"])
def test_arguments_of_any_size_are_told_apart(kind):
    """Nothing is allocated for them."""
    for wrong in (True, False):
        mlir = text("words", WRONG["never"].steps if wrong else RIGHT["awaited"])
        faults = verify_design(mlir.replace("memref<64xi32>", kind)).faults
        assert ["reads bytes 0 to 255 of argument b" in fault for fault in faults] == [True] * wrong


def test_an_unknown_kind_of_memory_is_refused():
    with pytest.raises(ArgumentError, match="no DRAM is called 'slow'; there is fresh, stale"):
        run(text("memcpy", COPIED), dram="slow")


def unsafe(steps: Steps) -> bool:
    """By the words of each task: whether one reads what another one writes whose token was not awaited before."""
    under_way: list[Move] = []
    for step in steps:
        if isinstance(step, Wait):
            waited = steps[step.move]
            assert isinstance(waited, Move)
            queue = [move for move in under_way if (move.column, move.channel) == (waited.column, waited.channel)]
            ends = next((i for i, move in enumerate(queue) if move.token), -1)
            under_way = [move for move in under_way if move not in queue[: ends + 1]]
        elif step.direction == "S2MM":
            under_way.append(step)
        elif any(move.array == step.array and set(move.words) & set(step.words) for move in under_way):
            return True
    return False


def drawn(dice: random.Random) -> Steps:
    steps: list[Move | Wait] = []
    for _ in range(dice.randint(3, 12)):
        writes = [i for i, step in enumerate(steps) if isinstance(step, Move) and step.direction == "S2MM"]
        if writes and dice.random() < 0.3:
            steps.append(Wait(dice.choice(writes)))
            continue
        loops = ((dice.choice((1, 2, 4)), dice.choice((8, 13))), (dice.choice((1, 3)), dice.choice((3, 5))), (2, 1))
        steps.append(Move(
            dice.choice(("MM2S", "S2MM")), dice.randrange(2), dice.randrange(2), dice.choice("bc"), dice.randrange(8),
            loops, dice.choice(((1, 0), (1, 0), (2, 6))), token=dice.random() < 0.7,
        ))  # fmt: skip
    return steps


def test_random_programs_are_judged_as_by_their_words():
    """By the text alone: nothing has to move."""
    dice, found = random.Random(5), []
    for _ in range(16):
        steps = drawn(dice)
        wrong = unsafe(steps)
        sequence = select_sequence(parse(text("words", steps)))
        assert bool(order_faults(sequence, mlir_device_named("npu2"), lower(sequence))) == wrong, steps
        found.append(wrong)
    assert 3 < sum(found) < 13
