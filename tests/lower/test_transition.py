"""From one configuration to the next by register writes: what ran before leaves no trace, and what is alike stays."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from bdforge.array.emulator import CoreError, LoadError, Result, emulate
from bdforge.array.images.read import read_image
from bdforge.array.lower import allocated
from bdforge.array.lower.array_state import ArrayState, StateError, TileState
from bdforge.array.lower.tile_use import TilePart, part_of
from bdforge.array.lower.transition import Earlier, Running, Touched, Transition, transition
from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.txn.lower import lower_module
from bdforge.array.txn.target import REFUSING
from bdforge.devices import MLIR_DEVICES
from bdforge.devices.register_names import What, register_at
from bdforge.devices.registers import CORE_RESET, TILE_REGISTERS, TileKind, address
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Sync, Write
from bdforge.runtime.toolchain.assembled import built_image
from support.array_text import acquire, bd, buffer, core, flow, lock, memcpy, module, program, release, ring, tile
from support.differences import same

COUNT = 8
OUT_QUEUE = TILE_REGISTERS[TileKind.SHIM].queue_offset("S2MM", 1)
IN = np.array([5, -3, 0, 2**31 - 1, 7, 8, 9, 10], np.int32)


@dataclass(frozen=True)
class Store:
    """A buffer of a memtile: its channels that fill and send it with their BDs, and its two locks."""

    fill: tuple[int, int] = (2, 0)
    send: tuple[int, int] = (1, 24)
    locks: tuple[int, int] = (4, 9)


def text(
    at: str, operation: str, constant: int, *, first_lock: int = 0, address: int = 2048, memtile: Store | None = None
):
    """A core that applies an operation with a constant to 8 words, again and again; they come by circuits, the
    results by way of a memtile if asked."""
    store = memtile or Store()
    names = ("x_free", "x_full", "y_free", "y_full")
    body = [
        acquire("x_full"), acquire("y_free"), f"%k = arith.constant {constant} : i32",
        "%c8 = arith.constant 8 : index", "scf.for %j = %c0 to %c8 step %c1 {",
        "%v = memref.load %x[%j] : memref<8xi32>", f"%w = arith.{operation} %v, %k : i32",
        "memref.store %w, %y[%j] : memref<8xi32>", "}", release("x_free"), release("y_full"),
    ]  # fmt: skip
    kept = [
        buffer("m", "01", COUNT, address=address), lock("m_free", "01", store.locks[0], 1),
        lock("m_full", "01", store.locks[1]),
        flow(f"{at} DMA : 0", f"01 DMA : {store.fill[0]}"), flow(f"01 DMA : {store.send[0]}", "00 DMA : 1"),
        program("01", ring("S2MM", store.fill[0], acquire("m_free"), numbered("m", store.fill[1]), release("m_full")),
                ring("MM2S", store.send[0], acquire("m_full"), numbered("m", store.send[1]), release("m_free"))),
    ]  # fmt: skip
    return module(
        "npu2", tile(0, 0), tile(0, 1), tile(int(at[0]), int(at[1])),
        buffer("x", at, COUNT, address=address), buffer("y", at, COUNT, address=address + 4096),
        buffer("start", at, 2, (17, constant), address=address + 8192),
        *(lock(name, at, first_lock + i, int(name.endswith("free"))) for i, name in enumerate(names)),
        core(at, *body, times=1 << 20), flow("00 DMA : 0", f"{at} DMA : 1"),
        *(kept if memtile else [flow(f"{at} DMA : 0", "00 DMA : 1")]),
        "aie.shim_dma_allocation @in (%t00, MM2S, 0)", "aie.shim_dma_allocation @out (%t00, S2MM, 1)",
        program(at, ring("S2MM", 1, acquire("x_free"), bd("x", COUNT), release("x_full")),
                ring("MM2S", 0, acquire("y_full"), bd("y", COUNT), release("y_free"))),
        f"aie.runtime_sequence @go(%a: memref<{COUNT}xi32>, %b: memref<{COUNT}xi32>) {{",
        memcpy("b", "out", 1, COUNT, token=True), memcpy("a", "in", 0, COUNT), "aiex.npu.dma_wait {symbol = @out}", "}",
    )  # fmt: skip


def numbered(name: str, number: int) -> str:
    return f"{bd(name, COUNT)} {{bd_id = {number} : i32}}"


DESIGNS = {
    "plus 1": (text("02", "addi", 1), lambda v: v + np.int32(1)),
    "plus 1000": (text("02", "addi", 1000), lambda v: v + np.int32(1000)),
    "times 3, by a memtile": (text("02", "muli", 3, first_lock=4, memtile=Store()), lambda v: v * np.int32(3)),
    "xor 6, by a memtile's other channels": (
        text("02", "xori", 6, first_lock=4, memtile=Store((3, 30), (2, 6), (20, 21))), lambda v: v ^ np.int32(6)
    ),
    "minus 5, another core": (text("14", "subi", 5, address=1024), lambda v: v - np.int32(5)),
}  # fmt: skip
PLUS, TIMES, XOR, MINUS = "plus 1", *list(DESIGNS)[2:]


@cache
def built(name: str) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    """The writes of a design's configuration, with machine code, and the operations of its run."""
    made = built_image(DESIGNS[name][0], "small.mlir", [], [])
    assert not made.without
    return tuple(read_image(made.xclbin).configurations[0]), tuple(lower_module(parse(DESIGNS[name][0]))[1])


