// RMSNorm of rows of bfloat16: what is summed of a row, or of chunk after chunk of it, and what is made of that.
#pragma once

#include "norm_codes.h"

namespace rmsnorm {

using namespace row_norm;

/// Of TILE_ELEMENTS at a time, until all of ROW_ELEMENTS were added.
struct Statistics {
    aie::accum<accfloat, lanes> squares = aie::zeros<accfloat, lanes>();
#if CODES
    norm_codes::Largest largest = aie::zeros<int32, lanes>();  // of x w
#endif

    void add(const X *__restrict x, [[maybe_unused]] const bfloat16 *__restrict w) {
#if CODES
        aie::set_saturation(aie::saturation_mode::none);
#endif
        LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
        for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
            const auto part = row_values::load(x + i);
            squares = row_values::square_added(squares, part);
#if CODES
            largest = norm_codes::larger(largest, row_values::product(part, aie::load_v<lanes>(w + i)));
#endif
        }
    }

#if CODES
    void codes(const X *__restrict x, const bfloat16 *__restrict w, int8 *__restrict y,
               int32 *__restrict scale) const {
        const norm_codes::Coding how = norm_codes::coding(sum_of(squares), largest);
        row_coding::store<TILE_ELEMENTS>(y, how, [=](const row_values::Sums &start, unsigned i) {
            return row_values::product_added(start, row_values::load(x + i), aie::load_v<lanes>(w + i));
        });
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
