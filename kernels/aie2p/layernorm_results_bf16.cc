// layernorm_results_bf16: results of a chunk of TILE_ELEMENTS of a row of ROW_ELEMENTS, with the bits of layernorm_bf16.
//
// Contract. Operands as of layernorm_squares_bf16, which made `state` of all chunks of the row.
//   made      with RESIDUAL=1 the chunk of the sum, then y.
#include "../include/layernorm.h"

extern "C" void layernorm_results_bf16(const row_norm::X *__restrict given, const bfloat16 *__restrict held,
                                       row_norm::X *__restrict made, const int32 *__restrict state,
                                       int32) {
    using namespace layernorm;
    row_norm::begin();
    event0();
    bfloat16 *__restrict y = reinterpret_cast<bfloat16 *>(made + RESIDUAL * TILE_ELEMENTS);
    results(CHUNK, held, held + TILE_ELEMENTS, y, less_mean_of(floats_at(state)), floats_at(state + lanes));
    event1();
}
