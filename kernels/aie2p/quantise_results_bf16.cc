// quantise_results_bf16: codes of a chunk of TILE_ELEMENTS of a row, with the bits of quantise_bf16.
//
// Contract. Operands as of quantise_largest_bf16, which made `state` of all chunks of the row.
//   made      int8 codes, and behind them the row's scale.
#include "../include/quantise.h"

extern "C" void quantise_results_bf16(const bfloat16 *__restrict given, int8 *__restrict made,
                                      const int32 *__restrict state, int32) {
    using namespace quantise;
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    codes(given, made, reinterpret_cast<int32 *>(made + TILE_ELEMENTS),
          aie::load_v<lanes>(reinterpret_cast<const int16 *>(state)));
    event1();
}
