// layernorm_largest_bf16: the largest number of a normed row of ROW_ELEMENTS, chunk by chunk of TILE_ELEMENTS, for codes.
//
// Contract. Operands as of layernorm_squares_bf16, which made `state` of all chunks of the row; CODES=1.
#include "../include/layernorm.h"

extern "C" void layernorm_largest_bf16(const row_norm::X *__restrict given, const bfloat16 *__restrict held,
                                       [[maybe_unused]] row_norm::X *__restrict made, int32 *__restrict state,
                                       int32 chunk) {
    using namespace layernorm;
    row_norm::begin();
    event0();
    int32 *kept = state + 2 * lanes;
    const norm_codes::Largest before = chunk == 0 ? aie::zeros<int32, lanes>() : row_state::load(kept);
    const Totals less_mean = less_mean_of(floats_at(state)), squares = floats_at(state + lanes);
    row_state::store(kept, larger(before, CHUNK, held, held + TILE_ELEMENTS, less_mean, squares));
    event1();
}
