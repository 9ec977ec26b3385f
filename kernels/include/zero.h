// Clears one core tile of C. Cost: one full-width store per cycle (modelled, not measured).
#pragma once

#include <aie_api/aie.hpp>

#include "dims.h"
#include "loops.h"

/// m x n elements T in any order, aligned as every vector; written only.
template <class T> static ALWAYS_INLINE void clear(T *c) {
    constexpr unsigned lanes = aie::vector_decl_align / sizeof(T);
    static_assert(c_elements % lanes == 0, "the C tile must be whole vectors");
    const auto zeros = aie::zeros<T, lanes>();
    event0();
    LOOP_MIN_ITERATIONS(c_elements / lanes)
    for (unsigned i = 0; i < c_elements / lanes; ++i) {
        aie::store_v(c, zeros);
        c += lanes;
    }
    event1();
}
