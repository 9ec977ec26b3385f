// LayerNorm of rows of bfloat16 in three passes: sums, squares of x - mean, results.
#pragma once

#include "row_norm.h"

namespace layernorm {

using namespace row_norm;
using Totals = aie::accum<accfloat, lanes>;

/// x - mean in two parts.
struct Centred {
    Lanes high, low;
    Centred(const X *__restrict x, const Totals &less_mean) {
        const Lanes one = aie::broadcast<bfloat16, lanes>(1.0F);
        const Totals exact = row_values::added(less_mean, row_values::load(x));
        high = exact.template to_vector<bfloat16>();
        low = aie::msc(exact, high, one).template to_vector<bfloat16>();
    }
};

/// Sums before, and x added to them.
static inline Totals added(const Totals &before, const X *__restrict x) {
    Totals sums = before;
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) sums = row_values::added(sums, row_values::load(x + i));
    return sums;
}

/// Minus the mean of a row, of its sums; in vectors, since a scalar float is slow. Within 2^-21 of itself.
static inline Totals less_mean_of(const Totals &sums) {
    const Totals share(aie::broadcast<float, lanes>(-1.0F / ROW_ELEMENTS));
    return row_values::product(row_values::parts(Totals(lane_sum(sums))), row_values::parts(share));
}

/// Sums before, and the squares of x - mean added to them.
static inline Totals squares_added(const Totals &before, const X *__restrict x, const Totals &less_mean) {
    Totals squares = before;
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Centred part(x + i, less_mean);
        squares = aie::mac(squares, part.high, part.high);
        squares = aie::mac(aie::mac(squares, part.high, part.low), part.high, part.low);
    }
    return squares;
}

static inline void results(const X *__restrict x, const bfloat16 *__restrict w, const bfloat16 *__restrict b,
                           bfloat16 *__restrict y, const Totals &less_mean, const Totals &squares) {
    const auto r = inverse_root(sum_of(squares));
    const Lanes one = aie::broadcast<bfloat16, lanes>(1.0F);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Centred part(x + i, less_mean);
        const Totals normed = aie::mac(aie::mac(aie::mul(part.high, r.high), part.high, r.low), part.low, r.high);
        const Totals shift = aie::mul(aie::load_v<lanes>(b + i), one);
        const Lanes n = normed.template to_vector<bfloat16>();
        aie::store_v(y + i, aie::mac(shift, n, aie::load_v<lanes>(w + i)).template to_vector<bfloat16>());
    }
}

/// What a core keeps between chunks: lanes of sums, and behind them of squares.
static inline Totals floats_at(const int32 *state) { return Totals(row_state::load(state).template cast_to<float>()); }
static inline void keep(int32 *state, const Totals &kept) {
    row_state::store(state, kept.template to_vector<float>().template cast_to<int32>());
}

}  // namespace layernorm
