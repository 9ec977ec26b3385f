// attention_join_bf16: adds the result of the ranges of keys before (kernels/include/attention.h).
//
// Contract. o and state of the ranges before and of the own one, relative to one M. o += o_before, and the own sums those
//   of weights, in float32. Of a range without a key all are +0, which changes nothing.
#include "../include/attention.h"

namespace attention {

static inline void add(float *__restrict sums, const float *__restrict more, unsigned tiles) {
    for (unsigned i = 0; i < tiles * 64; i += 64) {
        const BlockSums one(aie::load_v<64>(sums + i)), other(aie::load_v<64>(more + i));
        aie::store_v(sums + i, aie::add(one, other).template to_vector<float>());
    }
}

}  // namespace attention

extern "C" void attention_join_bf16(const float *__restrict o_before, const int32 *__restrict before,
                                    float *__restrict o, int32 *__restrict words) {
    using namespace attention;
    State *const state = reinterpret_cast<State *>(words);
    set_float_modes();
    event0();
    const auto *const sums = reinterpret_cast<const State *>(before)->sums[0];
    add(o, o_before, row_tiles * dim_tiles);
    add(reinterpret_cast<float *>(state->sums[0]), reinterpret_cast<const float *>(sums), row_tiles);
    event1();
}
