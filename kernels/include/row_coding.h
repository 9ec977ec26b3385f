// int8 codes of rows, round(127 u / D) with ties to even, D at least the largest |u| of the row.
//
// u is added to a float 1.5 * 2^k of which the last bit is 2^-22 of D or less; what stands in its bits is u in fixed
// point, never a float that may be 0. It is multiplied with 127 / D in integers of 32 bits and rounded once.
#pragma once

#include "loops.h"
#include "row_floats.h"
#include "row_values.h"

namespace row_coding {

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

/// What numbers are added to.
static inline row_values::Sums start(const Coding &how) {
    const Words point = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.point));
    return aie::mul(point.template cast_to<bfloat16>(), row_values::ones());
}

/// Codes of a vector that was added to `start`, in 16 bits.
static inline aie::vector<int16, lanes> codes_of(const row_values::Sums &placed, const Coding &how) {
    const Words point = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.point));
    const auto bits = placed.template to_vector<float>().template cast_to<uint16>();
    const auto above = aie::sub(aie::filter_odd(bits), point).template cast_to<int16>();
    const Words below = aie::filter_even(bits);
    const Words top = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.factor >> 16));
    const Words rest = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.factor & 0xffff));
    const auto first = aie::mac(aie::zeros<acc64, lanes>(), above, top).template to_vector<int32>(0);
    const auto more = aie::mac(aie::accum<acc64, lanes>(first, 16), above, rest);
    return aie::mac(more, below, top).template to_vector<int16>(30);
}

/// Codes of `elements`: placed(start, i) are the sums of `start` and what stands from element i on.
template <unsigned elements, class Placed>
static inline void store(int8 *__restrict y, const Coding &how, const Placed &placed) {
    static_assert(elements % (2 * lanes) == 0, "a row of codes must be whole vectors");
    const row_values::Sums zero = start(how);
    LOOP_MIN_ITERATIONS(elements / lanes / 2)
    for (unsigned i = 0; i < elements; i += 2 * lanes)
        aie::store_v(y + i, aie::concat(codes_of(placed(zero, i), how), codes_of(placed(zero, i + lanes), how)).pack());
}

}  // namespace row_coding
