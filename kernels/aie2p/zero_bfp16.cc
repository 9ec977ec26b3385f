// zero_bfp16: clears one core tile of C before the first step of K.
//
// Contract: c is bfp16ebs8, m x n in any order of 8 x 8 tiles of 72 bytes, at any byte; m % 8 == 0, n % 8 == 0. Written
//   only: 9 m n / 8 bytes of 0.
// Rounding: set to conv_even, and stays; zero converts exactly.
// Cost: a push of 72 bytes per tile, about 9/8 store lines: 9/8 * m * n / 64 cycles (modelled, not measured).
#include "../include/block_floats.h"

static_assert(DIM_M % 8 == 0 && tile_columns % 8 == 0, "m and n must be multiples of 8");

extern "C" void zero_bfp16(uint8_t *__restrict c) {
    set_float_modes();
    const BlockTile zeros = aie::zeros<accfloat, block_tile>().to_vector<bfp16ebs8>();
    aie::block_vector_output_buffer_stream<bfp16ebs8, block_tile> out(reinterpret_cast<bfp16ebs8 *>(c));
    event0();
    LOOP_MIN_ITERATIONS(c_elements / block_tile)
    for (unsigned i = 0; i < c_elements / block_tile; ++i)
        out.push(zeros);
    event1();
}
