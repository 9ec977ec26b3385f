// int8 codes of normed rows: the largest number of a row, and what codes are made with.
#pragma once

#include "row_coding.h"
#include "row_norm.h"

#ifndef CODES
#define CODES 0
#endif

namespace norm_codes {

using namespace row_norm;
using row_coding::Coding;
using Largest = aie::vector<int32, lanes>;

/// Of magnitudes, as bits.
static inline Largest larger(const Largest &before, const row_values::Sums &of) {
    const auto bits = of.template to_vector<float>().template cast_to<int32>();
    return aie::max(before, aie::bit_and(bits, aie::broadcast<int32, lanes>(0x7fffffff)));
}

/// The mean of the bits of a sum of squares.
static inline RowFloat mean_of(uint32 sum) { return row_floats::product(row_floats::of_bits(sum), Inverse().exact()); }

/// Of the bits of the sum of squares and of the largest u, of which the norm is u / sqrt(mean).
static inline Coding coding(uint32 sum, const Largest &largest) {
    using namespace row_floats;
    const RowFloat root = row_floats::inverse_root(mean_of(sum));
    const RowFloat most = of_bits(static_cast<uint32>(aie::reduce_max(largest)));
    const RowFloat normed = product(most, root);                             // the largest |y|
    const bool less = bits_of(normed) < 0x3727c5ac;                          // 1e-5
    const RowFloat clamped = product(root, RowFloat{3276800000U, 17});       // 1e5 r
    const RowFloat inverse_d = less ? clamped : row_floats::inverse(most);
    const int scale = bits_of(product(normed, RowFloat{2164392968U, -6}));   // 1 / 127
    return {inverse_d, less ? 0x33a917dc : scale};  // 1e-5 / 127
}

}  // namespace norm_codes
