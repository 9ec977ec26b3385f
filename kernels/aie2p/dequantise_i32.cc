// dequantise_i32: y = x s c as bfloat16 of a row of TILE_ELEMENTS int32, its scale, and those of columns.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, c, y   TILE_ELEMENTS int32, float and bfloat16, V-byte aligned; TILE_ELEMENTS * 2 % V == 0.
//             Y_F32=1: y is float, not rounded to bfloat16, within 2^-20 of itself.
//   s         a float, V-byte aligned.
//   x is taken as the nearest float, and a product of floats is within 2^-22 of itself (six of bfloat16 parts); then one
//   rounding: y is within 2^-8 + 2^-19 of itself, and what is below 2^-122 of factors may be lost; +0 where x, s or c is 0.
//   Scales are of magnitude below 2^127, as are x s and y.
//   Rounding: set to conv_even by every call, and stays.
//
// Cost (modelled, not measured): V / 2 elements take a conversion of integers, nine conversions to bfloat16, 6 subtractions,
//   12 products and a store, or two of floats; machine code of AIE2P 41 cycles, and 125 for a row (counted).
#include "../include/loops.h"
#include "../include/row_values.h"

#if !defined(TILE_ELEMENTS)
#error "say how long a row is: -DTILE_ELEMENTS=elements"
#endif

#if Y_F32
using Y = float;
#else
using Y = bfloat16;
#endif

extern "C" void dequantise_i32(const int32 *__restrict x, const float *__restrict s, const float *__restrict c,
                               Y *__restrict y) {
    using row_values::lanes;
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    const auto scale = aie::broadcast<float, lanes>(aie::load_v<lanes / 2>(s).get(0));
    const auto row = row_values::parts(row_values::Sums(scale));
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const row_values::Sums whole(aie::to_float<float>(row_state::load(x + i), 0));
        const auto by_row = row_values::product(row_values::parts(whole), row);
        row_values::store(y + i, row_values::product(row_values::parts(by_row), row_values::load(c + i)));
    }
    event1();
}
