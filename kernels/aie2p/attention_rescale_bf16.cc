// attention_rescale_bf16: moves M where a sum of weights would be too large or small (kernels/include/attention.h).
//
// Contract. Of rows whose sum state.next is outside of 2^-40 to 2^80, M becomes so large that the largest weight of the
//   block is 2^-3 to 1, or the sum before it 1 to 2 where that is larger; rows that have seen no key stay. s,
//   state.sums and o are those of the new M; weights and next are to be made again. o and sums are multiplied by
//   2^(j - j'), exactly but for what falls below 2^-126: that is 0.
//   Scores are exact up to 2^22 2^K, and M's c within 2^16 of 0: |SCORE_SCALE q k^T| up to 45,000.
// Rare: the only one that is slow, and in integers, since a core's float operations on scalars are.
#include "../include/attention.h"

namespace attention {

constexpr int32 unit = scale.exponent - 8;  // of t: 2^(exponent - 8)

/// Floats' order as that of integers.
static inline int32 ordered(int32 bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }

/// A float less MAGIC, in 2^unit: within 2^30.
static inline int32 distance(int32 bits) {
    const int32 mantissa = (bits & 0x7fffff) | 0x800000;
    const int shift = ((bits >> 23) & 255) - 127 - 23 - unit;
    const int32 size = shift > 6 ? 1 << 30 : shift >= 0 ? mantissa << shift : shift > -24 ? mantissa >> -shift : 0;
    return (bits < 0 ? -size : size) - 0xc00000;
}

/// By how much j moves for row i of a tile row; `none` where the row has seen no key.
static inline int32 wanted(const State *state, const int32 *scores, unsigned i) {
    int32 largest = ordered(masked);
    for (unsigned key = 0; key < key_tiles; ++key)
        for (unsigned j = 0; j < 8; ++j)
            largest = ordered(scores[key * 64 + j]) > largest ? ordered(scores[key * 64 + j]) : largest;
    int32 move = none;
    if (largest != ordered(masked)) {
        const int32 far = distance(ordered(largest)) >> 8;  // in 2^exponent
        const auto rest = static_cast<uint32>(far & 32767) * scale.multiplier >> 15;
        move = (far >> 15) * static_cast<int32>(scale.multiplier) + static_cast<int32>(rest) + 2;
    }
    const int32 sum = (state->sums[i][0] >> 23) - 127;
    return state->sums[i][0] != 0 && sum > move ? sum : move;
}

/// M of j, in 2^(exponent - 14): odd.
static inline int32 offset_of(int32 power) {
    return (power * scale.inverse_high + (power * scale.inverse_low >> 14)) | 1;
}

/// Row i moves; what its scores change by, as a float in `change`.
static inline void move_row(State *state, const int32 *scores, unsigned i, int32 *change) {
    const int32 sum = state->next[i][0];
    const bool outside = sum < low_sum || sum > high_sum;
    const int32 move = outside ? wanted(state, scores, i) : none;
    const int32 before = state->power[i], power = move == none ? before : within(before + move, 65535);
    const int32 offset = power == before ? state->offset[i] : offset_of(power);
    const int32 less = offset - state->offset[i];
    fill(change, less == 0 ? 0 : float_bits(-less, scale.exponent - 14));
    fill(state->begin[i], float_bits(-offset, scale.exponent - 14));
    fill(state->shift[i], within(before - power, 254) * (1 << 23));
    state->power[i] = power;
    state->offset[i] = offset;
}

}  // namespace attention

extern "C" void attention_rescale_bf16(float *__restrict s, float *__restrict o, int32 *__restrict words) {
    using namespace attention;
    State *const state = reinterpret_cast<State *>(words);
    set_float_modes();
    event0();
    for (unsigned row = 0; row < row_tiles; ++row) {
        float *const scores = s + row * key_tiles * 64;
        int32 *const change = state->next[8 * row];
        for (unsigned i = 0; i < 8; ++i)
            move_row(state, reinterpret_cast<const int32 *>(scores) + 8 * i, 8 * row + i, change + 8 * i);
        const BlockSums by(aie::load_v<64>(reinterpret_cast<const float *>(change)));
        for (unsigned key = 0; key < key_tiles; ++key) {
            const BlockSums tile(aie::load_v<64>(scores + key * 64));
            aie::store_v(scores + key * 64, aie::add(tile, by).template to_vector<float>());
        }
        shifted(state->sums[8 * row], state->shift[8 * row]);
        for (unsigned i = 0; i < dim_tiles; ++i)
            shifted(reinterpret_cast<int32 *>(o) + place_in_o(row, i), state->shift[8 * row]);
    }
    event1();
}
