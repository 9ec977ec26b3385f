// attention_align_bf16: results of two ranges of keys become relative to the larger M (kernels/include/attention.h).
//
// Contract. o and state of the range before and of the own one: of each row the sums and o whose power j is the smaller
//   one are multiplied by 2^(j - j'), exactly but for what falls below 2^-126: that is 0. The own j becomes the larger
//   one of those that have seen a key, so the sum of sums is 2^-40 at least. The state before keeps its j.
// Rare, as attention_rescale_bf16.
#include "../include/attention.h"

namespace attention {

/// A row's power j, `none` where it has seen no key.
static inline int32 power_of(const State *state, unsigned row) {
    return state->sums[row][0] == 0 ? none : state->power[row];
}

static inline void shift_all(float *o, int32 *sums, const int32 *shift) {
    for (unsigned row = 0; row < row_tiles; ++row) {
        shifted(sums + row * 64, shift + row * 64);
        for (unsigned i = 0; i < dim_tiles; ++i)
            shifted(reinterpret_cast<int32 *>(o) + place_in_o(row, i), shift + row * 64);
    }
}

}  // namespace attention

extern "C" void attention_align_bf16(float *__restrict o_before, int32 *__restrict before, float *__restrict o,
                                     int32 *__restrict words) {
    using namespace attention;
    State *const theirs = reinterpret_cast<State *>(before), *const state = reinterpret_cast<State *>(words);
    event0();
    for (unsigned row = 0; row < DIM_M; ++row) {
        const int32 mine = power_of(state, row), other = power_of(theirs, row), power = mine < other ? other : mine;
        fill(state->next[row], within(other - power, 254) * (1 << 23));
        fill(state->shift[row], within(mine - power, 254) * (1 << 23));
        state->power[row] = power;
    }
    shift_all(o_before, theirs->sums[0], state->next[0]);
    shift_all(o, state->sums[0], state->shift[0]);
    event1();
}
