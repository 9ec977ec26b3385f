// quantise_f32: int8 codes of a row of TILE_ELEMENTS floats, and their scale.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS float and int8, V-byte aligned; TILE_ELEMENTS % V == 0.
//   s         a float, 4-byte aligned: max(|x|) / 127, within 2^-22 of itself.
//   y is 127 x / max(|x|), to nearest even, from -127 to 127; where it is within 127 * 2^-20 of a half either neighbour. A
//   row whose largest number is below 2^-100 has the scale 0 and codes of 0.
//   x is finite and below 2^118.
//   Rounding: set to conv_even by every call, saturation to none, and stay.
//   Rows that come in chunks have the same results by quantise_largest_f32 and quantise_results_f32.
//
// Cost (modelled, not measured): a vector takes two loads and a maximum, then two loads, four products and three conversions
//   for the parts of x, three products of them, eight moves, a subtraction and three products for codes; about 500 for a row.
//   Machine code of AIE2P takes 22 cycles, and 313 for a row (counted).
#include "../include/quantise_floats.h"

extern "C" void quantise_f32(const float *__restrict x, int8 *__restrict y, int32 *__restrict s) {
    using namespace quantise_floats;
    event0();
    codes(x, y, s, larger(aie::zeros<int32, lanes>(), x));
    event1();
}
