// dequantise_i8: y = bf16(x s) of a row of TILE_ELEMENTS int8 and its scale.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS int8 and bfloat16, V-byte aligned; TILE_ELEMENTS % V == 0.
//   s         a float, V-byte aligned, of magnitude up to 2^100; below 2^-100 it counts as 0.
//   y is within 2^-8 + 2^-13 of itself of the product; 0 where x or s is.
//   Rounding: set to conv_even by every call, and stays.
//
// Cost (modelled, not measured): 2 V elements take a load, two unpackings, twelve products, 16 operations of the move slot
//   and two stores.
#include "../include/codes.h"
#include "../include/loops.h"
#include "../include/row_factor.h"

#if !defined(TILE_ELEMENTS)
#error "say how long a row is: -DTILE_ELEMENTS=elements"
#endif

extern "C" void dequantise_i8(const int8 *__restrict x, const float *__restrict s, bfloat16 *__restrict y) {
    constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % (2 * lanes) == 0, "a row of codes must be whole vectors");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    const auto scale = aie::load_v<lanes / 2>(s).template cast_to<int32>();
    const uint32 bits = static_cast<uint32>(scale.get(0)), size_bits = bits & 0x7fffffff;
    const bool none = size_bits < 27 << 23;
    const RowFactor<lanes> factor((size_bits >> 9 & 0x3fff) | 0x4000, 126 - (none ? 100 : size_bits >> 23));
    const auto kept = aie::broadcast<uint16, lanes>(static_cast<uint16>(none ? 0 : 0xffff));
    const auto sign = aie::broadcast<uint16, lanes>(static_cast<uint16>(bits >> 31 << 15));
    const auto over = aie::broadcast<bfloat16, lanes>(128.0F);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Codes<lanes> codes(aie::load_v<lanes>(x + i));
        const auto above = codes.above();
        const auto product = aie::mac(aie::mul(above, factor.high), above, factor.low);
        const auto size = aie::msc(aie::msc(product, over, factor.high), over, factor.low);
        const auto found = codes.with_signs(size.template to_vector<bfloat16>()).template cast_to<uint16>();
        aie::store_v(y + i, aie::bit_and(aie::add(found, sign), kept).template cast_to<bfloat16>());
    }
    event1();
}
