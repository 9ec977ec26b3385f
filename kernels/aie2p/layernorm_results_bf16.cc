// layernorm_results_bf16: results of a chunk of TILE_ELEMENTS of a row of ROW_ELEMENTS, with the bits of layernorm_bf16.
//
// Contract. Operands as of layernorm_squares_bf16, which made `state` of all chunks of the row, with CODES=1 as of layernorm_largest_bf16.
//   made      with RESIDUAL=1 the chunk of the sum, then y; with CODES=1 int8 codes, and behind them the row's scale.
#include "../include/layernorm.h"

extern "C" void layernorm_results_bf16(const row_norm::X *__restrict given, const bfloat16 *__restrict held,
                                       row_norm::X *__restrict made, const int32 *__restrict state,
                                       int32) {
    using namespace layernorm;
    row_norm::begin();
    event0();
    bfloat16 *__restrict y = reinterpret_cast<bfloat16 *>(made + RESIDUAL * TILE_ELEMENTS);
#if CODES
    int8 *__restrict found = reinterpret_cast<int8 *>(y);
    codes(CHUNK, held, held + TILE_ELEMENTS, found, reinterpret_cast<int32 *>(found + TILE_ELEMENTS),
          less_mean_of(floats_at(state)), floats_at(state + lanes), row_state::load(state + 2 * lanes));
#else
    results(CHUNK, held, held + TILE_ELEMENTS, y, less_mean_of(floats_at(state)), floats_at(state + lanes));
#endif
    event1();
}
