// transpose_i16: turns blocks of 8 x 8 elements of 16 bits, two registers of 512 bits each.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS each, V-byte aligned, y apart from x; TILE_ELEMENTS % 64 == 0. Blocks are row-major inside and follow
//             each other; the one at a place of y is that of x with rows and columns exchanged, whatever the bits are.
#include "../include/transpose.h"

extern "C" void transpose_i16(const int16 *__restrict x, int16 *__restrict y) {
    transpose_blocks<int16, 8>(x, y);
}
