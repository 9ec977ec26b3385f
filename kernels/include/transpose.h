// Square blocks of a tile, each turned: y[c][r] = x[r][c]. Blocks and what is made of them follow each other alike.
#pragma once

#include "arch.h"
#include "loops.h"

#if !defined(TILE_ELEMENTS)
#error "say how large a tile is: -DTILE_ELEMENTS=elements"
#endif

template <class T, unsigned Edge>
static inline void transpose_blocks(const T *__restrict x, T *__restrict y) {
    constexpr unsigned block = Edge * Edge;
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % block == 0, "a tile must be whole blocks");
    event0();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / block)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += block)
        aie::store_v(y + i, aie::transpose(aie::load_v<block>(x + i), Edge, Edge));
    event1();
}
