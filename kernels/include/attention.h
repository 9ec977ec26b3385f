// Attention in flash form on one core: layouts, numbers and state that the functions attention_*_bf16 share (AIE2P).
//
// An *item* is DIM_M queries of one head of DIM_K dimensions, which attend to blocks of DIM_N keys, one after the
// other. With HEADS above 1 it is DIM_M / HEADS queries of so many heads: lines of the first query, then of the next one;
// lines that are left are like those of the last query. All operands are tiles of 8 x 8 (64 elements, row by row), 64-byte aligned and apart from each other:
//   q  [DIM_M/8][DIM_K/8]  bfloat16; kept by the core for an item. The buffer has 9/8 of that, so that implementations
//      can keep mantissas and exponents of two digits instead
//   k  [DIM_N/8][DIM_K/8]  bfloat16: rows are keys
//   v  [DIM_K/8][DIM_N/8]  bfloat16: rows are keys, too
//   s  [DIM_M/8][DIM_N/8]  float32: scores as fixed point, MAGIC + q k^T - M
//   p  [DIM_M/8][DIM_N/8]  bfloat16: weights 2^(c (q k^T - M)), at most 2^100. The buffer has 9/8 of that, as q's
//   o  [DIM_M/16][DIM_K/8][2]  float32: sums of weights times values, those of a pair of rows of tiles column by column.
//      Behind an item the first half of a pair's memory is y, and the second one may be the next item's q
// With KV_SPLITS above 1 an item is that many cores', each of which attends to a range of its blocks: sums of one range
// after the other are added, once they have one M.
//
// c = SCORE_SCALE log2(e) = c1 2^-K with c1 in [1, 2). M is a number for each query, so that weights are numbers of
// float32 whatever the scores are: c M = j, an integer up to what float32 rounds. It is 2^-14 2^K at first, which
// serves c q k^T from -40 to 80, and moves only where a row's sum of weights leaves 2^-40 to 2^80
// (attention_rescale_bf16): the sums and o are multiplied by a power of two then, which is exact. A row of cores waits
// for the one that moves, so sums may become almost what float32 holds: times values, which are below 2^46.
//
// Masked scores are MASKED, whose weight is 0 exactly. With a SOFT_CAP M stays: no weight is beyond 2^87.
#pragma once

#include "two_digits.h"  // whose block_floats.h knows DIM_M, DIM_K, DIM_N

#ifndef CAUSAL
#define CAUSAL 1
#endif
#ifndef WINDOW
#define WINDOW 0
#endif
#ifndef SOFT_CAP
#define SOFT_CAP 0
#endif
#ifndef HEADS
#define HEADS 1
#endif
#ifndef KV_SPLITS
#define KV_SPLITS 1
#endif
#ifndef SCORE_SCALE
#error "say what scores are multiplied by: -DSCORE_SCALE=0.125"
#endif

