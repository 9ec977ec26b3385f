// dequantise_i32: y = bf16(x s c) of a row of TILE_ELEMENTS int32, its scale, and those of columns.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, c, y   TILE_ELEMENTS int32, float and bfloat16, V-byte aligned; TILE_ELEMENTS * 2 % V == 0.
//   s         a float, V-byte aligned.
//   x is taken as the nearest float, and a product of floats is within 2^-21 of itself (nine of bfloat16 parts); then one
//   rounding: y is within 2^-8 + 2^-19 of itself, and what is below 2^-122 of factors may be lost.
//   Scales are finite, as is the product.
//   Rounding: set to conv_even by every call, and stays.
//
// Cost (modelled, not measured): V / 2 elements take two conversions, two products of nine and a store.
#include "../include/loops.h"
#include "../include/row_values.h"

#if !defined(TILE_ELEMENTS)
#error "say how long a row is: -DTILE_ELEMENTS=elements"
#endif

extern "C" void dequantise_i32(const int32 *__restrict x, const float *__restrict s, const float *__restrict c,
                               bfloat16 *__restrict y) {
    using row_values::lanes;
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    const auto row = aie::broadcast<float, lanes>(aie::load_v<lanes / 2>(s).get(0));
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const auto by_row = aie::mul(aie::to_float<float>(row_state::load(x + i), 0), row).template to_vector<float>();
        const auto columns = row_values::load_sums(c + i).template to_vector<float>();
        aie::store_v(y + i, aie::mul(by_row, columns).template to_vector<bfloat16>());
    }
    event1();
}
