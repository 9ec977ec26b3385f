"""DMA programs in their two forms, their BD numbers and the order in which they are written."""

from bdforge.devices.register_names import What, register_at
from bdforge.lower import configuration
from bdforge.txn import BlockWrite
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
