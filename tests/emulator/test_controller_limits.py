"""What the controller does with one operation: which tokens a wait takes, which window a BD points into."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.array.emulator import controller
from bdforge.array.emulator.strictness import Strictness
from bdforge.devices import TileKind, mlir_device_named
from bdforge.devices.registers import TILE_REGISTERS
from bdforge.devices.txn_format.operations import MaskWrite, Sync

WAITS = {  # column, row, columns, rows: tiles in order
    (0, 0, 1, 1): [(0, 0)], (2, 1, 3, 1): [(2, 1), (3, 1), (4, 1)], (1, 2, 1, 3): [(1, 2), (1, 3), (1, 4)],
    (1, 2, 2, 2): [(1, 2), (1, 3), (2, 2), (2, 3)],
}  # fmt: skip


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("block", WAITS, ids=str)
def test_a_wait_takes_a_token_of_each_tile_of_its_block(block: tuple, direction: int, monkeypatch: pytest.MonkeyPatch):
    taken: list[tuple] = []
    monkeypatch.setattr(controller, "_await_token", lambda _, key, source: taken.append(key))
    array: Any = SimpleNamespace(tokens=Counter(), strictness=Strictness())
    column, row, columns, rows = block
    sync = Sync(column=column, row=row, columns=columns, rows=rows, direction=direction, channel=3)
    controller._sync(array, sync, "")
    assert taken == [(*tile, ("S2MM", "MM2S")[direction], 3) for tile in WAITS[block]]


WINDOW = 0x80000 // 4  # words of a memtile's memory: the west's come first, then its own (hardware facts 1.4)
FIELD = TILE_REGISTERS[TileKind.MEMTILE].bd.fields["address"]


@pytest.mark.parametrize(
    ("name", "kind", "value", "word", "mask", "told"),
    [
        ("npu1", TileKind.MEMTILE, WINDOW - 1, FIELD.word, FIELD.mask, True),
        ("npu1", TileKind.MEMTILE, WINDOW, FIELD.word, FIELD.mask, False),
        ("npu1", TileKind.MEMTILE, 0, FIELD.word, FIELD.mask, True),
        ("npu1", TileKind.MEMTILE, 0, FIELD.word + 1, FIELD.mask, False),
        ("npu1", TileKind.MEMTILE, 0, FIELD.word, FIELD.mask - 1, False),
        ("npu1", TileKind.MEMTILE, 0, None, FIELD.mask, False),
        ("npu1", TileKind.CORE, 0, FIELD.word, FIELD.mask, False),
        ("npu2", TileKind.MEMTILE, 0, FIELD.word, FIELD.mask, False),
    ],
)
def test_bds_of_npu1_that_point_west_are_told(name, kind, value, word, mask, told):
    place = None if word is None else (5, word)
    layout = SimpleNamespace(bd_place=lambda _: place)
    tile = SimpleNamespace(kind=kind, registers=TILE_REGISTERS[TileKind.MEMTILE], map=layout, name="memtile (1, 1)")
    rules = Strictness()
    array: Any = SimpleNamespace(device=mlir_device_named(name), strictness=rules, at=lambda _: (tile, 0))
    controller._flag_window(array, MaskWrite(0, value << FIELD.low, mask), "")
    assert [warning.split(" points")[0] for warning in rules.warnings] == ["memtile (1, 1): BD 5"] * told
