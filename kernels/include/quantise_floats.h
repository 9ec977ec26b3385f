// int8 codes of rows of float32, 127 x over their largest number.
#pragma once

#include "loops.h"
#include "row_coding.h"

#if !defined(TILE_ELEMENTS)
#error "say how long a row is, or a chunk of one: -DTILE_ELEMENTS=elements"
#endif

namespace quantise_floats {

using row_values::lanes;
using Largest = aie::vector<int32, lanes>;

/// Bits of the largest magnitudes before, and of x.
static inline Largest larger(const Largest &before, const float *__restrict x) {
    Largest found = before;
    const auto magnitude = aie::broadcast<int32, lanes>(0x7fffffff);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes)
        found = aie::max(found, aie::bit_and(row_state::load(reinterpret_cast<const int32 *>(x + i)), magnitude));
    return found;
}

static inline row_coding::Coding coding_of(uint32 largest) {
    const RowFloat most = row_floats::of_bits(largest);
    return {row_floats::inverse(most), row_floats::bits_of(row_floats::product(most, RowFloat{2164392968U, -6}))};
}

/// Codes of x and the scale of its row.
static inline void codes(const float *__restrict x, int8 *__restrict y, int32 *__restrict s, const Largest &of_row) {
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::none);
    constexpr uint32 least = 27 << 23;  // the bits of 2^-100
    const uint32 largest = static_cast<uint32>(aie::reduce_max(of_row));
    row_coding::Coding how = coding_of(largest < least ? least : largest);
    if (largest < least) how.factor = 0;
    *s = largest < least ? 0 : how.scale;
    row_coding::store<TILE_ELEMENTS>(y, how, [=](const row_values::Sums &start, unsigned i) {
        return row_values::product_added(start, row_values::load(x + i), row_values::ones());
    });
}

}  // namespace quantise_floats
