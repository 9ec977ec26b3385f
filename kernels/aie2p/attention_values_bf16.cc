// attention_values_bf16: adds a block's values, weighted (kernels/include/attention.h).
//
// Contract. o += p v for all tiles of o: in float32, from the first key on, two block floats for each operand along the
//   keys: high * high, then high p * low v, then low p * high v, key tile by key tile. state.sums = state.next.
//   A product is within 2^-14 of the largest p of 8 keys times the largest v of them of p v.
// Cost (modelled, not measured): 3 products to a tile and 8 keys, and one for low digits of v to every row of tiles;
//   transposing and o's loads and stores hide behind them.
#include "../include/attention.h"

extern "C" void attention_values_bf16(const bfloat16 *__restrict p, const bfloat16 *__restrict v, float *__restrict o,
                                      int32 *__restrict words) {
    using namespace attention;
    State *const state = reinterpret_cast<State *>(words);
    set_float_modes();
    event0();
    const BlockTile identity = minus_identity();
    for (unsigned row = 0; row < row_tiles; row += 2)
        for (unsigned column = 0; column < dim_tiles; column += 2) {
            float *const at = o + place_in_o(row, column);
            BlockProduct c[2][2];
            for (unsigned i = 0; i < 2; ++i)
                for (unsigned j = 0; j < 2; ++j)
                    c[i][j] = BlockProduct(BlockSums(aie::load_v<64>(at + place_in_o(i, j))));
            multiply_digits<true, key_tiles>(p + row * key_tiles * 64, v + column * key_tiles * 64, c, identity);
            for (unsigned i = 0; i < 2; ++i)
                for (unsigned j = 0; j < 2; ++j)
                    aie::store_v(at + place_in_o(i, j), c[i][j].template to_vector<float>());
        }
    for (unsigned i = 0; i < DIM_M; i += 2) {  // rows of two tiles
        const auto next = aie::load_v<16>(reinterpret_cast<const int32 *>(state->next + i));
        aie::store_v(reinterpret_cast<int32 *>(state->sums + i), next);
    }
    event1();
}
