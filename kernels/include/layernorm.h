// LayerNorm of rows of bfloat16 in passes: sums, squares of x - mean, of codes the largest number, results.
#pragma once

#include "norm_codes.h"

namespace layernorm {

using namespace row_norm;
using Totals = aie::accum<accfloat, lanes>;

static inline Totals centred(const X *__restrict x, const Totals &less_mean) {
    return row_values::added(less_mean, row_values::load(x));
}

/// x - mean in two parts.
struct Centred {
    Lanes high, low;
    Centred(const X *__restrict x, const Totals &less_mean) {
        const Totals exact = centred(x, less_mean);
        high = exact.template to_vector<bfloat16>();
        low = aie::msc(exact, high, row_values::ones()).template to_vector<bfloat16>();
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
#if CODES
        squares = row_values::square_added(squares, row_values::parts(centred(x + i, less_mean)));
#else
        const Centred part(x + i, less_mean);
        squares = aie::mac(squares, part.high, part.high);
        squares = aie::mac(aie::mac(squares, part.high, part.low), part.high, part.low);
#endif
    }
    return squares;
}

/// sqrt(mean + EPSILON), by which what is scaled and shifted counts more than the norm.
static inline row_values::Floats deviation_of(const Totals &squares) {
    const RowFloat mean = norm_codes::mean_of(sum_of(squares));
    const int bits = row_floats::bits_of(row_floats::product(mean, row_floats::inverse_root(mean)));
    return row_values::parts(Totals(aie::broadcast<int32, lanes>(bits).template cast_to<float>()));
}

/// (x - mean) w + b deviation.
static inline Totals scaled(const X *__restrict x, const bfloat16 *__restrict w, const bfloat16 *__restrict b,
                            const Totals &less_mean, const row_values::Floats &deviation) {
    const auto shift = row_values::product(deviation, aie::load_v<lanes>(b));
    return row_values::product_added(shift, row_values::parts(centred(x, less_mean)), aie::load_v<lanes>(w));
}

/// The largest numbers before, and those of x.
static inline norm_codes::Largest larger(const norm_codes::Largest &before, const X *__restrict x,
                                         const bfloat16 *__restrict w, const bfloat16 *__restrict b,
                                         const Totals &less_mean, const Totals &squares) {
    aie::set_saturation(aie::saturation_mode::none);
    const row_values::Floats deviation = deviation_of(squares);
    norm_codes::Largest found = before;
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes)
        found = norm_codes::larger(found, scaled(x + i, w + i, b + i, less_mean, deviation));
    return found;
}

#if CODES
static inline void codes(const X *__restrict x, const bfloat16 *__restrict w, const bfloat16 *__restrict b,
                         int8 *__restrict y, int32 *__restrict scale, const Totals &less_mean, const Totals &squares,
                         const norm_codes::Largest &largest) {
    aie::set_saturation(aie::saturation_mode::none);
    const row_values::Floats deviation = deviation_of(squares);
    const norm_codes::Coding how = norm_codes::coding(sum_of(squares), largest);
    row_coding::store<TILE_ELEMENTS>(y, how, [=](const row_values::Sums &start, unsigned i) {
        return aie::add(start, scaled(x + i, w + i, b + i, less_mean, deviation));
    });
    *scale = how.scale;
}
#else
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
#endif

/// What a core keeps between chunks: lanes of sums, behind them of squares, and of codes of the largest numbers.
static inline Totals floats_at(const int32 *state) { return Totals(row_state::load(state).template cast_to<float>()); }
static inline void keep(int32 *state, const Totals &kept) {
    row_state::store(state, kept.template to_vector<float>().template cast_to<int32>());
}

}  // namespace layernorm