namespace attention {

constexpr unsigned row_tiles = DIM_M / 8, key_tiles = DIM_N / 8, dim_tiles = DIM_K / 8;
constexpr unsigned pair_elements = 16 * DIM_K;  // of q and of o: two rows of tiles, which Q and Y come and go by
static_assert(DIM_M % 16 == 0 && DIM_K % 16 == 0 && DIM_N % 16 == 0, "tiles come in pairs: multiples of 16");
static_assert(HEADS >= 1 && HEADS <= DIM_M, "HEADS of an item are lines of it: 1 to DIM_M");
constexpr int32 item_queries = DIM_M / HEADS;
static_assert(SCORE_SCALE > 0, "SCORE_SCALE must be above 0");
static_assert(WINDOW >= 0 && (CAUSAL || WINDOW == 0), "a WINDOW ends with the query's own key: it is CAUSAL");

/// c = SCORE_SCALE log2(e) = multiplier / 2^15 * 2^-exponent, the multiplier from 2^15 to 2^16 - 1; 1 / it in 28 bits.
struct Scale {
    int exponent = 0;
    uint32 multiplier = 0;
    int32 inverse_high = 0, inverse_low = 0;  // 2^exponent / c = high / 2^14 + low / 2^28
    constexpr Scale() {
        double c = static_cast<double>(SCORE_SCALE) * 1.4426950408889634;
        for (; c < 1; c *= 2) ++exponent;
        for (; c >= 2; c /= 2) --exponent;
        multiplier = static_cast<uint32>(c * 32768 + 0.5);
        if (multiplier == 65536) multiplier = 65535;
        const auto inverse = static_cast<int32>((1 << 28) / c);
        inverse_high = inverse >> 14;
        inverse_low = inverse & 16383;
    }
};
constexpr Scale scale;

/// Scores wait as floats whose last bit is 2^(exponent - 8): 1.5 * 2^(15 + exponent) more than they are.
constexpr int32 magic = ((15 + scale.exponent + 127) << 23) | 0x400000;
constexpr int32 masked = static_cast<int32>(0xf1800000);  // -2^100
constexpr int largest_power = 100, smallest_power = -96;  // of weights; digits of smaller ones are no floats
constexpr int32 low_sum = (127 - 40) << 23, high_sum = (127 + 80) << 23;  // of sums that need no other M, in floats' bits

/// The 32-bit words of the buffer `state`.
struct State {
    // of the item, by attention_begin_bf16
    int32 blocks;    // how many the core row gets
    int32 block;     // number of the next one, from the first key on
    int32 position;  // of the first query among the keys
    int32 queries, keys;
    // of the block, by attention_scores_bf16 and attention_weights_bf16
    int32 start;      // the first key in it
    int32 fresh;      // the first key that no block before had
    int32 has_mask;   // 1 where attention_mask_bf16 is to be called, else 0
    int32 has_moved;  // 1 where attention_rescale_bf16, and then attention_weights_bf16 again, are to be called; of
                      // ranges that meet, where attention_align_bf16 is
    int32 unused[7];
    int32 power[DIM_M];   // j
    int32 offset[DIM_M];  // M / 2^(exponent - 14), odd, so that no score is 0 when it is made
    int32 begin[DIM_M][8];   // -M as float32: what scores begin with; tiles of equal columns, as all below
    int32 sums[DIM_M][8];    // of weights, as float32
    int32 next[DIM_M][8];    // with this block's; what exponents of the range before are moved by
    int32 shift[DIM_M][8];   // what exponents are moved by; at the end 1 / sums in two parts
};

constexpr int32 none = -1 << 30;  // a power of a row that has seen no key

/// Bits of value * 2^power as a float32, cut to 24 bits. value is not 0.
static inline int32 float_bits(int32 value, int power) {
    uint32 magnitude = static_cast<uint32>(value < 0 ? -value : value);
    int exponent = 127 + 23 + power;
    for (; magnitude >= 1u << 24; magnitude >>= 1) ++exponent;
    for (; magnitude < 1u << 23; magnitude <<= 1) --exponent;
    const uint32 bits = static_cast<uint32>(exponent) << 23 | (magnitude & 0x7fffff);
    return static_cast<int32>(value < 0 ? bits | 0x80000000 : bits);
}

/// Where a tile of o begins, in elements.
static constexpr unsigned place_in_o(unsigned row, unsigned column) {
    return ((row / 2 * dim_tiles + column) * 2 + row % 2) * 64;
}

static inline int32 within(int32 x, int32 most) { return x > most ? most : x < -most ? -most : x; }

/// Floats of a row of tiles times 2^shift, which stands in their exponents' place; 0 where that is too small.
static inline void shifted(int32 *__restrict values, const int32 *__restrict shift) {
    for (unsigned i = 0; i < 64; i += 16) {
        const auto bits = aie::load_v<16>(values + i), by = aie::load_v<16>(shift + i);
        const auto exponents = aie::bit_and(bits, aie::broadcast<int32, 16>(0x7f800000));
        const auto positive = [](const auto &x) { return aie::gt(x, static_cast<int32>(0)); };
        const auto kept = positive(aie::add(exponents, by)) & positive(exponents);
        aie::store_v(values + i, aie::select(aie::zeros<int32, 16>(), aie::add(bits, by), kept));
    }
}

template <unsigned Words = 8> static inline void fill(int32 *__restrict row, int32 value) {
    LOOP_UNROLL
    for (unsigned i = 0; i < Words; ++i)
        row[i] = value;
}

}  // namespace attention
