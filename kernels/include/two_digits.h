// Products in bfp16ebs8 of operands that are more than one block float exact: a tile is the sum of two, high and low.
//
// high = bfp16(x) and low = bfp16(x - high), which is made in an accumulator by a product with minus the identity. What
// both leave is below 2^-14 of the largest value of a block of 8. Of the four products low * low is left out.
#pragma once

#include "block_floats.h"

/// How many block floats an operand is the sum of.
#ifndef DIGITS
#define DIGITS 2
#endif
static_assert(DIGITS == 1 || DIGITS == 2, "DIGITS is 1 or 2");

struct Digits {
    BlockTile high, low;
};

/// A tile of one number, or minus the identity: a diagonal of it.
static ALWAYS_INLINE BlockTile constant_tile(float value) {
    return BlockSums(aie::broadcast<bfloat16, block_tile>(static_cast<bfloat16>(value)))
        .template to_vector<bfp16ebs8>();
}
static ALWAYS_INLINE BlockTile minus_identity() {
    auto lanes = aie::zeros<bfloat16, block_tile>();
    for (unsigned i = 0; i < 8; ++i)
        lanes.set(static_cast<bfloat16>(-1.0F), 9 * i);
    return BlockSums(lanes).template to_vector<bfp16ebs8>();
}

/// 8 x 8 bfloat16 at p, Transposed where a block is a column; `identity` is minus it.
template <bool Transposed = false>
static ALWAYS_INLINE Digits digits_at(const bfloat16 *p, const BlockTile &identity) {
    const BlockSums x(BlocksOfBfloat16<Transposed>::Stored::load(p));
    Digits found;
    found.high = x.template to_vector<bfp16ebs8>();
    if constexpr (DIGITS == 2) {
        BlockProduct rest(x);
        rest.mac(found.high, identity);
        found.low = rest.to_blocks();
    }
    return found;
}

/// c += a b^T: high * high, then high * low, then low * high.
static ALWAYS_INLINE void mac_digits(BlockProduct &c, const Digits &a, const Digits &b) {
    c.mac(a.high, b.high);
    if constexpr (DIGITS == 2) {
        c.mac(a.high, b.low);
        c.mac(a.low, b.high);
    }
}

/// Two rows of tiles of A times two of B, `depth` tiles deep: c00, c01, c10, c11. Tiles follow along the depth.
template <bool Transposed, unsigned Depth>
static ALWAYS_INLINE void multiply_digits(const bfloat16 *__restrict a, const bfloat16 *__restrict b,
                                          BlockProduct (&c)[2][2], const BlockTile &identity) {
    LOOP_MIN_ITERATIONS(Depth)
    LOOP_NO_UNROLL
    for (unsigned i = 0; i < Depth; ++i) {
        const Digits a0 = digits_at(a, identity), a1 = digits_at(a + Depth * block_tile, identity);
        const Digits b0 = digits_at<Transposed>(b, identity);
        const Digits b1 = digits_at<Transposed>(b + Depth * block_tile, identity);
        a += block_tile;
        b += block_tile;
        mac_digits(c[0][0], a0, b0);
        mac_digits(c[0][1], a0, b1);
        mac_digits(c[1][0], a1, b0);
        mac_digits(c[1][1], a1, b1);
    }
}
