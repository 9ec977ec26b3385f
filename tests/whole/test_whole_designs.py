"""Whole small designs as mlir-aie's own look, with what they compute and some of the words that configure them.

`verify`, `lower` and `emulate` have to agree about each.
"""

from pathlib import Path

import numpy as np
import pytest

from bdforge import emulate
from bdforge.array.core_bodies.core_program import core_program
from bdforge.array.emulator.verification import verify_design
from bdforge.array.lower import configuration
from bdforge.array.lower.array_state import ArrayState
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.devices.txn_format.operations import Write
from support.differences import same

FOLDER = Path(__file__).parent
DATA = np.random.default_rng(5).integers(-(2**31), 2**31 - 1, 64).astype(np.int32)


def state_of(text: str, device: str = "main") -> ArrayState:
    found = next(op for op in parse(text).walk() if isinstance(op, DeviceOp) and op.symbol == device)
    return ArrayState(configuration(found, lambda *_: []).operations)


def text_of(name: str) -> str:
    text = (FOLDER / f"{name}.mlir").read_text()
    assert verify_design(text).faults == ()
    return text


@pytest.mark.parametrize("schedule", ["in-order", "random"])
def test_add_one(schedule: str):
    text, out = text_of("add_one"), np.zeros(128, np.int32)
    assert emulate(text, [DATA.copy(), out], schedule=schedule).warnings == ()
    same(out, np.concatenate([np.full(64, 8, np.int32), DATA + np.int32(1)]))
    tiles = state_of(text).tiles
    assert tiles[0, 1].locks == {3: 0, 4: 1, 5: 1, 6: 0}
    assert list(tiles[0, 1].memory.spans()) == [(4096, np.full(64, 7, np.int32).tobytes())]
    assert tiles[0, 2].locks == {0: 1, 1: 0, 2: 1, 3: 0} | dict.fromkeys(range(4, 16), 0)
    assert list(tiles[0, 2].memory.spans()) == [(3072, (1).to_bytes(4, "little"))]


@pytest.mark.parametrize("schedule", ["in-order", "random"])
def test_packet_fan_in(schedule: str):
    """Headers of rows 2 and 3 with ids 2 and 3: row << 16 | id, and bit 31 for odd parity."""
    text, out = text_of("packet_fan_in"), np.zeros(10, np.int32)
    emulate(text, [out], schedule=schedule)
    packets = [[0x80020002, 20, 21, 22, 23], [0x00030003 | 1 << 31, 30, 31, 32, 33]]
    wanted = np.array(packets, np.uint32).astype(np.int32)
    same(out.reshape(2, 5)[np.argsort(out[1::5])], wanted)
    tiles = state_of(text).tiles
    assert (tiles[0, 2].locks, tiles[0, 3].locks, tiles[0, 1].locks) == ({0: 1, 1: 0}, {0: 1, 1: 0}, {8: 1, 9: 0})


def test_the_machine_code_of_a_core_finds_what_its_body_declares(tmp_path: Path):
    text, out = text_of("add_one"), np.zeros(128, np.int32)
    (core,) = (op for op in parse(text).walk() if isinstance(op, CoreOp))
    (tmp_path / "core.elf").write_bytes(core_program(core, {}).elf)
    emulate(text, [DATA.copy(), out], elfs={(0, 2): tmp_path / "core.elf"})
    same(out[64:], DATA + np.int32(1))


