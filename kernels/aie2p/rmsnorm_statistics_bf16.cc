// rmsnorm_statistics_bf16: what RMSNorm needs of a row of ROW_ELEMENTS, from a chunk of TILE_ELEMENTS bfloat16.
//
// Contract. As rmsnorm_bf16 has it, with TILE_ELEMENTS of the row at a time, in order; ROW_ELEMENTS % TILE_ELEMENTS == 0.
//   given     a chunk of x, with RESIDUAL=1 that of the residual behind it.
//   held      a chunk of w.
//   made      with RESIDUAL=1 room for the chunk of the sum.
//   state     4 V bytes, V-byte aligned; they stay from a row's first chunk to its results.
//   chunk     0 for the first one of a row.
#include "../include/rmsnorm.h"

extern "C" void rmsnorm_statistics_bf16(const row_norm::X *__restrict given, const bfloat16 *__restrict held,
                                        [[maybe_unused]] row_norm::X *__restrict made, int32 *__restrict state,
                                        int32 chunk) {
    row_norm::begin();
    event0();
    rmsnorm::Statistics of;
    if (chunk != 0) of.load(state);
    of.add(CHUNK, held);
    of.store(state);
    event1();
}
