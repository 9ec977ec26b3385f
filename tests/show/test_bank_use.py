"""Which bank holds what, and which buffers disturb each other there; worked by hand."""

from typing import Any

import pytest

from bdforge.array.mlir import parse
from bdforge.array.mlir.enums import Direction
from bdforge.array.show import as_text, tables
from bdforge.array.show.array_use import devices_of, use_of
from bdforge.array.show.bank_use import Conflict, Mover, _in_turn
from bdforge.devices import TileKind
from support.array_text import Task, acquire, bd, buffer, lock, module, program, release, tile


def core_design(device: str, a0: int, a1: int, b: int, c: int) -> str:
    """A core's DMA with A on S2MM 0 in two buffers, B on S2MM 1, C on MM2S 0, and a table that no channel moves."""
    held = {"a0": (4096, a0), "a1": (4096, a1), "b": (4096, b), "c": (8192, c), "table": (64, 1024)}
    moved = {name: bd(name, size, element="i8") for name, (size, _) in held.items()}
    return module(
        device, tile(0, 2), *(buffer(name, "02", size, element="i8", address=at) for name, (size, at) in held.items()),
        "aie.core(%t02) { aie.end } {stack_size = 1024 : i32}",
        program(
            "02", Task("S2MM", 0, [moved["a0"], moved["a1"]], loop=True), Task("S2MM", 1, [moved["b"]], loop=True),
            Task("MM2S", 0, [moved["c"]], loop=True),
        ),
    )  # fmt: skip


def memtile_design() -> str:
    """A memtile whose channel S2MM 0 fills x0 and x1 for one lock, and y, between them, for another."""
    places = {"x0": 0, "x1": 65024, "y": 1024}
    fills = [
        "\n".join([acquire(f"{name[0]}_free"), bd(name, 1024, element="i8"), release(f"{name[0]}_full")])
        for name in ("x0", "y", "x1")
    ]
    return module(
        "npu2_1col", tile(0, 1), *(buffer(name, "01", 1024, element="i8", address=at) for name, at in places.items()),
        *(lock(name, "01", i) for i, name in enumerate(("x_free", "y_free", "x_full", "y_full"))),
        program("01", Task("S2MM", 0, fills, loop=True)),
    )  # fmt: skip


def banks_of(text: str, at: tuple[int, int]) -> dict[int, dict[str, Any]]:
    """Bytes, names and conflicts by bank."""
    (device,) = devices_of(parse(text))
    return {b.bank: held(b.used_bytes, b.holds, list(map(str, b.conflicts))) for b in use_of(device).tiles[at].banks}


def held(used_bytes: int, holds: tuple[str, ...], conflicts: list[str]) -> dict[str, Any]:
    """What a bank holds, by name: a difference is told by its field."""
    return {"used_bytes": used_bytes, "holds": holds, "conflicts": conflicts}


@pytest.mark.parametrize(("device", "a0", "c"), [("npu1_1col", 2048, 49152), ("npu2_1col", 12288, 57344)])
def test_buffers_in_banks_of_their_own_have_no_conflict(device, a0, c):
    """Those that end with their bank, too."""
    text = core_design(device=device, a0=a0, a1=16384, b=32768, c=c)
    assert banks_of(text, (0, 2)) == {
        0: held(1024 + 64 + 4096, ("stack", "@table", "@a0"), []),
        1: held(4096, ("@a1",), []),
        2: held(4096, ("@b",), []),
        3: held(8192, ("@c",), []),
    }
    assert "bank conflicts: none\n" in as_text(tables(parse(text)))


def test_ping_and_pong_in_one_bank_and_buffers_across_a_border_are_named():
    text = core_design(device="npu2_1col", a0=2048, a1=8192, b=40960, c=28672)
    assert banks_of(text, (0, 2)) == {
        0: held(1024 + 64 + 8192, ("stack", "@table", "@a0", "@a1"), ["turns of S2MM 0"]),
        1: held(4096, ("@c",), []),
        2: held(8192, ("@c", "@b"), ["MM2S 0 and S2MM 1"]),
    }
    shown = as_text(tables(parse(text)))
    assert "bank conflicts: 2 pairs of buffers share a bank, 1 of them turns of one channel" in shown
    (row,) = [line.split() for line in shown.splitlines() if "turns of S2MM 0" in line]
    cells = dict(zip(("kind", "column", "row", "bank", "bytes"), row, strict=False))
    assert cells == {"kind": "core", "column": "(0,", "row": "2)", "bank": "0", "bytes": "9280"}