def configuration_of_four(name: str, **numbers: int) -> str:
    """A device whose memtiles send 100 or so, 101, ... and three elements each."""
    column, moves = (FOLDER / "reconfigured_column.mlir").read_text(), ""
    columns = [column.replace("TAG", str(numbers["TAG"] + i)).replace("COLUMN", str(i)) for i in range(4)]
    for i in range(4):
        for side, number, array, count in (("out", 1, "%b", 4), ("in", 0, "%a", 3)):
            entries = f"[0, 0, 0, {i * count}][1, 1, 1, {count}][0, 0, 0, 1]"
            meant = f"{{id = {number}, metadata = @{side}{i}}}"
            moves += f"aiex.npu.dma_memcpy_nd({array}{entries}) {meant} : memref<{4 * count}xi32>\n"
    moves += "\n".join(f"aiex.npu.dma_wait {{symbol = @out{i}}}" for i in range(4))
    text = "\n".join(columns) + f"aie.runtime_sequence @go(%a : memref<12xi32>, %b : memref<16xi32>) {{\n{moves}\n}}"
    for word, number in numbers.items():
        text = text.replace(word, str(number))
    return f"aie.device(npu2) @{name} {{\n{text}\n}}\n"


def test_reconfiguration_of_four_columns():
    """Locks and buffers stand in the programs, and differ between the configurations."""
    text = configuration_of_four("first", TAG=100, DATA=2048, FREE=0, FULL=1)
    text += configuration_of_four("second", TAG=200, DATA=4096, FREE=1, FULL=2)
    runs = "".join(
        f"aiex.configure @{name} {{ aiex.run @go(%a, {out}) : (memref<12xi32>, memref<16xi32>) }}\n"
        for name, out in (("first", "%b"), ("second", "%c"))
    )
    arrays = "%a : memref<12xi32>, %b : memref<16xi32>, %c : memref<16xi32>"
    text += f"aie.device(npu2) @main {{ aie.runtime_sequence @both({arrays}) {{\n{runs}}} }}"
    assert verify_design(text).faults == ()
    first, second = np.zeros((2, 16), np.int32)
    emulate(text, [DATA[:12].copy(), first, second], sequence="both")
    for out, tag in ((first, 100), (second, 200)):
        same(out.reshape(4, 4), np.column_stack([np.arange(tag, tag + 4), DATA[:12].reshape(4, 3)]).astype(np.int32))
    for device, tag, locks in (("first", 100, {0: 1, 1: 0, 7: 1, 8: 0}), ("second", 200, {1: 1, 2: 0, 7: 1, 8: 0})):
        tiles = state_of(text, device).tiles
        assert all(tiles[column, 1].locks == locks for column in range(4))
        memories = [list(tiles[column, 1].memory.spans()) for column in range(4)]
        assert memories == [[(1024, (tag + column).to_bytes(4, "little"))] for column in range(4)]


def test_token_overlay():
    """The three words are those that were seen to work: arbiter 5, msel 3, header kept."""
    text, out = text_of("token_overlay"), np.zeros(32, np.int32)
    assert emulate(text, [DATA[:16].copy(), out]).warnings == ()
    same(out, np.tile(DATA[:16], 2))
    found = next(op for op in parse(text).walk() if isinstance(op, DeviceOp))
    writes = {op.address: op.value for op in configuration(found, lambda *_: []).operations if isinstance(op, Write)}
    assert [hex(writes[at]) for at in (0x3F008, 0x3F100, 0x3F200)] == ["0xc0000045", "0xc0000000", "0xf1f0135"]


def test_buffers_of_one_name_in_two_regions_are_told_apart(tmp_path: Path):
    """Both bodies and machine code use their own; results by name show one, and say so."""
    text = text_of("add_one").replace('sym_name = "a"', 'sym_name = "addend"')
    other = '%other = aie.buffer(%t02) {sym_name = "addend", address = 3200 : i32} : memref<1xi32> = dense<9>'
    text = text.replace("aie.runtime_sequence(", f"aie.shim_dma(%t00) {{ {other} aie.end }}\naie.runtime_sequence(")
    (core,) = (op for op in parse(text).walk() if isinstance(op, CoreOp))
    (tmp_path / "core.elf").write_bytes(core_program(core, {}).elf)
    for elfs in ({}, {(0, 2): tmp_path / "core.elf"}):
        out = np.zeros(128, np.int32)
        (warning,) = emulate(text, [DATA.copy(), out], elfs=elfs).warnings
        assert "3 buffers of @main are called @addend" in warning
        same(out[64:], DATA + np.int32(1))