@cache
def locks_of(name: str) -> dict[tuple[int, int], set[int]]:
    """The locks of a design, by the place of their tiles."""
    device = next(op for op in parse(DESIGNS[name][0]).walk() if isinstance(op, DeviceOp))
    found: dict[tuple[int, int], set[int]] = {}
    for held, number in allocated(device, REFUSING).locks.items():
        found.setdefault(held.tile.place, set()).add(number)
    return found


def parts_of(configuration: Iterable[Operation]) -> set[TilePart]:
    return set(map(part_of, configuration))


def chained(*names: str, ahead: bool = False) -> tuple[list[Operation], list[Transition]]:
    """One stream in which each design runs twice, one design after the other; and its transitions.

    With `ahead` what may come while the design before runs comes before its last token is awaited, and cores that a
    design does not use stay as they are.
    """
    state, stream, between = ArrayState(built(names[0])[0]), [], []
    earlier, place = None, 0
    for before, name in zip((None, *names), names, strict=False):
        configuration, run = built(name)
        if before is not None:
            old, ran = built(before)
            touched = Touched().of(ran)
            running = Running(ArrayState(old), locks_of(before), parts_of(old), True) if ahead else None
            cores = (place for place, there in state.tiles.items() if there.kind is TileKind.CORE)
            all_parts = {TilePart(*place, switch) for place in cores for switch in (False, True)}
            left = all_parts - parts_of(configuration) if ahead else ()
            uses = Touched().of(run) if ahead else None
            made = transition(state, configuration, locks_of(name), touched, running, left, uses, earlier)
            between.append(made)
            assert isinstance(stream[-1], Sync)
            stream[place:place] = made.early
            stream[-1:] = [*made.ahead, stream[-1], *made.then]
            place = len(stream) - len(made.then) - 1
            earlier = Earlier(running, touched, parts_of([*made.ahead, *made.then])) if running else None
        stream += [*run, *run]
    return stream, between


def emulated(first: str, stream: list[Operation], **options) -> tuple[np.ndarray, Result]:
    """The output of a stream on an array that boots from the image of a design."""
    out = np.zeros(COUNT, np.int32)
    words, image = encode(stream, MLIR_DEVICES["npu2"]), built_image(DESIGNS[first][0], "small.mlir", [], []).xclbin
    return out, emulate("", [IN.copy(), out], instructions=words, image=image, device="npu2", **options)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("second", list(DESIGNS)[1:])
@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 3}, {"schedule": "random", "seed": 4}], ids=str)
@pytest.mark.parametrize("ahead", [False, True])
def test_designs_that_follow_each_other_compute_what_each_does_alone(second, options, ahead: bool):
    names = "plus 1", second, "plus 1", second
    stream, between = chained(*names, ahead=ahead)
    assert any(change.ahead for change in between) == ahead
    out, result = emulated(names[0], stream, **options, permissive=["program-writes"])
    same(out, DESIGNS[second][1](IN))
    written = ahead and second != "minus 5, another core"  # which does not run yet
    assert list(result.warnings) == ["program-writes (permitted): programs are written while cores run"] * written


