// quantise_results_f32: codes of a chunk of TILE_ELEMENTS of a row, with the bits of quantise_f32.
//
// Contract. Operands as of quantise_largest_f32, which made `state` of all chunks of the row.
//   made      int8 codes, and behind them the row's scale.
#include "../include/quantise_floats.h"

extern "C" void quantise_results_f32(const float *__restrict given, int8 *__restrict made,
                                     const int32 *__restrict state, int32) {
    using namespace quantise_floats;
    event0();
    codes(given, made, reinterpret_cast<int32 *>(made + TILE_ELEMENTS), row_state::load(state));
    event1();
}