def test_what_cores_see_of_a_buffer_counts_instead_of_it():
    """Modes of a tile: a and b of one share a bank, with c and d of the other at the same places; e is in none."""
    views = {"a": ("one", 0, 4096), "b": ("one", 8192, 2048), "c": ("two", 0, 4096), "d": ("two", 8192, 1024)}
    lines = ["%c0 = arith.constant 0 : index", "%c8192 = arith.constant 8192 : index"]
    lines += [f"%{of} = memref.view %pool[%c0][] : memref<12288xi8> to memref<12288xi8>" for of in ("one", "two")]
    lines += [
        f"%{name} = memref.view %{of}[%c{at}][] : memref<12288xi8> to memref<{size}xi8>"
        for name, (of, at, size) in views.items()
    ]
    fills = [f"aie.dma_bd(%pool : memref<12288xi8>, {at}, 1024)" for at in (0, 8192)]
    text = module(
        "npu2_1col", tile(0, 2), buffer("pool", "02", 12288, element="i8", address=1024),
        buffer("e", "02", 64, element="i8", address=16384),
        "\n".join(["aie.core(%t02) {", *lines, "aie.end } {stack_size = 1024 : i32}"]),
        program("02", Task("S2MM", 0, [fills[0]], loop=True), Task("S2MM", 1, [fills[1]], loop=True),
                Task("MM2S", 0, [bd("e", 64, element="i8")], loop=True)),
    )  # fmt: skip
    (device,) = devices_of(parse(text))
    bank, other = use_of(device).tiles[0, 2].banks
    assert (bank.used_bytes, other.holds) == (1024 + 12288, ("@e",))
    assert bank.holds == ("stack", "%a", "%c", "%b", "%d")
    told = [(one.one, one.other, one.channels) for one in bank.conflicts]
    assert told == [("%a", "%b", ("S2MM 0", "S2MM 1")), ("%c", "%d", ("S2MM 0", "S2MM 1"))]


def test_only_turns_of_one_lock_count_in_a_memtile():
    """x1 lies across the border of banks 0 and 1, with x0 in bank 0; y is another operand of the channel."""
    text = memtile_design()
    found = banks_of(text, (0, 1))
    assert found == {
        0: held(2048 + 512, ("@x0", "@y", "@x1"), ["turns of S2MM 0"]),
        1: held(512, ("@x1",), []),
    }
    (device,) = devices_of(parse(text))
    (conflict,) = use_of(device).tiles[0, 1].banks[0].conflicts
    assert conflict == Conflict("@x0", "@x1", range(0, 1), True, ("S2MM 0",))


FREE, FULL = (object() for _ in range(2))
IN, OUT = Direction.S2MM, Direction.MM2S


@pytest.mark.parametrize(("one", "other", "core", "memtile"), [
    ([(IN, 0, FREE)], [(IN, 0, FREE)], ("S2MM 0",), ("S2MM 0",)), ([(IN, 0, FREE)], [(IN, 0, FULL)], ("S2MM 0",), ()),
    ([(IN, 0, FREE)], [(IN, 1, FREE)], (), ()), ([(IN, 0, FREE)], [(OUT, 0, FREE)], (), ()),
    ([(IN, 0, None)], [(IN, 0, None)], ("S2MM 0",), ("S2MM 0",)),
    ([(IN, 0, FREE), (OUT, 2, FULL)], [(OUT, 2, FULL), (IN, 0, FREE)], ("S2MM 0", "MM2S 2"), ("S2MM 0", "MM2S 2")),
])  # fmt: skip
def test_buffers_take_turns_on_one_channel_in_a_memtile_for_one_lock_too(one, other, core, memtile):
    first, second = ([Mover(*mover) for mover in movers] for movers in (one, other))
    assert _in_turn(first, second, TileKind.CORE) == core
    assert _in_turn(first, second, TileKind.MEMTILE) == memtile
