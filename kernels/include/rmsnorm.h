// RMSNorm of rows of bfloat16: what is summed of a row, or of chunk after chunk of it, and what is made of that.
#pragma once

#include "row_coding.h"
#include "row_norm.h"

#ifndef CODES
#define CODES 0
#endif

namespace rmsnorm {

using namespace row_norm;
using row_coding::Coding;

#if CODES
/// Of the bits of the sum of squares and of the largest |x w|.
static inline Coding coding(uint32 sum, uint32 largest) {
    using namespace row_floats;
    constexpr RowFloat width = Inverse().exact();
    const RowFloat root = row_floats::inverse_root(product(of_bits(sum), width)), most = of_bits(largest);
    const RowFloat normed = product(most, root);                             // the largest |y|
    const bool less = bits_of(normed) < 0x3727c5ac;                          // 1e-5
    const RowFloat clamped = product(root, RowFloat{3276800000U, 17});       // 1e5 r
    const RowFloat inverse_d = less ? clamped : row_floats::inverse(most);
    const int scale = bits_of(product(normed, RowFloat{2164392968U, -6}));   // 1 / 127
    return {inverse_d, less ? 0x33a917dc : scale};  // 1e-5 / 127
}

#endif

/// Of TILE_ELEMENTS at a time, until all of ROW_ELEMENTS were added.
struct Statistics {
    aie::accum<accfloat, lanes> squares = aie::zeros<accfloat, lanes>();
#if CODES
    aie::vector<int32, lanes> largest = aie::zeros<int32, lanes>();  // of |x w|, as bits
#endif

    void add(const X *__restrict x, [[maybe_unused]] const bfloat16 *__restrict w) {
#if CODES
        aie::set_saturation(aie::saturation_mode::none);
        const auto magnitude = aie::broadcast<int32, lanes>(0x7fffffff);
#endif
        LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
        for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
            const auto part = row_values::load(x + i);
            squares = row_values::square_added(squares, part);
#if CODES
            const auto u = row_values::product(part, aie::load_v<lanes>(w + i)).template to_vector<float>();
            largest = aie::max(largest, aie::bit_and(u.template cast_to<int32>(), magnitude));
#endif
        }
    }

#if CODES
    void codes(const X *__restrict x, const bfloat16 *__restrict w, int8 *__restrict y,
               int32 *__restrict scale) const {
        static_assert(TILE_ELEMENTS % (2 * lanes) == 0, "a row of codes must be whole vectors");
        const Coding how = coding(sum_of(squares), static_cast<uint32>(aie::reduce_max(largest)));
        LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes / 2)
        for (unsigned i = 0; i < TILE_ELEMENTS; i += 2 * lanes) {
            const auto first = row_coding::codes_of(row_values::load(x + i), aie::load_v<lanes>(w + i), how);
            const auto second = row_coding::codes_of(row_values::load(x + i + lanes), aie::load_v<lanes>(w + i + lanes), how);
            aie::store_v(y + i, aie::concat(first, second).pack());
        }
        *scale = how.scale;
    }
#else
    void results(const X *__restrict x, const bfloat16 *__restrict w, bfloat16 *__restrict y) const {
        const auto r = inverse_root(sum_of(squares));
        LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
        for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
            const Lanes weights = aie::load_v<lanes>(w + i);
            const Lanes scale = r.times(weights);
            row_values::store(y + i, row_values::product(row_values::load(x + i), scale));
        }
    }
#endif

    /// As a core keeps them between chunks.
    void load(const int32 *state) {
        squares = aie::accum<accfloat, lanes>(row_state::load(state).template cast_to<float>());
#if CODES
        largest = row_state::load(state + lanes);
#endif
    }
    void store(int32 *state) const {
        row_state::store(state, squares.template to_vector<float>().template cast_to<int32>());
#if CODES
        row_state::store(state + lanes, largest);
#endif
    }
};

}  // namespace rmsnorm
