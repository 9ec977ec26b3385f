// How one micro-tile of an operand becomes a vector, given the order inside it.
//
// A_TRANSPOSED, B_TRANSPOSED, C_TRANSPOSED say that the micro-tiles of a matrix are stored column by column, because
// the DMA cannot turn elements narrower than its 32-bit granule. The order of the micro-tiles is the same in either
// case.
#pragma once

#include <aie_api/aie.hpp>

#include <type_traits>

#include "dims.h"

/// Rows x Columns elements row by row, as they lie column by column.
///
/// A shuffle takes two registers of 512 bits, so aie::transpose ends at 1,024 (64 lanes of 16 bits, 32 of 32). What is
/// longer is turned in an upper and a lower half, whose columns are then put one below the other: two shuffles for each
/// register of the result, the least that moving every row into every register takes.
template <unsigned Rows, unsigned Columns, class T>
static ALWAYS_INLINE aie::vector<T, Rows * Columns> turned(const aie::vector<T, Rows * Columns> &v) {
    constexpr unsigned half = Rows * Columns / 2, lanes = 64 / sizeof(T);  // of one register
    if constexpr (std::is_same_v<T, float>) {
        return turned<Rows, Columns>(v.template cast_to<int32>()).template cast_to<float>();
    } else if constexpr (half <= lanes) {
        return aie::transpose(v, Rows, Columns);
    } else {
        static_assert(half == 2 * lanes, "a micro-tile has at most 2,048 bits, those of an accumulator");
        const auto upper = aie::transpose(v.template extract<half>(0), Rows / 2, Columns);
        const auto lower = aie::transpose(v.template extract<half>(1), Rows / 2, Columns);
        aie::vector<T, Rows * Columns> result;
        for (unsigned i = 0; i < 2; ++i) {
            const auto [first, second] = aie::interleave_zip(upper.template extract<lanes>(i),
                                                             lower.template extract<lanes>(i), Rows / 2);
            result.insert(2 * i, first);
            result.insert(2 * i + 1, second);
        }
        return result;
    }
}

/// Rows x Columns elements T, row by row, or column by column when Transposed.
template <class T, unsigned Rows, unsigned Columns, bool Transposed> struct MicroTile {
    using memory = T;
    static constexpr unsigned step = Rows * Columns;  // elements of `memory` from one micro-tile to the next

    static ALWAYS_INLINE auto load(const T *p) { return rows_first(aie::load_v<step>(p)); }
    static ALWAYS_INLINE void store(T *p, const aie::vector<T, step> &v) {
        if constexpr (Transposed)
            aie::store_v(p, turned<Rows, Columns>(v));
        else
            aie::store_v(p, v);
    }

  private:
    static ALWAYS_INLINE aie::vector<T, step> rows_first(const aie::vector<T, step> &v) {
        if constexpr (Transposed)
            return turned<Columns, Rows>(v);
        else
            return v;
    }
};
