"""Parts of designs by hand: buffers in turn, locks, BDs, parameters, names of a program, words of a sequence."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bd_patterns import Pattern
from bdforge.design import (
    Acquire,
    Advance,
    Bd,
    Buffer,
    Call,
    Core,
    Design,
    Load,
    Lock,
    Locks,
    Loop,
    Parameters,
    Release,
    Rotation,
    Slots,
    Store,
    TaskBd,
    Tile,
    in_turn,
    ring,
    rtp_addresses,
    whole,
)
from bdforge.design.core_code import buffers, rotations, statements
from bdforge.design.events import placed_sequence
from bdforge.design.parameters import PARAMETER_BYTES
from bdforge.design.reasons import Reason, told_once
from bdforge.design.sequence import LockWrite, RegisterWrite, RtpWrite
from bdforge.design.sequences.interpret import Start, Stored
from bdforge.devices import TileKind
from bdforge.devices.types import TYPES

ONE, TWO, THREE = (Buffer(name, 8, "i32") for name in ("one", "two", "three"))


@pytest.mark.parametrize(("type_", "bits", "size"), [("i8", 8, 6), ("ui16", 16, 12), ("f32", 32, 24), ("bf16", 16, 12),
                                                     ("i64", 64, 48)])  # fmt: skip
def test_a_buffers_bytes_are_its_elements_bits_over_eight(type_: str, bits: int, size: int):
    buffer = Buffer("b", 6, type_)
    assert (buffer.bits, buffer.bytes) == (bits, size)


@pytest.mark.parametrize(("count", "tags"), [(1, ["ping"]), (2, ["ping", "pong"]), (3, ["0", "1", "2"])])
def test_slots_are_called_ping_and_pong_or_by_number(count: int, tags: list[str]):
    """Their locks start with room for each of them and nothing in them."""
    slots = Slots.of(Locks("mem"), "a", 16, TYPES["int8"], "A", count)
    assert [(b.name, b.role, b.bytes) for b in slots.buffers] == [(f"mem_a_{tag}", f"A, {tag}", 16) for tag in tags]
    assert (slots.free, slots.full) == (Lock("mem_a_free", 0, count, "A: room"), Lock("mem_a_full", 1, 0, "A: data"))


def test_slots_of_narrow_types_take_the_bytes_that_hold_them():
    (buffer,) = Slots.of(Locks("mem"), "w", 64, TYPES["int2"], count=1).buffers
    assert (buffer.bytes, buffer.type) == (16, "i8")


def test_slots_are_filled_with_as_many_turns_as_asked_and_sent_one_by_one():
    slots = Slots((ONE, TWO), Lock("free", 0, 2), Lock("full", 1))
    assert slots.fill(3) == tuple(
        Bd(buffer, whole(buffer), Acquire(slots.free, 3), Release(slots.full, 3)) for buffer in (ONE, TWO)
    )
    part, zeros = Pattern((2, 2), (4, 1)), ((0, 0), (1, 0))
    assert slots.send(part, zeros) == tuple(
        Bd(buffer, part, Acquire(slots.full), Release(slots.free), zeros) for buffer in (ONE, TWO)
    )
    assert [bd.pattern for bd in slots.send()] == [Pattern((8,), (1,))] * 2


def test_locks_are_numbered_in_the_order_in_which_they_are_handed_out():
    locks = Locks("core")
    handed = [locks.one("go", 3), *locks.pair("a", 2), locks.one("last")]
    assert [(lock.name, lock.id, lock.init) for lock in handed] == [
        ("core_go", 0, 3), ("core_a_free", 1, 2), ("core_a_full", 2, 0), ("core_last", 3, 0),
    ]  # fmt: skip


def test_chains_in_turn_give_the_first_bd_of_each_then_the_second():
    bds = ring([ONE, TWO], Lock("a", 0), Lock("b", 1))
    others = ring([THREE, ONE], Lock("c", 2), Lock("d", 3))
    assert in_turn([bds, others]) == (bds[0], others[0], bds[1], others[1])
    with pytest.raises(ValueError, match="shorter"):
        in_turn([bds, others[:1]])


@pytest.mark.parametrize(("pattern", "padding", "elements", "linear"), [
    (Pattern((8,), (1,)), (), 8, True), (Pattern((2, 4), (4, 1)), (), 8, True), (Pattern((2, 4), (8, 1)), (), 8, False),
    (Pattern((2, 4), (4, 1)), ((0, 0), (0, 0)), 8, False), (Pattern((2, 4), (4, 1)), ((1, 2), (3, 4)), 5 * 11, False),
])  # fmt: skip
def test_a_bd_counts_its_zeros_and_needs_dimensions_for_them(pattern, padding, elements: int, linear: bool):
    bd = Bd(ONE, pattern, padding=padding)
    assert (bd.elements, bd.linear) == (elements, linear)


def test_parameters_are_sixteen_words_with_a_lock_and_are_loaded_behind_it():
    parameters = Parameters.of(Locks("core"), "sizes", ("k", "n"))
    assert (parameters.buffer.elements, parameters.buffer.bytes, PARAMETER_BYTES) == (16, 64, 64)
    assert (parameters.buffer.name, parameters.go.name, parameters.go.init) == ("core_rtp", "core_go", 0)
    end = Store(1, ONE)
    assert parameters.problems(end, name="each") == Loop(
        None, (Acquire(parameters.go), Load("k", parameters.buffer, 0), Load("n", parameters.buffer, 1), end), "each"
    )


def test_a_core_is_told_at_the_addresses_of_its_parameters_and_its_lock():
    """A core's data memory begins at its tile's offset 0, its locks at 0x1F000, 16 bytes each (AM027)."""
    tiles = []
    for column, row in ((0, 2), (5, 3)):
        locks = Locks(f"core_{column}")
        locks.one("other")
        parameters = Parameters.of(locks, "sizes")
        held = Buffer(parameters.buffer.name, 16, "i32", address=0x440)
        core = Core((parameters.problems(),))
        tiles.append(Tile(locks.tile, column, row, TileKind.CORE, (held,), tuple(locks.taken), core=core))
    tiles.append(Tile("mem", 0, 1, TileKind.MEMTILE))
    assert rtp_addresses(Design("d", "npu2", tuple(tiles))) == (
        (0, 0x0020_0440, 0x0021_F010), (5, 5 << 25 | 0x0030_0440, 5 << 25 | 0x0031_F010),
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "row", "lock"), [
    (TileKind.SHIM, 0, 0x14030), (TileKind.MEMTILE, 1, 0xC0030), (TileKind.CORE, 4, 0x1F030),
])  # fmt: skip
def test_locks_and_buffers_have_full_addresses(kind: TileKind, row: int, lock: int):
    tile = Tile("t", 3, row, kind)
    assert tile.address(Lock("l", 3)) == 3 << 25 | row << 20 | lock
    assert tile.address(Buffer("b", 1, "i8", address=0x404)) == 3 << 25 | row << 20 | 0x404
    assert tile.stack_bytes == 0
    assert Tile("t", 3, row, kind, core=Core((), 2048)).stack_bytes == 2048


@pytest.mark.parametrize(
    ("turns", "first"), [(0, "one"), (1, "two"), (2, "three"), (3, "one"), (7, "two"), (-1, "three")]
)
def test_a_rotation_ahead_begins_so_many_buffers_later(turns: int, first: str):
    rotating = Rotation("r", 3).of([ONE, TWO, THREE]).ahead(turns)
    names = ["one", "two", "three"]
    start = names.index(first)
    assert [b.name for b in rotating.buffers] == names[start:] + names[:start]


def test_statements_rotations_and_buffers_of_a_program_are_found_in_loops_too():
    a, b = Rotation("a"), Rotation("b", 3)
    call = Call("work", (ONE, b.of([TWO, THREE, ONE]), 7, "n"))
    body = (Advance(b), Loop(3, (call, Advance(a), Loop(None, (Advance(b),)))), Advance(a))
    assert [type(statement).__name__ for statement in statements(body)] == [
        "Advance", "Loop", "Call", "Advance", "Loop", "Advance", "Advance",
    ]  # fmt: skip
    assert rotations(body) == (b, a)
    assert [buffer.name for buffer in buffers(call)] == ["one", "two", "three", "one"]


@pytest.mark.parametrize(("sizes", "elements", "linear"), [
    ((6,), 6, True), ((1, 1, 6), 6, False), ((2, 3, 4), 24, False), ((5, 2, 3, 4), 24, False),
])  # fmt: skip
def test_a_run_of_a_task_moves_its_three_inner_sizes(sizes: tuple[int, ...], elements: int, linear: bool):
    bd = TaskBd(ONE, Pattern(sizes, (1,) * len(sizes)), 0)
    assert (bd.elements, bd.linear) == (elements, linear)


def test_a_reason_is_told_once_with_its_first_tile_and_how_many_more():
    tiles = [Tile(f"t{row}", 1, row, TileKind.CORE) for row in (2, 3, 4)]
    full, there = Reason("memory", "full", "empty it"), Reason("chain", "long", "", "S2MM 0")
    memtile = Tile("m", 0, 1, TileKind.MEMTILE)
    told = [(tiles[0], full), (tiles[0], full), (tiles[1], full), (memtile, full), (tiles[2], full), (tiles[0], there)]
    found = told_once([*told, (None, Reason("flow", "lost", "find it"))], lambda subject: "")
    assert list(map(str, found)) == [
        "core (1, 2) and 2 more: full; empty it", "memtile (0, 1): full; empty it", "core (1, 2), S2MM 0: long",
        "lost; find it",
    ]  # fmt: skip


def test_writes_are_told_by_what_stands_at_their_address():
    """The first 64 words of a core's i32 buffers and all locks have names; equal blocks share a constant."""
    words, bytes_ = Buffer("words", 65, "i32", address=0x400), Buffer("bytes", 4, "i8", address=0x800)
    lock = Lock("go", 15)
    core = Tile("core", 0, 2, TileKind.CORE, (words, bytes_), (lock,))
    held = replace(words, name="held")
    design = Design("d", "npu2", (core, Tile("mem", 0, 1, TileKind.MEMTILE, (held,))))
    at = core.address(words)
    wrote = [(at, 7), (at + 4 * 63, 8), (at + 4 * 64, 9), (core.address(bytes_), 1), (core.address(lock), 2),
             (design.tiles[1].address(held), 3)]  # fmt: skip
    items = [Stored(address, (value,)) for address, value in wrote]
    items += [Stored(16 * i, values) for i, values in enumerate(((1, 2), (3, 4), (1, 2)))]
    nothing: Any = SimpleNamespace(arguments=[])
    (event,) = placed_sequence("run", "", design, nothing, (), [Start(0, tuple(items))], wide=False).events
    assert event.writes == (
        RtpWrite(words, 0, 7), RtpWrite(words, 63, 8), RegisterWrite(at + 256, (9,)),
        RegisterWrite(core.address(bytes_), (1,)), LockWrite(lock, 2), RegisterWrite(wrote[5][0], (3,)),
        RegisterWrite(0, (1, 2), "run_registers_0"), RegisterWrite(16, (3, 4), "run_registers_1"),
        RegisterWrite(32, (1, 2), "run_registers_0"),
    )  # fmt: skip
