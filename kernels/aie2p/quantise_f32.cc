// quantise_f32: int8 codes of a row of TILE_ELEMENTS floats, and their scale.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS float and int8, V-byte aligned; TILE_ELEMENTS % V == 0.
//   s         a float, V-byte aligned: max(|x|) / 127, within 2^-22 of itself.
//   y is 127 x / max(|x|), to nearest even, from -127 to 127; where it is within 127 * 2^-20 of a half either neighbour. A
//   row whose largest number is below 2^-100 has the scale 0 and codes of 0.
//   x is finite and below 2^118.
//   Rounding: set to conv_even by every call, saturation to none, and stay.
//
// Cost (modelled, not measured): a vector takes two loads and a maximum, then two loads, four products and three conversions
//   for the parts of x, three products of them, eight moves, a subtraction and three products for codes; about 500 for a row.
//   Machine code of AIE2P takes 22 cycles, and 313 for a row (counted).
#include "../include/loops.h"
#include "../include/row_coding.h"

#if !defined(TILE_ELEMENTS)
#error "say how long a row is: -DTILE_ELEMENTS=elements"
#endif

namespace quantise_floats {

using row_values::lanes;

static inline uint32 largest_of(const float *__restrict x) {
    auto found = aie::zeros<int32, lanes>();
    const auto magnitude = aie::broadcast<int32, lanes>(0x7fffffff);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes)
        found = aie::max(found, aie::bit_and(row_state::load(reinterpret_cast<const int32 *>(x + i)), magnitude));
    return static_cast<uint32>(aie::reduce_max(found));
}

static inline row_coding::Coding coding_of(uint32 largest) {
    const RowFloat most = row_floats::of_bits(largest);
    return {row_floats::inverse(most), row_floats::bits_of(row_floats::product(most, RowFloat{2164392968U, -6}))};
}

}  // namespace quantise_floats

extern "C" void quantise_f32(const float *__restrict x, int8 *__restrict y, int32 *__restrict s) {
    using namespace quantise_floats;
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % (2 * lanes) == 0, "a row of codes must be whole vectors");
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::none);
    event0();
    constexpr uint32 least = 27 << 23;  // the bits of 2^-100
    const uint32 largest = largest_of(x);
    row_coding::Coding how = coding_of(largest < least ? least : largest);
    if (largest < least) how.factor = 0;
    *s = largest < least ? 0 : how.scale;
    row_coding::store<TILE_ELEMENTS>(y, how, [=](const row_values::Sums &start, unsigned i) {
        return row_values::product_added(start, row_values::load(x + i), row_values::ones());
    });
    event1();
}
