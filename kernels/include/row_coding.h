// int8 codes of rows, round(127 x w / D) with ties to even, D at least the largest |x w| of the row.
//
// x w is added to a float 1.5 * 2^k of which the last bit is 2^-22 of D or less; what stands in its bits is x w in fixed
// point, never a float that may be 0. It is multiplied with 127 / D in integers of 32 bits and rounded once.
#pragma once

#include "row_floats.h"
#include "row_values.h"

namespace row_coding {

using row_values::Lanes;
using row_values::lanes;

/// What codes of a row are made with: 1.5 * 2^k in bfloat16's bits, 127 / D beside 2^k; and the bits of their scale.
struct Coding {
    uint32 point, factor;
    int scale;
    /// Of 1 / D.
    Coding(const RowFloat &inverse, int scale_bits)
        : point(static_cast<uint32>((129 - inverse.exponent) << 7 | 0x40)),
          factor(row_floats::high(inverse.mantissa, 0xfe000000U)), scale(scale_bits) {}
};

using Words = aie::vector<uint16, lanes>;

/// Codes of a vector, in 16 bits.
template <class Values>
static inline aie::vector<int16, lanes> codes_of(const Values &x, const Lanes &w, const Coding &how) {
    const Lanes one = aie::broadcast<bfloat16, lanes>(1.0F);
    const Words point = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.point));
    const row_values::Sums start = aie::mul(point.template cast_to<bfloat16>(), one);
    const auto bits = row_values::product_added(start, x, w).template to_vector<float>().template cast_to<uint16>();
    const auto above = aie::sub(aie::filter_odd(bits), point).template cast_to<int16>();
    const Words below = aie::filter_even(bits);
    const Words top = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.factor >> 16));
    const Words rest = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.factor & 0xffff));
    const auto first = aie::mac(aie::zeros<acc64, lanes>(), above, top).template to_vector<int32>(0);
    const auto more = aie::mac(aie::accum<acc64, lanes>(first, 16), above, rest);
    return aie::mac(more, below, top).template to_vector<int16>(30);
}

}  // namespace row_coding
