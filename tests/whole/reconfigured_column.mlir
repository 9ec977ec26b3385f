// A column of a configuration: its memtile sends the number that its program holds, then what it got.
%sCOLUMN = aie.tile(COLUMN, 0)
%mCOLUMN = aie.tile(COLUMN, 1)
aie.flow(%sCOLUMN, DMA : 0, %mCOLUMN, DMA : 0)
aie.flow(%mCOLUMN, DMA : 0, %sCOLUMN, DMA : 0)
aie.shim_dma_allocation @inCOLUMN (%sCOLUMN, MM2S, 0)
aie.shim_dma_allocation @outCOLUMN (%sCOLUMN, S2MM, 0)
%dCOLUMN = aie.memtile_dma(%mCOLUMN) {
  %tag = aie.buffer(%mCOLUMN) {address = 1024 : i32} : memref<1xi32> = dense<TAG>
  %data = aie.buffer(%mCOLUMN) {address = DATA : i32} : memref<3xi32>
  %free = aie.lock(%mCOLUMN, FREE) {init = 1 : i32}
  %full = aie.lock(%mCOLUMN, FULL) {init = 0 : i32}
  %tag_full = aie.lock(%mCOLUMN, 7) {init = 1 : i32}
  %tag_free = aie.lock(%mCOLUMN, 8) {init = 0 : i32}
  %0 = aie.dma_start(S2MM, 0, ^in, ^next)
^in:
  aie.use_lock(%free, AcquireGreaterEqual, 1)
  aie.dma_bd(%data : memref<3xi32>, 0, 3)
  aie.use_lock(%full, Release, 1)
  aie.next_bd ^end
^next:
  %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
^send_tag:
  aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
  aie.dma_bd(%tag : memref<1xi32>, 0, 1)
  aie.use_lock(%tag_free, Release, 1)
  aie.next_bd ^send
^send:
  aie.use_lock(%full, AcquireGreaterEqual, 1)
  aie.dma_bd(%data : memref<3xi32>, 0, 3)
  aie.use_lock(%free, Release, 1)
  aie.next_bd ^end
^end:
  aie.end
}
