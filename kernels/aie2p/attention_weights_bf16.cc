// attention_weights_bf16: weights of a block of keys, and their sums (kernels/include/attention.h).
//
// Contract. p = 2^x of x = c (s - MAGIC) for all tiles, 0 where x < -96 and where the score is masked, 2^100 above:
//   1. t = s - MAGIC in 1/256, cut to -128 .. 127.99;
//   2. x = t c1, rounded to 1/256 and cut to -127 .. 100; u = x + 127;
//   3. of u's fraction f, 2^f - 1 = f (0.66748 + 0.32813 f), 2.2e-3 of 2^f at most; rounded to bfloat16.
//   So p is within 2^-8 + 2.2e-3 + (2^-9 + 2^-9 c1) log(2) of 2^x. Every step is exact or rounded as told, so that all
//   implementations give the same bits; the core's own exponential is not used: what it rounds to is not published.
//   state.next = state.sums + sums of p's rows, of the digits that products of p have, tile by tile, high and low.
//   state.has_moved: 1 where one of next is outside of 2^-40 to 2^80 and there is no SOFT_CAP, else 0.
#include "../include/attention.h"

namespace attention {

using Words = aie::vector<uint16, 32>;
constexpr int bias = 127 * 256;  // u = x + 127

static inline Words words_of(unsigned value) { return aie::broadcast<uint16, 32>(static_cast<uint16>(value)); }

/// Weights of 32 scores.
static inline aie::vector<bfloat16, 32> weights(const float *s) {
    const auto bits = aie::load_v<32>(reinterpret_cast<const int32 *>(s));
    const auto cut = aie::min(aie::max(bits, static_cast<int32>(magic - 32768)), static_cast<int32>(magic + 32767));
    const auto t = aie::filter_even(cut.template cast_to<int16>());
    const auto scaled = aie::mac(aie::zeros<acc64, 32>(), t, words_of(scale.multiplier)).template to_vector<int16>(15);
    const auto x = aie::min(aie::max(scaled, static_cast<int16>(-bias)), static_cast<int16>(256 * largest_power));
    const Words u = aie::add(x.template cast_to<uint16>(), words_of(bias));
    const Words fraction = aie::bit_and(u, words_of(255));
    const aie::accum<acc64, 32> linear(words_of(21872), 0), whole(aie::sub(u, fraction), 15);
    const Words slope = aie::mac(linear, fraction, words_of(42)).template to_vector<uint16>(0);
    const Words found = aie::mac(whole, fraction, slope).template to_vector<uint16>(16);
    const auto small = aie::lt(u, words_of(bias + 256 * smallest_power));
    return aie::select(found, words_of(0), small).template cast_to<bfloat16>();
}

}  // namespace attention

extern "C" void attention_weights_bf16(const float *__restrict s, bfloat16 *__restrict p, int32 *__restrict words) {
    using namespace attention;
    State *const state = reinterpret_cast<State *>(words);
    set_float_modes();
    aie::set_saturation(aie::saturation_mode::saturate);
    event0();
    const BlockTile identity = minus_identity(), ones = constant_tile(1.0F);
    uint32 moved = 0;
    for (unsigned row = 0; row < row_tiles; ++row) {
        float *const sums = reinterpret_cast<float *>(state->sums[8 * row]);
        int32 *const next = state->next[8 * row];
        BlockProduct c(BlockSums(aie::load_v<64>(sums)));
        for (unsigned key = 0; key < key_tiles; ++key) {
            aie::store_v(p, weights(s));
            aie::store_v(p + 32, weights(s + 32));
            const Digits digits = digits_at(p, identity);
            c.mac(digits.high, ones);
            if constexpr (DIGITS == 2)
                c.mac(digits.low, ones);
            s += 64;
            p += 64;
        }
        aie::store_v(reinterpret_cast<float *>(next), c.template to_vector<float>());
        for (unsigned i = 0; i < 64; i += 16) {
            const auto sum = aie::load_v<16>(next + i);
            moved |= aie::lt(sum, low_sum).count() | aie::gt(sum, high_sum).count();
        }
    }
    state->has_moved = moved != 0 && SOFT_CAP == 0;
    event1();
}
