// attention_end_bf16: y = o / sums of a pair of rows of tiles, an item's result (kernels/include/attention.h).
//
// Contract. y, bfloat16 in tiles as o's, takes the first half of the pair's memory: y = bf16(bf16(o) r), r = 1 / sum
//   within 2^-13, made in integers, in two bfloat16 parts of which none is 0. So y is within 2^-7 + 2^-13 of o / sums.
#include "../include/attention.h"

namespace attention {

/// A row's 1 / sum in two parts, eight times each: words of pairs of bfloat16.
static inline void invert(uint32 sum, int32 *__restrict high, int32 *__restrict low) {
    const uint32 x = (sum >> 8 & 0x7fff) | 0x8000;  // the mantissa over 2: from 1/2 to 1, in 2^-16
    uint32 y = 92521 - (x * 30840 >> 15);           // 1 / it in 2^-15, 2^15 to 2^16: 48/17 - 32/17 of it, within 1/17
    for (unsigned step = 0; step < 2; ++step) {
        const uint32 near_one = y * x >> 16;
        y = y * (65536 - near_one) >> 15;
        y = y > 65535 ? 65535 : y;
    }
    // y / 2^15 = upper / 2^7 + lower / 2^15, upper from 127 to 254, lower from 256 to 510: in 2^-14 from 128 to 255
    const uint32 upper = (y >> 8) - 1, lower = (y & 255) >> 1 | 128, less = upper < 128;
    const uint32 exponent = 253 - (sum >> 23);  // of 1/2 of a power of two's inverse
    fill<4>(high, static_cast<int32>(((exponent - less) << 7 | (upper << less & 127)) * 0x10001));
    fill<4>(low, static_cast<int32>(((exponent - 7) << 7 | (lower & 127)) * 0x10001));
}

}  // namespace attention

extern "C" void attention_end_bf16(float *o, int32 *__restrict words, int32_t pair) {
    using namespace attention;
    State *const state = reinterpret_cast<State *>(words);
    set_float_modes();
    event0();
    o += pair * pair_elements;
    bfloat16 *y = reinterpret_cast<bfloat16 *>(o);
    const unsigned first = 16 * pair;
    int32 *const parts = state->shift[first];  // of each row of tiles a tile of 64 bfloat16 for either part
    for (unsigned i = 0; i < 16; ++i) {
        int32 *const of_row = parts + i / 8 * 64 + i % 8 * 4;
        invert(static_cast<uint32>(state->sums[first + i][0]), of_row, of_row + 32);
    }
    for (unsigned i = 0; i < 2 * dim_tiles; ++i) {
        const auto high = aie::load_v<64>(reinterpret_cast<const bfloat16 *>(parts + i % 2 * 64));
        const auto low = aie::load_v<64>(reinterpret_cast<const bfloat16 *>(parts + i % 2 * 64 + 32));
        const BlockSums sums(aie::load_v<64>(o + i * 64));
        const auto rounded = sums.template to_vector<bfloat16>();
        const auto quotient = aie::mac(aie::mul(rounded, high), rounded, low);
        aie::store_v(y + i * 64, quotient.template to_vector<bfloat16>());
    }
    event1();
}
