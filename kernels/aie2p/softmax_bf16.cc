// softmax_bf16: y = exp(FACTOR (x - max(x))) over its sum, of a row of TILE_ELEMENTS bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS bfloat16 each, V-byte aligned; y apart from x. TILE_ELEMENTS * 2 % V == 0, <= 32768.
//   FACTOR    above 0, a float's literal, from 1e-6F to 1e6F.
//   y is within 2^-7 + 2^-12 + 2^-14 FACTOR (max(x) - x) of itself, and 2^-63, of the formula; what is below 2^-63 of the
//   largest is 0.
//   x is finite or minus infinity, which is taken as -2^100, as are all numbers below. So they give 0 beside a larger
//   one, and a row of them alone gives equal numbers.
//   Rounding: set to conv_even by every call, saturation to none, and stay.
//   Rows that come in chunks have the same results by softmax_{largest,sum,results}_bf16.
//
// e = 2^-(FACTOR log2(e) (max - x)) is made in fixed point (include/exp2.h): max - x as a float is cut to 23 bits below
// a power of two by adding that one, and multiplied by a constant of 16 bits. e is rounded to bfloat16, and of these the
// sum is made in float32, so that y sums up to 1 as far as its own rounding lets it. Lanes that equal the largest are
// 1: the sign of a difference that is zero is not told by the core, so another number takes their place till then.
//
// Cost (modelled, not measured): three passes; a vector takes a load and a maximum, then ten products, seven shifts with
//   rounding and 32 operations of the move slot, then a load, two products, a selection and a store.
#include "../include/softmax.h"

extern "C" void softmax_bf16(const bfloat16 *__restrict x, bfloat16 *__restrict y) {
    using namespace softmax;
    begin();
    event0();
    const Lanes largest = largest_of(larger(lowest(), x));
    scale(y, powers_of(x, y, largest, aie::zeros<accfloat, lanes>()));
    event1();
}
