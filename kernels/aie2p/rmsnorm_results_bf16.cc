// rmsnorm_results_bf16: results of a chunk of TILE_ELEMENTS of a row of ROW_ELEMENTS, with the bits of rmsnorm_bf16.
//
// Contract. Operands as of rmsnorm_statistics_bf16, which made `state` of all chunks of the row.
//   made      with RESIDUAL=1 the chunk of the sum, then y; with CODES=1 int8 codes, and behind them the row's scale.
#include "../include/rmsnorm.h"

extern "C" void rmsnorm_results_bf16(const row_norm::X *__restrict given, const bfloat16 *__restrict held,
                                     row_norm::X *__restrict made, const int32 *__restrict state, int32) {
    row_norm::begin();
    event0();
    rmsnorm::Statistics of;
    of.load(state);
    bfloat16 *__restrict y = reinterpret_cast<bfloat16 *>(made + RESIDUAL * TILE_ELEMENTS);
#if CODES
    aie::set_saturation(aie::saturation_mode::none);
    of.codes(CHUNK, held, reinterpret_cast<int8 *>(y), reinterpret_cast<int32 *>(y + TILE_ELEMENTS / 2));
#else
    of.results(CHUNK, held, y);
#endif
    event1();
}
