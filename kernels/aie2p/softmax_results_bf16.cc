// softmax_results_bf16: results of a chunk of TILE_ELEMENTS of a row of ROW_ELEMENTS, with the bits of softmax_bf16.
//
// Contract. Operands as of softmax_sum_bf16, which made `state` of all chunks of the row.
//   made      the chunk of y.
#include "../include/softmax.h"

extern "C" void softmax_results_bf16(const bfloat16 *__restrict given, bfloat16 *__restrict made,
                                     const int32 *__restrict state, int32) {
    using namespace softmax;
    begin();
    event0();
    powers_of(given, made, largest_at(state), aie::zeros<accfloat, lanes>());
    scale(made, sums_at(state));
    event1();
}
