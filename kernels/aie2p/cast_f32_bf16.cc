// cast_f32_bf16: y = bf16(x), TILE_ELEMENTS floats.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS each, V-byte aligned; TILE_ELEMENTS * 2 % V == 0. To nearest, ties to even; x is no NaN.
//   Rounding: set to conv_even by every call, and stays.
#include "../include/arch.h"
#include "../include/loops.h"

extern "C" void cast_f32_bf16(const float *__restrict x, bfloat16 *__restrict y) {
    constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const auto wide = aie::concat(aie::load_v<lanes / 2>(x + i), aie::load_v<lanes / 2>(x + i + lanes / 2));
        aie::store_v(y + i, aie::accum<accfloat, lanes>(wide).template to_vector<bfloat16>());
    }
    event1();
}
