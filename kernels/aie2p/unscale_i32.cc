// unscale_i32: divides the column blocks of one core tile of C by the 4^j that mm_i8_i2_i32 left in them.
//
// Contract
//   c   int32, m x n, micro-tiled [m/8][n/8][8][8], 64-byte aligned, in place; m % 16 == 0, n % 32 == 0. Column block
//       4 q + j is shifted right by 2 j. Call once per output tile, after the last step of K.
//   Rounding and saturation: set to floor and none, because another kernel on this core may have left others; they stay
//       so. On sums that mm_i8_i2_i32 made, all multiples of 4^j, the shift is exact and neither acts.
//   Overflow: none, magnitudes only shrink.
//
// Idea and cost: a vector shift of 32-bit lanes goes through a 64-bit accumulator (from acc32, to_vector would ignore
//   the shift). 16 lanes take a load with upshift and a store with shift-round-saturate: 3 of 4 column blocks, so
//   about 3/4 * m * n / 16 cycles per output tile (modelled, not measured), and nothing per step of K.
#include <aie_api/aie.hpp>

#include "dims.h"
#include "loops.h"

template <unsigned J> static inline __attribute__((always_inline)) int32_t *unscale_tile(int32_t *__restrict c) {
    constexpr unsigned lanes = 16;  // 512 bit
    for (unsigned i = 0; i < tile_elements / lanes; ++i) {
        const aie::accum<acc64, lanes> wide(aie::load_v<lanes>(c));
        aie::store_v(c, wide.to_vector<int32>(2 * J));
        c += lanes;
    }
    return c;
}

extern "C" void unscale_i32(int32_t *__restrict c) {
    aie::set_rounding(aie::rounding_mode::floor);
    aie::set_saturation(aie::saturation_mode::none);
    event0();
    LOOP_MIN_ITERATIONS((DIM_M / 8) * (DIM_N / 32))
    for (unsigned quad = 0; quad < row_blocks * quads; ++quad) {
        c += tile_elements;
        c = unscale_tile<1>(c);
        c = unscale_tile<2>(c);
        c = unscale_tile<3>(c);
    }
    event1();
}
