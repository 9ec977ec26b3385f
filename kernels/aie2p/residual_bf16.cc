// residual_bf16: sum = x + r s c, a row of TILE_ELEMENTS; s is the row's scale, c that of all rows.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, r, sum   TILE_ELEMENTS bfloat16, V-byte aligned, sum apart from the others; TILE_ELEMENTS * 2 % V == 0.
//               X_F32=1: x and sum are float32, taken whole.
//   s, c        a float each, at multiples of 4 bytes.
//   f = s c in float32, of six products of bfloat16 parts, within 2^-22 of itself; f is the sum of three such parts exactly. r times
//   these is added to x from the least part on, in float32, then rounded once: sum is within an ulp's half of its type and
//   2^-21 (|x| + |r f|) of the formula.
//   A zero is +0; of float32 the sum of two -0 is either 0.
//   s, c and s c are 0 or of magnitude 2^-90 to 2^90; x, r f and their sum are finite. Parts below 2^-126 count as 0.
//   Rounding: set to conv_even by every call, and stays.
//
// Cost (modelled, not measured): a vector takes two loads, four products and a store that converts; machine
//   code of AIE2P 7 cycles, and 89 for a row (counted).
#include "../include/loops.h"
#include "../include/row_scale.h"

#if !defined(TILE_ELEMENTS)
#error "say how long a row is: -DTILE_ELEMENTS=elements"
#endif

#if X_F32
using X = float;
static inline row_values::Sums start(const float *x) { return row_values::load_sums(x); }
#else
using X = bfloat16;
static inline row_values::Sums start(const bfloat16 *x) {
    return row_values::added(aie::zeros<accfloat, row_values::lanes>(), row_values::load(x));  // +0 of either 0
}
#endif

extern "C" void residual_bf16(const X *__restrict x, const bfloat16 *__restrict r, const float *__restrict s,
                              const float *__restrict c, X *__restrict sum) {
    using row_values::lanes;
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    const row_values::Floats factor = row_scale::factor(s, c);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes)
        row_values::store(sum + i, row_scale::added(start(x + i), row_values::load(r + i), factor));
    event1();
}
