// mm_i8_i2_i32: C += A * B for one core tile, A int8, B ternary packed to 2 bit, C int32.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   a   int8, m/rho x k, micro-tiled [m/rho/R][k/8][R][8]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   ternary, k x n, packed [n/32][k/8][8][8] bytes: block of 32 columns q, block of depth, depth within it, column
//       within it. Field j (bits 2j+1:2j) of a byte is the code u = w + 1 in {0, 1, 2} of the weight w in column
//       32 q + 8 j + (column within the block). Code 3 is undefined.
//   c   int32, m x n, micro-tiled [m/R][n/8][R][8], read and written; inside column by column when C_TRANSPOSED. Its
//       column block 4 q + j is scaled by 4^j: start from zero_i32, call this once per part and step of K, then
//       unscale_i32 or a finish kernel with FIELD_SCALED once.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   All are V-byte aligned and do not overlap. m % (R rho) == 0, k % 8 == 0, n % 32 == 0.
//   Rounding and saturation: neither read nor written (acc32 to int32 is a bit copy).
//   Overflow: none while K < 262144, as |partial sum| <= 4^3 * 128 * K < 2^31.
//
// Idea: mask and bias in place (include/ternary.h), in 2 x 2 blocks (include/multiply.h): two row blocks of A
//   times fields (j, j + 1) of the same bytes, j = 0 then 2; 4 accumulators. The packed order is the same on both.
//
// Cost, by counting slots (modelled, not measured), per depth block and 4 products of Rx8x8 (vec 4 of 4)
//   AIE2P: 3 of 8 load slots, mv 4 of 4 (two bit_and, two sub), st 0:
//   still 512 MAC per cycle. Masking alone, codes left unsigned, takes mv 2 of 4 but owes C -= rowsum(A) * 4^j: the
//   sums would have to travel with A, or take a second pass over A. C moves by loads and stores, so this loop has no
//   other use for the mv slots, and the sub is free as long as the compiler needs no copies there. A_TRANSPOSED does
//   need them: mv 6 of 4, 341 MAC per cycle.
//   Live x registers: 2 of A, 1 of packed B, 2 of unpacked B, 4 of constants: 9 of 12.
//   Per block of 2 x 2 tiles C is loaded and stored once: 16 loads and 16 stores against 4 k / 8 cycles of products. An
//   odd last row block makes 1 x 2 blocks: mv 4 for 2 products, 256 MAC per cycle.
//   AIE2: 4 of 8 load slots of 256 bit, mv 4 of 4 (two bit_and, two sub): 256 MAC per cycle; mv 6 of 4 when
//   A_TRANSPOSED, 170 MAC per cycle.
#include "../include/ternary.h"

extern "C" void mm_i8_i2_i32(const int8_t *__restrict a, const uint8_t *__restrict b,
                             int32_t *__restrict c PART_PARAMETER) {
    multiply<Int8Ternary<mac_rows, 8, 8>>(a, b, c, part);
}
