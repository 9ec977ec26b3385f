// cast_bf16_f32: y = x, TILE_ELEMENTS bfloat16 as float.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS each, V-byte aligned; TILE_ELEMENTS * 2 % V == 0. The same bits and 16 of 0, whatever x is.
#include "../include/arch.h"
#include "../include/loops.h"

extern "C" void cast_bf16_f32(const bfloat16 *__restrict x, float *__restrict y) {
    constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    event0();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const auto bits = aie::load_v<lanes>(x + i).template cast_to<int16>();
        const auto [first, second] = aie::interleave_zip(aie::zeros<int16, lanes>(), bits, 1);
        aie::store_v(y + i, first.template cast_to<float>());
        aie::store_v(y + i + lanes / 2, second.template cast_to<float>());
    }
    event1();
}
