// bfloat16 results of float32 or int32 sums: scales of rows and columns, bias and ReLU (epilogue.h), in place.
//
// With -DSCALE or -DBIAS the kernel gets an epilogue tile of float32: the scales of all ARRAY_ROWS * m rows of the row
// panel, core row by core row; then n scales of columns; then n biases. All three are there in either case.
// result = relu(bf16((float(sum) * row scale) * column scale + bias)): the first product is rounded to float32, the second
// and the sum once more (the device makes float products out of bfloat16 parts), the result to nearest even. Biases of
// int32 sums are added to scaled ones.
#pragma once

#include <type_traits>

#include "arch.h"
#include "epilogue.h"
#include "floats.h"

#ifdef SCALE
constexpr bool scaled_by_rows_and_columns = true;
#else
constexpr bool scaled_by_rows_and_columns = false;
#endif

#if defined(SCALE) || defined(BIAS)
#ifndef ARRAY_ROWS
#error "define the rows of the array with -DARRAY_ROWS=rows: the epilogue tile holds the scales of all their C tiles"
#endif
#define EPILOGUE_TILE_PARAMETER const float *scales,
#define CORE_ROW_PARAMETER , int32_t core_row
constexpr unsigned epilogue_rows = ARRAY_ROWS * DIM_M;  // with a scale each
#else
#define EPILOGUE_TILE_PARAMETER
#define CORE_ROW_PARAMETER
constexpr const float *scales = nullptr;
constexpr int32_t core_row = 0;
constexpr unsigned epilogue_rows = 0;
#endif

/// C tiles of micro-tiles R x T. Nothing is __restrict: results replace sums that were read.
template <unsigned R, unsigned T, class Sum> struct FinishFloats {
    static constexpr bool integers = std::is_same_v<Sum, int32>;
    static constexpr bool scaled = scaled_by_rows_and_columns || (integers && biased);
    static constexpr unsigned step = R * T;
    static constexpr unsigned lanes = step < float_lanes ? step : float_lanes;
    using Factors = aie::vector<float, step>;
    using Sums = aie::vector<float, lanes>;

    const float *row_scales;  // of this core's m rows
    const float *column_scales;
    const Sum *c;
    bfloat16 *out;
    Factors row_factors = aie::zeros<float, step>();

    ALWAYS_INLINE void rows(unsigned row) {
        if constexpr (scaled)
            row_factors = spread_rows<R, T>(row_scales + row * R);
    }

    template <unsigned Field> ALWAYS_INLINE void micro_tile(unsigned column, unsigned first) {
        aie::store_v(out + first, rectified(results<Field>(column, first)));
    }

    /// A micro-tile before ReLU.
    template <unsigned Field> ALWAYS_INLINE aie::vector<bfloat16, step> results(unsigned column, unsigned first) const {
        Factors factors = aie::zeros<float, step>(), added = factors;
        if constexpr (scaled)
            factors = spread_columns<R, T>(column_scales + column * T);
        if constexpr (biased)
            added = spread_columns<R, T>(column_scales + tile_columns + column * T);
        aie::vector<bfloat16, step> found;
        for (unsigned i = 0; i < step / lanes; ++i) {
            const Sums sums = floats<Field>(aie::load_v<lanes>(c + first + i * lanes));
            const aie::accum<accfloat, lanes> result = adjusted(sums, factors.template extract<lanes>(i),
                                                                added.template extract<lanes>(i), i);
            found.insert(i, result.template to_vector<bfloat16>());
        }
        return found;
    }

  private:
    template <unsigned Field> static ALWAYS_INLINE Sums floats(const aie::vector<Sum, lanes> &sums) {
        if constexpr (integers)
            return aie::to_float<float>(sums, 2 * Field);
        else
            return sums;
    }

    ALWAYS_INLINE aie::accum<accfloat, lanes> adjusted(const Sums &sums, const Sums &factors, const Sums &added,
                                                       unsigned i) const {
        if constexpr (scaled) {
            const auto by_row = aie::mul(sums, row_factors.template extract<lanes>(i)).template to_vector<float>();
            return aie::mac(aie::accum<accfloat, lanes>(added), by_row, factors);
        } else if constexpr (biased) {
            return aie::add(aie::accum<accfloat, lanes>(sums), aie::accum<accfloat, lanes>(added));
        } else {
            return aie::accum<accfloat, lanes>(sums);
        }
    }
};

/// The whole kernel; first_row is that of the scales of rows.
template <unsigned R, unsigned T, class Sum>
static ALWAYS_INLINE void finish_floats(const float *scales, Sum *c, int32_t first_row) {
    static_assert(epilogue_rows % T == 0, "the scales of columns must begin at a whole vector");
    set_float_modes();
    event0();
    for_micro_tiles<R, T>(FinishFloats<R, T, Sum>{scales + first_row, scales + epilogue_rows, c,
                                                  reinterpret_cast<bfloat16 *>(c)});
    event1();
}
