// attention_scores_bf16: scores of an item's queries and the next block of keys (kernels/include/attention.h).
//
// Contract. s = MAGIC + (q k^T - M), for all tiles of s: in float32, -M first, then tile by tile along DIM_K high q *
//   high k, high q * low k, low q * high k, then MAGIC. q k^T is off by 3 * 2^-14 of the product of each operand's
//   largest of 8, eight times, and by roundings of the sum; s rounds it to 2^(K - 8).
//   state: start, fresh and has_mask become those of the block, block is counted on. WINDOW: keys that a query sees,
//   the last of them its own (0: all); CAUSAL: no key behind its own. All but the last block of keys begin DIM_N apart;
//   that one moves back until it ends with them.
// Cost (modelled, not measured): 3 products and 1 for low digits of k to a tile and depth, which other operations hide.
#include "../include/attention.h"


namespace attention {

static inline void take_block(State *state) {
    const int32 fresh = state->block * DIM_N, keys = state->keys;
    int32 start = keys > DIM_N ? keys - DIM_N : 0;
    if (fresh < start)
        start = fresh;
    bool mask = start < fresh || start + DIM_N > keys;
    if (CAUSAL)
        mask = mask || start + DIM_N - 1 > state->position;
    if (WINDOW)
        mask = mask || start <= state->position + item_queries - 1 - WINDOW;
    state->start = start;
    state->fresh = fresh;
    state->has_mask = mask;
    state->block += 1;
}

}  // namespace attention

extern "C" void attention_scores_bf16(const bfloat16 *__restrict q, const bfloat16 *__restrict k, float *__restrict s,
                                      int32 *__restrict words) {
    using namespace attention;
    State *const state = reinterpret_cast<State *>(words);
    set_float_modes();
    event0();
    take_block(state);
    const BlockTile identity = minus_identity();
    const BlockSums point(aie::broadcast<int32, 64>(magic).cast_to<float>());
    for (unsigned row = 0; row < row_tiles; row += 2) {
        const float *const begin = reinterpret_cast<const float *>(state->begin[8 * row]);
        const BlockSums upper(aie::load_v<64>(begin)), lower(aie::load_v<64>(begin + 64));
        for (unsigned key = 0; key < key_tiles; key += 2) {
            BlockProduct c[2][2] = {{BlockProduct(upper), BlockProduct(upper)},
                                    {BlockProduct(lower), BlockProduct(lower)}};
            multiply_digits<false, dim_tiles>(q + row * dim_tiles * 64, k + key * dim_tiles * 64, c, identity);
            for (unsigned i = 0; i < 2; ++i)
                for (unsigned j = 0; j < 2; ++j)
                    aie::store_v(s + ((row + i) * key_tiles + key + j) * 64,
                                 aie::add(c[i][j].product.to_accum(), point).template to_vector<float>());
        }
    }
    event1();
}
