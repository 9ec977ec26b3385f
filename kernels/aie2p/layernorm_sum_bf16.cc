// layernorm_sum_bf16: the sum of a row of ROW_ELEMENTS, chunk by chunk of TILE_ELEMENTS bfloat16.
//
// Contract. As layernorm_bf16 has it, with TILE_ELEMENTS of the row at a time, in order; ROW_ELEMENTS % TILE_ELEMENTS == 0.
//   given     a chunk of x, with RESIDUAL=1 that of the residual behind it.
//   held      a chunk of w, and that of b behind it; not used.
//   made      with RESIDUAL=1 room for the chunk of the sum.
//   state     4 V bytes, with CODES=1 6, V-byte aligned; they stay from a row's first chunk to its results.
//   chunk     0 for the first one of a row.
#include "../include/layernorm.h"

extern "C" void layernorm_sum_bf16(const row_norm::X *__restrict given, const bfloat16 *__restrict,
                                   [[maybe_unused]] row_norm::X *__restrict made, int32 *__restrict state,
                                   int32 chunk) {
    using namespace layernorm;
    row_norm::begin();
    event0();
    keep(state, added(chunk == 0 ? Totals(aie::zeros<accfloat, lanes>()) : floats_at(state), CHUNK));
    event1();
}
