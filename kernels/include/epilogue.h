// What the kernels that finish a C tile share, after the last step of K: walking its micro-tiles, bias and ReLU.
//
// Parameters, given by the build
//   FIELD_SCALED   C comes from ternary.h: column block 4 q + j is divided by 4^j
//   BIAS           a number per column is added
//   RELU           results below 0 become 0
// The results lie dense from the beginning of the buffer, in the order of C's micro-tiles. Each group of lanes is read
// before results reach its place, as results are never longer than what they are made of.
#pragma once

#include <type_traits>

#include "loops.h"
#include "micro_tile.h"

#ifdef FIELD_SCALED
constexpr bool field_scaled = true;
#else
constexpr bool field_scaled = false;
#endif
#ifdef RELU
constexpr bool relu = true;
#else
constexpr bool relu = false;
#endif
#ifdef BIAS
constexpr bool biased = true;
#else
constexpr bool biased = false;
#endif

/// Lanes that one product of float32 works on: as many as a product of bfloat16 parts, nine of which make it up. With
/// fewer lanes the rest of each is wasted.
constexpr unsigned float_lanes = __AIE_ARCH__ >= 21 ? 32 : 16;

/// Results below 0 become 0, if asked for, a register of 512 bits at a time. Floats are compared by their bits: a float is
/// negative when they are as an integer, and the core compares integers in one instruction, where a maximum of float32
/// subtracts, converts, compares and selects. So -0 becomes 0, and a NaN with its sign set becomes 0 as well.
template <class T, unsigned Lanes>
static ALWAYS_INLINE aie::vector<T, Lanes> rectified(const aie::vector<T, Lanes> &v) {
    constexpr unsigned lanes = 64 / sizeof(T);
    if constexpr (!relu) {
        return v;
    } else if constexpr (Lanes > lanes) {
        aie::vector<T, Lanes> result;
        for (unsigned i = 0; i < Lanes / lanes; ++i)
            result.insert(i, rectified(v.template extract<lanes>(i)));
        return result;
    } else if constexpr (std::is_same_v<T, float>) {
        return rectified(v.template cast_to<int32>()).template cast_to<float>();
    } else if constexpr (std::is_same_v<T, bfloat16>) {
        return rectified(v.template cast_to<int16>()).template cast_to<bfloat16>();
    } else {
        return aie::max(v, aie::zeros<T, Lanes>());
    }
}

/// R x T elements row by row, in the order in which a micro-tile of C holds them.
template <unsigned R, unsigned T, class V> static ALWAYS_INLINE V in_c_order(const V &rows) {
    if constexpr (c_transposed)
        return turned<R, T>(rows);
    else
        return rows;
}

/// T numbers of columns, for every element of a micro-tile.
template <unsigned R, unsigned T, class E>
static ALWAYS_INLINE aie::vector<E, R * T> spread_columns(const E *columns) {
    const auto one_row = aie::load_v<T>(columns);
    aie::vector<E, R * T> rows;
    for (unsigned row = 0; row < R; ++row)
        rows.insert(row, one_row);
    return in_c_order<R, T>(rows);
}

/// R numbers of rows, for every element of a micro-tile.
template <unsigned R, unsigned T, class E> static ALWAYS_INLINE aie::vector<E, R * T> spread_rows(const E *numbers) {
    aie::vector<E, R * T> rows;
    for (unsigned row = 0; row < R; ++row)
        rows.insert(row, aie::broadcast<E, T>(numbers[row]));
    return in_c_order<R, T>(rows);
}

/// Calls finish.rows(row block) and, for each of its micro-tiles, finish.micro_tile<field>(column block, first
/// element).
template <unsigned R, unsigned T, class F> static ALWAYS_INLINE void for_micro_tiles(F finish) {
    constexpr unsigned step = R * T, row_blocks = pass_rows / R, column_blocks = tile_columns / T;
    constexpr unsigned fields = field_scaled ? 4 : 1;
    static_assert(pass_rows % R == 0 && tile_columns % T == 0, "the C tile must be whole micro-tiles");
    static_assert(column_blocks % fields == 0, "FIELD_SCALED: n must be a multiple of 4 t");

    unsigned first = 0;
    for (unsigned row = 0; row < row_blocks; ++row) {
        finish.rows(row);
        for (unsigned column = 0; column < column_blocks; column += fields) {
            finish.template micro_tile<0>(column, first);
            if constexpr (field_scaled) {
                finish.template micro_tile<1>(column + 1, first + step);
                finish.template micro_tile<2>(column + 2, first + 2 * step);
                finish.template micro_tile<3>(column + 3, first + 3 * step);
            }
            first += fields * step;
        }
    }
}
