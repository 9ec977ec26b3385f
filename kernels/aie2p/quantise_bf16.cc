// quantise_bf16: int8 codes of a row of TILE_ELEMENTS bfloat16, and their scale.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS bfloat16 and int8, V-byte aligned; TILE_ELEMENTS % V == 0.
//   s         a float, 4-byte aligned: max(|x|) / 127, to nearest even.
//   y is x / s, to nearest even, from -127 to 127; where it is within 127 * 2^-20 of a half either neighbour. A row whose
//   largest number is below 2^-100 has the scale 0 and codes of 0.
//   x is finite and below 2^118; elements below 2^-90 of the largest may count as 0.
//   Rounding: set to conv_even by every call, and stays.
//   Rows that come in chunks have the same results by quantise_largest_bf16 and quantise_results_bf16.
//
// The largest number has 8 bits of mantissa m: 1 / m is divided bit by bit, and 1 / 127 is a sum of powers of two. 127 / m
// is three bfloat16 parts of 22 bits; adding 1.5 * 2^23 to x times them rounds to an integer in a float's low bits. Sums
// start at 2^-100, so that none is zero, whose sign the core does not tell.
//
// Cost (modelled, not measured): a vector takes a load and a maximum, then a load, four products and a shuffle, and half
//   a store; about 150 cycles for a row's factor.
#include "../include/quantise.h"

extern "C" void quantise_bf16(const bfloat16 *__restrict x, int8 *__restrict y, int32 *__restrict s) {
    using namespace quantise;
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    codes(x, y, s, larger(aie::zeros<int16, lanes>(), x));
    event1();
}
