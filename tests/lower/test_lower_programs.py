"""DMA programs in their two forms, their BD numbers and the order in which they are written."""

from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.array.lower import configuration
from bdforge.array.lower.core_writes import _code, _data, load_program
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.txn.target import LoweringError
from bdforge.array.txn.writer import Writer
from bdforge.devices import mlir_device_named
from bdforge.devices.register_names import What, register_at
from bdforge.devices.txn_format.operations import BlockWrite
from support.decoded import device_of

HEAD = """aie.device(npu1) {
  %t = aie.tile(1, 2)
  %b = aie.buffer(%t) {sym_name = "b", address = 1024 : i32} : memref<64xi32>
  %c = aie.buffer(%t) {sym_name = "c", address = 2048 : i32} : memref<64xi32>
  %f = aie.lock(%t, 1) {init = 1 : i32}
  %g = aie.lock(%t, 2) {init = 0 : i32}
"""
FILL = """aie.use_lock(%f, AcquireGreaterEqual, 1)
      aie.dma_bd({buffer} : memref<64xi32>, 0, 64)
      aie.use_lock(%g, Release, 1)"""
B, C = FILL.format(buffer="%b"), FILL.format(buffer="%c")
BLOCKS = f"""{HEAD}  aie.mem(%t) {{
    %0 = aie.dma_start(S2MM, 0, ^a, ^n)
  ^a:
      {B}
      aie.next_bd ^b
  ^b:
      {C}
      aie.next_bd ^a
  ^n:
    %1 = aie.dma_start(MM2S, 1, ^c, ^end, repeat_count = 3)
  ^c:
      {B}
      aie.next_bd ^end
  ^end:
    aie.end
  }}
}}"""
REGIONS = f"""{HEAD}  aie.mem(%t) {{
    %0 = aie.dma(S2MM, 0) [{{
      {B}
      aie.end
    }}, {{
      {C}
      aie.end
    }}]
    %1 = aie.dma(MM2S, 1) {{loop = false, repeat_count = 3 : i32}} [{{
      {B}
      aie.end
    }}]
    aie.end
  }}
}}"""
TWO_STARTS = f"""{HEAD}  aie.mem(%t) {{
    %0 = aie.dma_start(S2MM, 0, ^a, ^n)
  ^n:
    %1 = aie.dma_start(S2MM, 0, ^b, ^end, repeat_count = 3)
  ^b:
      {C}
      aie.next_bd ^end
  ^a:
      {B}
      aie.next_bd ^end
  ^end:
    aie.end
  }}
}}"""


def written(text: str):
    return configuration(device_of(text), lambda *_: []).operations


def test_regions_are_written_as_blocks_are_but_for_the_order_of_bds():
    blocks, regions = written(BLOCKS), written(REGIONS)
    assert set(blocks) == set(regions)
    assert len(blocks) == len(regions)
    assert [op for op in blocks if not isinstance(op, BlockWrite)] == [
        op for op in regions if not isinstance(op, BlockWrite)
    ]


def test_blocks_found_last_are_followed_first():
    """^a and ^n are found first, then ^c behind ^n, then ^b behind ^a (mlir-aie, `getOrderedChainOfBlocks`)."""
    registers = [register_at(op.address) for op in written(BLOCKS) if isinstance(op, BlockWrite)]
    assert [register.index[0] for register in registers if register.what is What.BD] == [0, 2, 1]


def test_numbers_follow_the_text_and_tasks_the_chain_of_starts():
    queues = [op for op in written(TWO_STARTS) if register_at(getattr(op, "address", 0)).what is What.QUEUE]
    assert [getattr(op, "value", None) for op in queues] == [1, 3 << 16]
    words = {op.address: op.words for op in written(TWO_STARTS) if isinstance(op, BlockWrite)}
    assert words[0x0221D000][0] >> 14 == 2048 // 4
    assert words[0x0221D020][0] >> 14 == 1024 // 4


