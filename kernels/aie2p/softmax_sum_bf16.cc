// softmax_sum_bf16: the sum of the powers of a row of ROW_ELEMENTS, chunk by chunk of TILE_ELEMENTS bfloat16.
//
// Contract. Operands as of softmax_largest_bf16, which made `state` of all chunks of the row; `made` is room to work in.
#include "../include/softmax.h"

extern "C" void softmax_sum_bf16(const bfloat16 *__restrict given, bfloat16 *__restrict made, int32 *__restrict state,
                                 int32 chunk) {
    using namespace softmax;
    begin();
    event0();
    const Lanes largest = largest_at(static_cast<const int32 *>(state));
    const Powers::Sums before = chunk == 0 ? aie::zeros<accfloat, lanes>() : sums_at(state);
    const auto sums = powers_of(given, made, largest, before).template to_vector<float>();
    row_state::store(state, sums.template cast_to<int32>());
    event1();
}
