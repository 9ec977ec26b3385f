// Plain references of the kernels in ../aie2p, with their contracts, operand layouts and scaled intermediate C.
#include <cstdint>

#include "../aie2p/dims.h"

namespace {

/// Place of element (row, column) in a matrix of 8 x 8 micro-tiles.
unsigned micro_tiled(unsigned row, unsigned column, unsigned blocks_per_row) {
    return ((row / 8) * blocks_per_row + column / 8) * 64 + (row % 8) * 8 + column % 8;
}

unsigned field(unsigned column) { return column / 8 % 4; }

int weight(const uint8_t *b, unsigned depth, unsigned column) {
    const unsigned place = ((column / 32) * (DIM_K / 8) + depth / 8) * 64 + (depth % 8) * 8 + column % 8;
    return ((b[place] >> (2 * field(column))) & 3) - 1;
}

}  // namespace

extern "C" void mm_i8_i2_i32_ref(const int8_t *a, const uint8_t *b, int32_t *c) {
    for (unsigned row = 0; row < DIM_M; ++row)
        for (unsigned column = 0; column < DIM_N; ++column) {
            int32_t sum = 0;
            for (unsigned depth = 0; depth < DIM_K; ++depth)
                sum += a[micro_tiled(row, depth, DIM_K / 8)] * weight(b, depth, column);
            c[micro_tiled(row, column, DIM_N / 8)] += sum * (1 << (2 * field(column)));
        }
}

extern "C" void zero_i32_ref(int32_t *c) {
    for (unsigned i = 0; i < DIM_M * DIM_N; ++i)
        c[i] = 0;
}

extern "C" void unscale_i32_ref(int32_t *c) {
    for (unsigned row = 0; row < DIM_M; ++row)
        for (unsigned column = 0; column < DIM_N; ++column)
            c[micro_tiled(row, column, DIM_N / 8)] >>= 2 * field(column);
}
