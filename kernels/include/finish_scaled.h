// bfloat16 results of int32 sums, scaled by row and column: bias and ReLU (epilogue.h), in place.
//
// The epilogue tile, float32: the scales of all ARRAY_ROWS * m rows of the row panel, core row by core row; then n
// scales of columns; then, with BIAS, n biases. result = relu(bf16(float(sum) * row scale * column scale + bias)),
// every operation rounded in float32 (the device makes float products out of bfloat16 parts), the last to nearest
// even.
#pragma once

#include "arch.h"
#include "epilogue.h"

#ifndef ARRAY_ROWS
#error "define the rows of the array with -DARRAY_ROWS=rows: the epilogue tile holds the scales of all their C tiles"
#endif

/// C tiles of micro-tiles R x T. Nothing is __restrict: results replace sums that were read.
template <unsigned R, unsigned T> struct FinishScaled {
    static constexpr unsigned step = R * T;
    static constexpr unsigned lanes = step < float_lanes ? step : float_lanes;
    using Factors = aie::vector<float, step>;

    const float *row_scales;  // of these rows
    const float *column_scales;
    const int32 *c;
    bfloat16 *out;
    Factors row_factors = aie::zeros<float, step>();

    ALWAYS_INLINE void rows(unsigned row) { row_factors = spread_rows<R, T>(row_scales + row * R); }

    template <unsigned Field> ALWAYS_INLINE void micro_tile(unsigned column, unsigned first) {
        const Factors factors = spread_columns<R, T>(column_scales + column * T);
        Factors added = aie::zeros<float, step>();
        if constexpr (biased)
            added = spread_columns<R, T>(column_scales + tile_columns + column * T);
        for (unsigned i = 0; i < step / lanes; ++i) {
            const auto sums = aie::to_float<float>(aie::load_v<lanes>(c + first + i * lanes), 2 * Field);
            const auto by_row = aie::mul(sums, row_factors.template extract<lanes>(i)).template to_vector<float>();
            const aie::accum<accfloat, lanes> start(added.template extract<lanes>(i));
            const auto scaled = aie::mac(start, by_row, factors.template extract<lanes>(i));
            aie::store_v(out + first + i * lanes, rectified(scaled.template to_vector<bfloat16>()));
        }
    }
};

/// The whole kernel; first_row is that of the scales of rows.
template <unsigned R, unsigned T>
static ALWAYS_INLINE void finish_scaled(const float *scales, int32 *c, int32_t first_row) {
    static_assert(ARRAY_ROWS * DIM_M % T == 0, "the scales of columns must begin at a whole vector");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    for_micro_tiles<R, T>(FinishScaled<R, T>{scales + first_row, scales + ARRAY_ROWS * DIM_M, c,
                                             reinterpret_cast<bfloat16 *>(c)});
    event1();
}
