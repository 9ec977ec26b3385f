// What a row is scaled by: sums of lanes, and a factor in two bfloat16 parts, which keep 15 of its bits.
//
// The factor is made in scalar integers, since a scalar float is slow and the core's own inverses are not published bit
// by bit.
#pragma once

#include "arch.h"

template <unsigned N> struct RowFactor {
    aie::vector<bfloat16, N> high, low;

    /// root / 2^15 * 2^-power, root from 2^14 to 2^15: neither part is 0.
    RowFactor(uint32 root, uint32 power) {
        // root / 2^15 = high / 2^8 + low / 2^15, high from 127 to 255, low from 128 to 255
        const uint32 first = (root >> 7) - 1, less = first < 128;
        high = lanes((126 - power - less) << 7 | (first << less & 127));
        low = lanes((119 - power) << 7 | (root & 127));
    }

    aie::vector<bfloat16, N> times(const aie::vector<bfloat16, N> &x) const {
        return aie::mac(aie::mul(x, high), x, low).template to_vector<bfloat16>();
    }

  private:
    static aie::vector<bfloat16, N> lanes(uint32 bits) {
        return aie::broadcast<uint16, N>(static_cast<uint16>(bits)).template cast_to<bfloat16>();
    }
};

/// The sum of all lanes, in pairs, in each lane.
template <unsigned N> static inline aie::vector<float, N> lane_sum(const aie::accum<accfloat, N> &of) {
    aie::vector<float, N> sums = of.template to_vector<float>();
    for (unsigned pairs = N / 2; pairs > 0; pairs /= 2) {
        const auto [even, odd] = aie::interleave_unzip(sums, sums, 1);
        sums = aie::add(even, odd);
    }
    return sums;
}

/// The first lane's bits.
template <unsigned N> static inline uint32 first_bits(const aie::vector<float, N> &of) {
    return static_cast<uint32>(of.template cast_to<int32>().get(0));
}
