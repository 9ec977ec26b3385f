// elementwise_bf16: y = f(a, b), element by element of one core tile of bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   a, b, y   TILE_ELEMENTS bfloat16 each, in one order, V-byte aligned; y apart from a and b. Called once for each tile.
//             Functions of one operand (OPERANDS=1) are called with a and y.
//   TILE_ELEMENTS * 2 % V == 0.
//   FUNCTION = add          y = bf16(a + b)
//              mul          y = bf16(a * b)
//              relu2_gate   y = bf16(bf16(relu(a)^2) * b), BitNet's gate: relu(a) is a, or 0 where a's sign is set
//              silu, gelu   y = bf16(a * s), s = bf16(sigmoid(a)), or that of GELU's tanh form (include/sigmoid.h)
//              silu_gate, gelu_gate   y = bf16(bf16(a * s) * b)
//   s is within (2^-8 + 2^-11) s of the function's value, of gelu within 2^-8 min(1, |a| / 8) s more, from a = -87 (gelu:
//   -9.875) on; below, it stays what it is there. a is finite.
//   bf16() is to nearest, ties to even, and beyond the largest number infinity. Sums and products are rounded in no other
//   place: those of bfloat16 are exact in float32 where that rounding could tell.
//   Special values are those of IEEE 754. Signs count even of NaN: relu(-0) is 0, and so is relu of a NaN whose sign is
//   set. Which NaN comes out is open. Subnormals are kept on the host; the device flushes them to 0 wherever they occur.
//   Rounding: set to conv_even by every call, saturation to none, and stay.
//
// Cost (modelled, not measured): V/2 elements take 2 loads, a store that converts, and for add two conversions and a
//   float sum, for mul a product, for relu2_gate a maximum of integers, two products and a conversion. The busiest slot
//   has 2, 1 and 2 of them, so many cycles in steady state. The others are counted as assembled.
#include "../include/arch.h"
#include "../include/functions.h"
#include "../include/loops.h"

#if !defined(FUNCTION) || !defined(TILE_ELEMENTS)
#error "say what is computed of which tile: -DFUNCTION=add (or mul, relu2_gate) ... -DTILE_ELEMENTS=elements"
#endif

template <class... Operands>
static inline void tile_of(bfloat16 *__restrict y, const Operands *__restrict... operands) {
    constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "the tile must be whole vectors");
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::none);
    event0();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes)
        aie::store_v(y + i, functions_of_bf16::FUNCTION<lanes>::of(aie::load_v<lanes>(operands + i)...));
    event1();
}

#if defined(OPERANDS) && OPERANDS == 1
extern "C" void elementwise_bf16(const bfloat16 *__restrict a, bfloat16 *__restrict y) { tile_of(y, a); }
#else
extern "C" void elementwise_bf16(const bfloat16 *__restrict a, const bfloat16 *__restrict b, bfloat16 *__restrict y) {
    tile_of(y, a, b);
}
#endif
