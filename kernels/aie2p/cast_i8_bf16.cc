// cast_i8_bf16: y = x, TILE_ELEMENTS int8 as bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS each, V-byte aligned; TILE_ELEMENTS % V == 0. Exact.
//   Rounding: set to conv_even by every call, and stays.
#include "../include/codes.h"
#include "../include/loops.h"

extern "C" void cast_i8_bf16(const int8 *__restrict x, bfloat16 *__restrict y) {
    constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % (2 * lanes) == 0, "a row must be whole vectors");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Codes<lanes> codes(aie::load_v<lanes>(x + i));
        const auto one = aie::broadcast<bfloat16, lanes>(1.0F), over = aie::broadcast<bfloat16, lanes>(128.0F);
        const auto size = aie::msc(aie::mul(codes.above(), one), over, one);
        aie::store_v(y + i, codes.with_signs(size.template to_vector<bfloat16>()));
    }
    event1();
}
