// elementwise_i8: y = f(a, b), element by element of one core tile of int8.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   a, b, y   TILE_ELEMENTS int8 each, in one order, V-byte aligned; y apart from a and b. Called once for each tile.
//   TILE_ELEMENTS % V == 0.
//   y = saturate(round(f / 2^SHIFT)), with f exact in 32 bit:
//   FUNCTION = add          f = a + b
//              mul          f = a * b
//              relu2_gate   f = relu(a)^2 * b, at most 127^2 * 128 < 2^21
//   SHIFT is 0 to 31, 0 by default. ROUNDING names an aie::rounding_mode, conv_even by default. Saturation is to -128 and
//   127. Both modes are set by every call and stay.
//
// Cost (modelled, not measured): V elements take 2 loads, a store that shifts, rounds and saturates, and for add two
//   widenings and a sum, for mul a product, for relu2_gate a maximum, a product and then, in 16 bit and on AIE2P so in
//   halves, a narrowing, an unpacking and a product. The busiest slot has 2, 1 and 3 of them (AIE2: 2), so many cycles in
//   steady state.
#include "../include/arch.h"
#include "../include/loops.h"

#if !defined(FUNCTION) || !defined(TILE_ELEMENTS)
#error "say what is computed of which tile: -DFUNCTION=add (or mul, relu2_gate) -DTILE_ELEMENTS=elements"
#endif
#ifndef SHIFT
#define SHIFT 0
#endif
#ifndef ROUNDING
#define ROUNDING conv_even
#endif

namespace functions_of_i8 {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(int8);
using Lanes = aie::vector<int8, lanes>;
using Sums = aie::accum<acc32, lanes>;

struct add {
    static Sums of(const Lanes &a, const Lanes &b) { return aie::add(Sums(a), Sums(b)); }
};

struct mul {
    static Sums of(const Lanes &a, const Lanes &b) { return aie::mul(a, b); }
};

struct relu2_gate {
    static Sums of(const Lanes &a, const Lanes &b) {
        const Lanes positive = aie::max(a, aie::zeros<int8, lanes>());
        return aie::mul(mul::of(positive, positive).template to_vector<int16>(), b.unpack());  // 127^2 fits in 16 bit
    }
};

}  // namespace functions_of_i8

extern "C" void elementwise_i8(const int8 *__restrict a, const int8 *__restrict b, int8 *__restrict y) {
    constexpr unsigned lanes = functions_of_i8::lanes;
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "the tile must be whole vectors");
    static_assert(SHIFT >= 0 && SHIFT <= 31, "SHIFT is 0 to 31");
    aie::set_rounding(aie::rounding_mode::ROUNDING);
    aie::set_saturation(aie::saturation_mode::saturate);
    event0();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const auto result = functions_of_i8::FUNCTION::of(aie::load_v<lanes>(a + i), aie::load_v<lanes>(b + i));
        aie::store_v(y + i, result.template to_vector<int8>(SHIFT));
    }
    event1();
}