@pytest.mark.parametrize("seed", range(2))
def test_channels_that_a_design_leaves_free_are_set_up_while_it_runs(seed: int):
    """They wait until then, and start where they move nothing yet."""
    names = TIMES, XOR, TIMES, XOR
    stream, between = chained(*names, ahead=True)
    controls = [[[channel for _, channel, _ in controlled(part)] for part in change[:2]] for change in between]
    assert controls[0] == [[3, 2], []]  # started: those of before stay as they wait
    assert controls[1:] == [[[1, 2, 2, 1], []], [[2, 3, 3, 2], []]]  # reset, then started: S2MM first
    out, _ = emulated(names[0], stream, schedule="random", seed=seed, permissive=["program-writes"])
    same(out, DESIGNS[XOR][1](IN))


@pytest.mark.parametrize("names", [(PLUS, MINUS, XOR), (TIMES, MINUS, XOR), (XOR, PLUS, TIMES)], ids=" -> ".join)
@pytest.mark.parametrize("seed", range(2))
def test_what_two_designs_in_a_row_leave_free_is_written_while_the_first_runs(names: tuple[str, ...], seed: int):
    stream, (first, second) = chained(*names, ahead=True)
    assert second.early
    assert not first.early
    out, _ = emulated(names[0], stream, schedule="random", seed=seed, permissive=["program-writes"])
    same(out, DESIGNS[names[-1]][1](IN))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 7}], ids=str)
def test_a_thousand_changes_in_one_run(options):
    """Each resets cores and channels, and sets locks anew."""
    names = [PLUS, TIMES, XOR, MINUS] * 250
    stream, between = chained(*names)
    assert len(between) == len(names) - 1
    out, _ = emulated(names[0], stream, **options)
    same(out, DESIGNS[MINUS][1](IN))


def controlled(part: list[Operation]) -> list[tuple[str, int, bool]]:
    """The channels of memtiles whose control registers are written, and whether that resets them."""
    found = []
    for op in part:
        if isinstance(op, Write | BlockWrite):
            register, value = register_at(op.address), op.value if isinstance(op, Write) else op.words[0]
            if register.what is What.CONTROL and register.kind is TileKind.MEMTILE:
                found.append((register.direction, register.index[0], bool(value & 2)))
    return found


@pytest.mark.parametrize("second", DESIGNS)
def test_registers_are_those_of_a_load(second):
    state = ArrayState(built("plus 1")[0])
    transition(state, built(second)[0])
    loaded = ArrayState(built(second)[0])
    for place, wanted in loaded.tiles.items():
        found = state.tiles[place]
        assert wanted.bds.items() <= found.bds.items()
        assert found.tasks == wanted.tasks
        for memory, kept in ((wanted.memory, found.memory), (wanted.program, found.program)):
            assert all(kept.data[start : start + len(data)] == data for start, data in memory.spans())
    for place, found in state.tiles.items():
        wanted = loaded.tiles.get(place, TileState(found.kind, *place))
        for what in (What.MASTER, What.SLAVE, What.RULE, What.MUX, What.DEMUX, What.CORE, What.LOCK):
            assert {k: v for k, v in found.of(what).items() if v} == {k: v for k, v in wanted.of(what).items() if v}


def test_what_is_alike_is_not_written():
    """The same design again: cores and channels start anew, its program and its switches stay."""
    _, (again,) = chained("plus 1", "plus 1")
    _, (other,) = chained("plus 1", "minus 5, another core")
    assert all(len(op.words) <= 4 for op in again.then if isinstance(op, BlockWrite))  # a buffer, or channels' starts
    assert len(again.then) < len(other.then)
    assert any(isinstance(op, BlockWrite) and len(op.words) > 16 for op in other.then)  # a program


