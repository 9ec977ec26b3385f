// Positive floats of a row in scalar integers: 32 bits of mantissa, exact products, inverse and inverse root.
//
// The core's own inverse and inverse square root are not published bit by bit, and a scalar float is slow.
#pragma once

#include "arch.h"

/// mantissa / 2^32 * 2^exponent, the mantissa from 2^31 on.
struct RowFloat {
    uint32 mantissa;
    int exponent;
};

namespace row_floats {

/// The upper half of a product.
static inline uint32 high(uint32 a, uint32 b) {
    const uint32 above = a >> 16, below = a & 0xffff, top = b >> 16, rest = b & 0xffff;
    const uint32 one = above * rest + (below * rest >> 16), other = below * top + (one & 0xffff);
    return above * top + (one >> 16) + (other >> 16);
}

/// Of a mantissa from 2^30 on.
static inline RowFloat normal(uint32 mantissa, int exponent) {
    const uint32 less = 1 - (mantissa >> 31);
    return {mantissa << less, exponent - static_cast<int>(less)};
}

static inline RowFloat product(const RowFloat &a, const RowFloat &b) {
    return normal(high(a.mantissa, b.mantissa), a.exponent + b.exponent);
}

/// Of a float's bits, 0 or a normal number; 0 is 2^-127.
static inline RowFloat of_bits(uint32 bits) {
    return {bits << 8 | 0x80000000, static_cast<int>(bits >> 23) - 126};
}

/// A float's bits, to nearest; below 0 as an integer where there is no normal number.
static inline int bits_of(const RowFloat &a) {
    return static_cast<int>(static_cast<uint32>(a.exponent + 125) << 23) +
           static_cast<int>((a.mantissa >> 8) + (a.mantissa >> 7 & 1));
}

/// 2^15 / sqrt(x / 2^14) for x from 2^14 to 2^16, below it by 2^-13 of itself at most: a quadratic (2.4e-2 at most), and
/// two steps of Newton's.
static inline uint32 short_root(uint32 x) {
    uint32 root = 43759 - ((13457 - (3356 * x >> 15)) * x >> 14);
    for (unsigned step = 0; step < 2; ++step) {
        const uint32 near_one = (root * root >> 15) * x >> 14;
        root = root * (98304 - near_one) >> 16;
    }
    return root;
}

/// 1 / sqrt(a), within 2^-26 of itself: one more step.
static inline RowFloat inverse_root(const RowFloat &a) {
    const uint32 odd = static_cast<uint32>(a.exponent) & 1, quarters = a.mantissa >> odd;
    const uint32 root = short_root(quarters >> 16) << 17;
    const uint32 near_one = high(high(root, root), quarters);
    return {high(root, (3U << 30) - near_one) << 1, 1 - (a.exponent + static_cast<int>(odd)) / 2};
}

/// 1 / a, within 2^-29 of itself: a line (1/17 at most), and three steps of Newton's.
static inline RowFloat inverse(const RowFloat &a) {
    uint32 found = (3031741620U - high(a.mantissa, 2021161081U)) << 1;
    for (unsigned step = 0; step < 3; ++step) found = high(found, 0U - high(a.mantissa, found)) << 1;
    return {found, 1 - a.exponent};
}

}  // namespace row_floats
