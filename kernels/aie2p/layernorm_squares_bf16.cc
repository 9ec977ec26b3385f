// layernorm_squares_bf16: the sum of the squares of x - mean of a row of ROW_ELEMENTS, chunk by chunk of TILE_ELEMENTS.
//
// Contract. Operands as of layernorm_sum_bf16, which made `state` of all chunks of the row.
#include "../include/layernorm.h"

extern "C" void layernorm_squares_bf16(const row_norm::X *__restrict given, const bfloat16 *__restrict,
                                       [[maybe_unused]] row_norm::X *__restrict made, int32 *__restrict state,
                                       int32 chunk) {
    using namespace layernorm;
    row_norm::begin();
    event0();
    const Totals squares = chunk == 0 ? Totals(aie::zeros<accfloat, lanes>()) : floats_at(state + lanes);
    keep(state + lanes, squares_added(squares, CHUNK, less_mean_of(floats_at(state))));
    event1();
}
