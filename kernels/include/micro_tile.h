// How one micro-tile of an operand becomes a vector, given the order inside it.
//
// A_TRANSPOSED, B_TRANSPOSED, C_TRANSPOSED say that the micro-tiles of a matrix are stored column by column, because
// the DMA cannot turn elements narrower than its 32-bit granule. The order of the micro-tiles is the same in either
// case.
#pragma once

#include <aie_api/aie.hpp>

#include "dims.h"

/// Rows x Columns elements T, row by row, or column by column when Transposed.
template <class T, unsigned Rows, unsigned Columns, bool Transposed> struct MicroTile {
    using memory = T;
    static constexpr unsigned step = Rows * Columns;  // elements of `memory` from one micro-tile to the next

    static ALWAYS_INLINE auto load(const T *p) { return rows_first(aie::load_v<step>(p)); }
    static ALWAYS_INLINE void store(T *p, const aie::vector<T, step> &v) {
        if constexpr (Transposed)
            aie::store_v(p, aie::transpose(v, Rows, Columns));
        else
            aie::store_v(p, v);
    }

  private:
    static ALWAYS_INLINE aie::vector<T, step> rows_first(const aie::vector<T, step> &v) {
        if constexpr (Transposed)
            return aie::transpose(v, Columns, Rows);
        else
            return v;
    }
};
