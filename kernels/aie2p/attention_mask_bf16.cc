// attention_mask_bf16: scores of keys that a query must not see become MASKED (kernels/include/attention.h).
//
// Contract. Of line i and key j of the block, at positions p = state.position + i / HEADS (lines that are left as the
//   last query) and t = state.start + j: masked unless state.fresh <= t < state.keys, and t <= p (CAUSAL), and t > p - WINDOW (WINDOW). s is changed in place.
#include "../include/attention.h"


namespace attention {

/// Bits of the columns below x, from 0 to 8.
static inline uint32 below(int32 x) { return x <= 0 ? 0 : x >= 8 ? 255 : (1u << x) - 1; }

/// A bit for each of 8 keys from `first` on that the query at `position` sees.
static inline uint32 seen(const State *state, int32 first, int32 position) {
    uint32 bits = below(state->keys - first) & ~below(state->fresh - first);
    if (CAUSAL)
        bits &= below(position + 1 - first);
    if (WINDOW)
        bits &= ~below(position + 1 - WINDOW - first);
    return bits;
}

/// Where the query of a line stands among the keys.
static inline int32 position_of(const State *state, unsigned line) {
    const auto query = static_cast<int32>(line / HEADS);
    return state->position + (query < item_queries ? query : item_queries - 1);
}

}  // namespace attention

extern "C" void attention_mask_bf16(float *__restrict s, int32 *__restrict words) {
    using namespace attention;
    const State *const state = reinterpret_cast<const State *>(words);
    event0();
    int32 *tile = reinterpret_cast<int32 *>(s);
    const auto hidden = aie::broadcast<int32, 16>(masked);
    for (unsigned row = 0; row < row_tiles; ++row)
        for (unsigned key = 0; key < key_tiles; ++key)
            for (unsigned pair = 0; pair < 8; pair += 2) {
                const int32 first = state->start + static_cast<int32>(8 * key);
                const unsigned line = 8 * row + pair;
                const uint32 upper = seen(state, first, position_of(state, line));
                const uint32 bits = upper | seen(state, first, position_of(state, line + 1)) << 8;
                const auto shown = aie::mask<16>::from_uint32(bits);
                aie::store_v(tile, aie::select(hidden, aie::load_v<16>(tile), shown));
                tile += 16;
            }
    event1();
}