class _Written:
    """What a loader of programs writes, by the place."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int]] = []
        self.fills: list[tuple[tuple[int, int], int, int]] = []

    def block(self, _core: object, _tile: object, offset: int, words: tuple[int, ...]) -> None:
        self.blocks.append((offset, len(words)))

    def fill(self, _core: object, owner: tuple[int, int], offset: int, data: bytes) -> None:
        self.fills.append((owner, offset, len(data)))


def core_of() -> CoreOp:
    text = f'{HEAD} aie.core(%t) {{ aie.end }} {{elf_file = "core.elf"}} }}'
    return next(op for op in parse(text).walk() if isinstance(op, CoreOp))


def piece(address: int, size: int) -> Any:
    return SimpleNamespace(address=address, data=bytes(size), tail=b"")


@pytest.mark.parametrize(("address", "size", "words"), [(0, 16384, 4096), (16380, 4, 1), (16, 5, 2)])
def test_code_fills_program_memory_to_its_last_word(address: int, size: int, words: int):
    written: Any = _Written()
    _code(written, core_of(), (1, 2), piece(address, size))
    assert written.blocks == [(0x20000 + address, words)]


@pytest.mark.parametrize(
    ("address", "size", "message"),
    [
        (0, 16385, "code ends at 0x4001, beyond 0x4000"),
        (16380, 8, "code ends at 0x4004"),
        (2, 4, "code at 0x2; it starts at multiples of 4"),
    ],
)
def test_code_beyond_program_memory_is_refused(address: int, size: int, message: str):
    with pytest.raises(LoweringError, match=message):
        _code(_Written(), core_of(), (1, 2), piece(address, size))  # type: ignore[arg-type]


def test_data_goes_to_the_memories_that_a_core_reaches_and_is_split_where_one_ends():
    """South, west, north and the core's own, 64 KiB each from 0x40000 on; row 2 has a memtile south."""
    device, written = mlir_device_named("npu1"), _Written()
    _data(written, core_of(), (1, 3), piece(0x40000, 4), device)  # type: ignore[arg-type]
    _data(written, core_of(), (1, 3), piece(0x6FFF8, 16), device)  # type: ignore[arg-type]
    assert [size for *_, size in written.fills] == [4, 8, 8]
    assert written.fills[0][:2] == ((1, 2), 0)
    assert written.fills[1][:2] == ((1, 4), 0xFFF8)
    assert written.fills[2][:2] == ((1, 3), 0)
    for tile, address in (((1, 2), 0x40000), ((1, 3), 0x80000), ((0, 3), 0x50000)):
        with pytest.raises(LoweringError, match=f"data at {address:#x} is in no memory that the core reaches"):
            _data(_Written(), core_of(), tile, piece(address, 4), device)  # type: ignore[arg-type]


WINDOWS = {0x40000: (0, -1), 0x50000: (-1, 0), 0x60000: (0, 1), 0x70000: (0, 0)}
"""Where each of a core's four windows of data memory begins, and whose memory it is (columns east, rows north)."""


@pytest.mark.parametrize("start", WINDOWS, ids=hex)
@pytest.mark.parametrize("core", [(0, 2), (0, 5), (1, 3), (3, 2), (3, 5)], ids=str)
def test_windows_without_a_core_behind_them_are_refused(start: int, core: tuple[int, int]):
    """At the array's edges and above memtiles nothing is there; the first and the last word of each are one tile's."""
    owner = core[0] + WINDOWS[start][0], core[1] + WINDOWS[start][1]
    device = mlir_device_named("npu2_4col")
    for offset in (0, 0xFFFC):
        written: Any = _Written()
        if owner[0] >= 0 and 2 <= owner[1] <= 5:
            _data(written, core_of(), core, piece(start + offset, 4), device)
            assert written.fills == [(owner, offset, 4)]
        else:
            with pytest.raises(LoweringError, match=f"data at {start + offset:#x} is in no memory"):
                _data(written, core_of(), core, piece(start + offset, 4), device)


@pytest.mark.parametrize("address", [0x4000, 0x3FFFC, 0x80000])
def test_what_lies_between_code_and_data_or_behind_is_in_no_memory(address: int):
    with pytest.raises(LoweringError, match=f"data at {address:#x} is in no memory that the core reaches"):
        load_program(Writer(), core_of(), [piece(address, 4)], mlir_device_named("npu2"))


@pytest.mark.parametrize(("size", "tail", "last"), [
    (4, b"\xaa\xbb\xcc\xdd", 0x04030201), (5, b"\xaa\xbb\xcc\xdd", 0xCCBBAA05), (5, b"\xaa", 0x0000AA05),
    (7, b"\xaa\xbb", 0xAA070605), (6, b"", 0x00000605),
])  # fmt: skip
def test_the_last_word_of_code_is_completed_by_what_follows_in_the_file(size: int, tail: bytes, last: int):
    """As many bytes as are missing, little end first; zeros where the file ends."""
    writer = Writer()
    code: Any = SimpleNamespace(address=0, data=bytes(range(1, size + 1)), tail=tail)
    _code(writer, core_of(), (1, 2), code)
    (block,) = writer.operations
    words = block.words if isinstance(block, BlockWrite) else (block.value,)  # type: ignore[union-attr]
    assert (words[-1], len(words)) == (last, -(-size // 4))
