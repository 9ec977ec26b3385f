"""What is told of images that no tool of ours wrote, from register writes that are given here."""

import struct
from collections.abc import Sequence

import pytest

from bdforge.array.explain.buffer_rings import MovedBuffer
from bdforge.array.explain.explanation_tables import explanation_parts
from bdforge.array.explain.image_explanation import Explanation, explain
from bdforge.array.explain.instruction_steps import steps_of
from bdforge.array.images.cdo import cdo
from bdforge.array.images.pdi import pdi
from bdforge.array.lower.array_state import StateError
from bdforge.common.binary import ImageError
from bdforge.common.screen import as_text
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.elf import core_elf
from bdforge.devices import device_named
from bdforge.devices.bd_registers import CORE_BD, MEMTILE_BD
from bdforge.devices.txn_format.codec import TxnError, encode
from bdforge.devices.txn_format.operations import BlockWrite, Operation, Patch, Sync, Write

FIVE, ALIGN = "nop\n" * 5, ".p2align 4\n"
PROGRAM, CORE_CONTROL, CORE_BDS, MEMTILE_BDS = 0x20000, 0x32000, 0x1D000, 0xA0000
CORE_S2MM_QUEUE, MEMTILE_MM2S_QUEUE, SHIM_S2MM_QUEUE = 0x1DE04, 0xA0634, 0x1D204
OWN, EAST = 0x20000, 0x40000  # windows of a memtile's DMA, in words
HALO = device_named("strix_halo")


def at(column: int, row: int, offset: int) -> int:
    return column << 25 | row << 20 | offset


def code(source: str) -> tuple[int, ...]:
    data = assemble(source).code[0][1]
    data += bytes(-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)


def program(column: int, row: int, source: str) -> list[Operation]:
    return [BlockWrite(at(column, row, PROGRAM), code(source)), Write(at(column, row, CORE_CONTROL), 1)]


def text(found: Explanation, width: int = 200) -> str:
    return " ".join(as_text(explanation_parts(found, "foreign"), width).split())


def told(operations: Sequence[Operation], words: Sequence[Operation] | None = None) -> Explanation:
    stream = None if words is None else encode(words, HALO).astype("<u4").tobytes()
    return explain(cdo(operations), stream)


def test_cores_with_one_program_are_told_once():
    one, other = f"movx r1, #3\n{FIVE}done\n", "done\n"
    found = told([*program(0, 2, one), *program(0, 3, other), *program(1, 2, one), *program(1, 3, one)])
    (configuration,) = found.configurations
    assert [p.found.tiles for p in configuration.programs] == [[(0, 2), (1, 2), (1, 3)], [(0, 3)]]
    assert "3 cores (0, 1; 2) (1, 3), one program, aie2p" in text(found)
    assert found.device is not None
    assert (found.device.mlir, "for npu2_2col, AIE2P" in text(found)) == ("npu2_2col", True)


def test_rings_join_what_their_bds_walk_over_and_tell_windows_and_packets():
    """A memtile sends an own buffer in two overlapping walks and one of its eastern neighbour, in packets of id 5."""
    common = {"valid": 1, "use_next": 1, "packet_enable": 1, "packet_id": 5, "d0_wrap": 0}
    locks = {"acquire_enable": 1, "acquire_value": -1, "release_value": 1}
    blocks = [
        {"length": 64, "address": OWN + 0x10, "next": 1, "acquire_id": 64, "release_id": 65, **locks},
        {"length": 64, "address": OWN + 0x30, "next": 2, "acquire_id": 64, "release_id": 65, **locks},
        {"length": 8, "address": EAST, "next": 0, "d0_wrap": 8, "d0_step": 3, "release_id": 130, "release_value": 1},
    ]
    writes: list[Operation] = [
        BlockWrite(at(2, 1, MEMTILE_BDS + 0x20 * bd), tuple(MEMTILE_BD.encode(common | block)))
        for bd, block in enumerate(blocks)
    ]
    found = told([*writes, Write(at(2, 1, MEMTILE_MM2S_QUEUE), 0)])
    ((ring,),) = found.configurations[0].rings.values()
    assert ring.buffers == (
        MovedBuffer("", 0x40, 0x60 * 4), MovedBuffer("east ", 0, (7 * 4 + 1) * 4),
    )  # fmt: skip
    assert (ring.channel, ring.bds, ring.endless, ring.packets) == ("MM2S 0", (0, 1, 2), True, (5,))
    assert (ring.acquires, ring.releases) == ((0,), (1, 130))
    assert "memtile (2, 1) MM2S 0, packets 5 3 2 0x40 384 B, east" in text(found)


@pytest.mark.parametrize(("repeat", "shown"), [(0, "S2MM 0, once"), (3, "S2MM 0, 4 runs")])
def test_a_task_that_ends_tells_its_runs(repeat, shown):
    words = CORE_BD.encode({"length": 4, "address": 8, "valid": 1})
    found = told([BlockWrite(at(0, 2, CORE_BDS), tuple(words)), Write(at(0, 2, CORE_S2MM_QUEUE), repeat << 16)])
    assert f"core (0, 2) {shown} 1 1 0x20 16 B" in text(found)