MEMTILE = address(0, 1, 0)
PAD = address(0, 1, TILE_REGISTERS[TileKind.MEMTILE].pad_value_base or 0)
WRITES: dict[str, tuple[list[Operation], list[Operation], list[Operation]]] = {
    "bytes that are no words": (
        [], [MaskWrite(MEMTILE + 4, 0x33221100, 0xFFFFFF00), Write(MEMTILE + 8, 7), MaskWrite(MEMTILE + 12, 5, 0xFF)],
        [MaskWrite(MEMTILE + 4, 0x33221100, 0xFFFFFF00), BlockWrite(MEMTILE + 8, (7,)),
         MaskWrite(MEMTILE + 12, 5, 0xFF)],
    ),
    "a byte within a word": (
        [], [MaskWrite(MEMTILE, 0x2200, 0xFF00)], [MaskWrite(MEMTILE, 0x2200, 0xFF00)],
    ),
    "padding that was": ([Write(PAD + 4, 9)], [Write(PAD, 3)], [BlockWrite(PAD, (3, 0))]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRITES)
def test_what_a_transition_writes(case: str):
    before, wanted, expected = WRITES[case]
    found = [
        BlockWrite(op.address, (op.value,)) if isinstance(op, Write) and case != "padding that was" else op
        for op in transition(ArrayState(before), wanted).then
    ]
    assert found == expected


def test_shims_that_run_tasks_of_their_own_cannot_be_stopped():
    started = [Write(address(0, 0, TILE_REGISTERS[TileKind.SHIM].queue_offset("MM2S", 0)), 0)]
    with pytest.raises(StateError, match=r"shim .* runs a task from the start, which nothing ends"):
        transition(ArrayState(started), built("plus 1")[0])


def test_a_switch_that_changes_with_words_under_way_is_an_error():
    """Three inputs and nobody who takes outputs: the last words stand on their way when that is taken apart."""
    state = ArrayState(built("plus 1")[0])
    switches = [op for op in transition(state, built("minus 5, another core")[0]).then if _is_switch(op)]
    inputs = [op for op in built("plus 1")[1] if not isinstance(op, Sync) and getattr(op, "address", 0) != OUT_QUEUE]
    with pytest.raises(LoadError, match=r"a switch is set anew while words from .* are under way"):
        emulated("plus 1", [*inputs * 3, *switches, *built("plus 1")[1]])


def _is_switch(op: Operation) -> bool:
    assert isinstance(op, Write | BlockWrite)
    return register_at(op.address).what in (What.MASTER, What.SLAVE, What.RULE)


def test_a_program_is_judged_without_the_end_of_a_longer_one():
    """What a shorter program leaves behind itself is no code that runs: decoded from its middle it may look wrong."""
    core = TILE_REGISTERS[TileKind.CORE]
    stop = Write(address(0, 2, core.core_control or 0), CORE_RESET)
    tail = BlockWrite(address(0, 2, core.program_memory.start + 0x2000), (0x1234567, 0x89ABCDEF))
    wrong = BlockWrite(tail.address, (0xFFFFFFFF,) * 4)
    _, result = emulated("plus 1", [stop, tail, wrong, *chained("plus 1", "plus 1000")[1][0].then])
    assert not result.warnings
    with pytest.raises(CoreError, match="unknown bundle at 0x0"):
        emulated("plus 1", [stop, BlockWrite(tail.address - 0x2000, wrong.words), Write(stop.address, 1)])


def test_of_a_program_only_what_differs_is_written():
    """Words that differ or that nobody has written, and what stands between where another write would cost more."""
    start = address(0, 2, TILE_REGISTERS[TileKind.CORE].program_memory.start + 0x100)
    code = tuple(range(1, 201))
    there = ArrayState([BlockWrite(start, code[:150]), Write(start + 4 * 150, 1), Write(start + 4 * 90, 0)])
    there.apply(Write(start + 4 * 20, 0))
    wanted = [BlockWrite(start, (*code[:22], 77, *code[23:]))]
    assert transition(there, wanted).then == [
        BlockWrite(start + 4 * 20, (21, 22, 77)), Write(start + 4 * 90, 91) , BlockWrite(start + 4 * 150, code[150:]),
    ]  # fmt: skip


LOCKS_OF_WEST, OWN = 0, 64  # how a memtile's BD counts locks
LAYOUT = TILE_REGISTERS[TileKind.MEMTILE]


def described(number: int, acquired: int | None = None, **fields: int) -> BlockWrite:
    """A BD of the memtile (0, 1); `acquired` is a lock as a BD counts them, which it takes from 1 on."""
    fields = (
        {"acquire_enable": 1, "acquire_id": acquired, "acquire_value": -1} | fields if acquired is not None else fields
    )
    return BlockWrite(address(0, 1, LAYOUT.bd_offset(number)), tuple(LAYOUT.bd.encode({"valid": 1} | fields)))


def pushed(direction: str, channel: int, number: int) -> Write:
    return Write(address(0, 1, LAYOUT.queue_offset(direction, channel)), number)


def held(number: int, value: int) -> Write:
    return Write(address(0, 1, LAYOUT.lock_offset(number)), value)


RUNS = [described(0, OWN), pushed("S2MM", 0, 0)]
STARTS: dict[str, tuple[list[Operation], bool]] = {
    "waits for words": ([described(24), pushed("S2MM", 1, 24)], True),
    "waits for a lock": ([described(24, OWN + 6), pushed("MM2S", 1, 24)], True),
    "waits for as much as there is not": (
        [described(24, OWN + 6, acquire_value=2), held(6, 1), pushed("MM2S", 1, 24)], True,
    ),
    "has its lock": ([described(24, OWN + 6), held(6, 1), pushed("MM2S", 1, 24)], False),
    "has just what it wants": (
        [described(24, OWN + 6, acquire_value=2), held(6, 2), pushed("MM2S", 1, 24)], False,
    ),
    "waits for no lock": ([described(24), pushed("MM2S", 1, 24)], False),
    "takes a lock of what runs": ([described(24, OWN + 1), pushed("S2MM", 1, 24)], False),
    "gives a lock of what runs": ([described(24, release_value=1, release_id=OWN), pushed("S2MM", 1, 24)], False),
    "comes to a BD of what runs": ([described(24, use_next=1, next=0), described(0), pushed("S2MM", 1, 24)], False),
    "takes a neighbour's lock": ([described(24, LOCKS_OF_WEST + 6), pushed("S2MM", 1, 24)], False),
    "is what runs": ([described(2), pushed("S2MM", 0, 2)], False),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTS)
def test_a_channel_starts_while_another_design_runs_where_it_moves_nothing(case: str):
    wanted, early = STARTS[case]
    running = Running(ArrayState(RUNS), {(0, 1): {0, 1}}, [TilePart(0, 1), TilePart(0, 1, True)])
    made = transition(ArrayState(RUNS), wanted, {(0, 1): {6}}, Touched(), running, uses=Touched())
    starts = [[one[:2] for one in controlled(part) if not one[2]] for part in made]
    task = ArrayState(wanted).tiles[0, 1].tasks[0]
    assert starts == ([[task[:2]], [], []] if early else [[], [task[:2]], []])


SHARE = frozenset((TileKind.MEMTILE, bd) for bd in range(24))
STAYS: dict[str, tuple[list[Operation], set[int], Touched, Touched, bool]] = {
    "with BDs and locks of its own": ([described(24), pushed("S2MM", 1, 24)], {6}, Touched(), Touched(), True),
    "with a BD that is wanted": ([described(0), pushed("S2MM", 2, 0)], {6}, Touched(), Touched(), False),
    "with a BD that will be written": ([], {6}, Touched(), Touched(SHARE), False),
    "with a lock that is wanted": ([], {0}, Touched(), Touched(), False),
    "as runs push to it": (
        [], {6}, Touched(channels=frozenset({(TileKind.MEMTILE, "S2MM", 0)})), Touched(), False,
    ),
    "as runs write its BD": ([], {6}, Touched(SHARE), Touched(), False),
    "as runs will push to it": (
        [], {6}, Touched(), Touched(channels=frozenset({(TileKind.MEMTILE, "S2MM", 0)})), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STAYS)
def test_a_channel_that_nothing_wanted_disturbs_stays_as_it_waits(case: str):
    wanted, locks, before, uses, stays = STAYS[case]
    state = ArrayState(RUNS)
    made = transition(state, wanted, {(0, 1): locks}, before, uses=uses)
    assert (("S2MM", 0, True) in controlled(made.then)) != stays
    assert set(state.tiles[0, 1].waits) == ({("S2MM", 0)} if stays else set())
    again = transition(state, RUNS, {(0, 1): {0}}, Touched(), uses=Touched()).then
    assert (("S2MM", 0, True) in controlled(again)) == stays  # what waited is stopped before it starts anew


def test_bds_that_runs_write_stand_for_those_that_the_same_channels_may_use():
    """Words of several BDs come in one write, too."""
    both = BlockWrite(described(23).address, (*described(23).words, *described(24).words))
    assert Touched().of([described(3)]).bds == SHARE
    assert Touched().of([both]).of_kind(TileKind.MEMTILE).bds == frozenset(range(48))


def test_locks_that_bds_name_are_set_anew():
    """Also where nobody tells which locks a configuration uses."""
    wanted = [described(5, OWN + 3, release_value=1, release_id=OWN + 7)]
    written = [register_at(op.address) for op in transition(ArrayState(wanted), wanted).then if isinstance(op, Write)]
    assert {register.index[0] for register in written if register.what is What.LOCK} >= {3, 7}