def test_what_is_open_unknown_or_stands_still_is_said():
    source = f"vldb.fillx.512 r30, [p0, lf0, r24]\nj #l\n{FIVE}.byte 255, 255\n{ALIGN}l: done\n"
    found = told([*program(0, 2, source), Write(at(0, 4, CORE_CONTROL), 1)])
    shown = text(found)
    assert "forms of which no source tells what they do: VLDB_FILLX_512 at 0x0" in shown
    assert "bytes that are no known bundle: 0x" in shown
    assert "enabled without a program, so standing still: (0, 4)" in shown


def test_functions_of_an_elf_have_its_names():
    made = assemble(f"main: jl #f\n{FIVE}done\n{ALIGN}f: ret\n{FIVE}")
    found = explain(core_elf("aie2p", made.code, [], [], made.symbols, frozenset({"f"})))
    assert (found.kind, "main" in text(found), " f 14 6" in text(found)) == ("core ELF", True, True)


def test_several_configurations_are_numbered_and_no_run_is_tried():
    one, other = ([Write(at(0, row, CORE_CONTROL), 1)] for row in (2, 3))
    partition = bytes(120) + struct.pack("<II", 2, 184) + bytes(56)
    images, start = [pdi([cdo(part)]) for part in (one, other)], 184 + 2 * 96
    for each in images:
        partition += struct.pack("<16xII72x", len(each), start)
        start += len(each)
    partition += b"".join(images)
    head = b"xclbin2\0" + bytes(440) + struct.pack("<II", 1, 0) + struct.pack("<I20xQQ", 32, 496, len(partition))
    found = explain(head + partition, encode([], HALO).astype("<u4").tobytes())
    assert [configuration.idle for configuration in found.configurations] == [[(0, 2)], [(0, 3)]]
    assert found.run is None
    assert "configuration 1" in text(found)
    assert "has 2 configurations" in found.missing


def test_steps_end_with_waits_and_alike_ones_are_folded():
    push, wait = Write(at(3, 0, SHIM_S2MM_QUEUE), 0), Sync(0, 0, 0, 1, 4, 0)
    steps = steps_of([Write(at(0, 2, 0x400), 7), push, wait, push, wait, push, wait, push])
    assert [(step.first, step.count, step.pushes, step.writes, step.awaits) for step in steps] == [
        (1, 1, (("shim S2MM 0", 1),), (("core memory", 1),), (("shim S2MM 0", 4),)),
        (2, 2, (("shim S2MM 0", 1),), (), (("shim S2MM 0", 4),)),
        (4, 1, (("shim S2MM 0", 1),), (), ()),
    ]


def test_words_that_no_array_takes_fail_with_their_reason():
    fails = told([], [Patch(at(0, 1, 0xA0004), 0, 0)]).run
    assert fails is not None
    assert (fails.verdict, "only word 1 of a shim's BD takes one" in fails.reason) == ("fails", True)


def test_what_is_told_is_bounded():
    """A program of many loops, and 32 cores whose tasks differ."""
    loops = "".join(f"{ALIGN}l{i}: nop\njnz r1, #l{i}\n{FIVE}" for i in range(120))
    writes = program(0, 2, f"{loops}done\n")
    for column in range(8):
        for row in range(2, 6):
            words = CORE_BD.encode({"length": 4 + column, "address": 8 * row, "valid": 1})
            writes += [BlockWrite(at(column, row, CORE_BDS), tuple(words)), Write(at(column, row, CORE_S2MM_QUEUE), 0)]
    lines = as_text(explanation_parts(told(writes), "foreign"), 80).splitlines()
    assert len(lines) < 140
    programs = [program(i % 8, 2 + i // 8, f"movx r1, #{i}\ndone\n") for i in range(10)]
    assert "and 2 more programs" in text(told([write for writes in programs for write in writes]))
    assert any(line.split()[-3:] == ["and", "88", "more"] for line in lines)


@pytest.mark.parametrize(("data", "error", "said"), [
    (b"", ImageError, "no xclbin, PDI, CDO or full ELF: the file starts with nothing"),
    (b"MLIR text", ImageError, "the file starts with"),
    (cdo([Write(at(0, 0, 0x36000), 5)]), StateError, "no rule knows what it is"),
])  # fmt: skip
def test_a_wrong_file_is_said_in_a_sentence(data, error, said):
    with pytest.raises(error, match=said) as raised:
        explain(data)
    assert "\n" not in str(raised.value)


def test_words_that_are_none_are_said():
    with pytest.raises(TxnError):
        explain(cdo([Write(at(0, 2, CORE_CONTROL), 1)]), b"\xff" * 7)
