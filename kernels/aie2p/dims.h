// The core's tile m x k x n, given by the build as -DDIM_M -DDIM_K -DDIM_N, and the micro-tile r x s x t.
#pragma once

#if !defined(DIM_M) || !defined(DIM_K) || !defined(DIM_N)
// No default: a mismatch with the MLIR would give wrong results and no error.
#error "define the tile with -DDIM_M=m -DDIM_K=k -DDIM_N=n"
#endif

constexpr unsigned micro = 8;  // r = s = t, rows and columns of a micro-tile
constexpr unsigned tile_elements = 8 * 8;  // of one micro-tile
constexpr unsigned fields = 4;  // 2-bit codes in a byte of B
constexpr unsigned row_blocks = DIM_M / micro;  // of A and C
constexpr unsigned depth_blocks = DIM_K / micro;
constexpr unsigned column_blocks = DIM_N / micro;  // of C
constexpr unsigned quads = column_blocks / fields;  // of B: blocks of 32 columns that share their bytes

static_assert(DIM_M > 0 && DIM_M % 16 == 0, "m must be a positive multiple of 16: two row blocks per inner loop");
static_assert(DIM_K > 0 && DIM_K % 8 == 0, "k must be a positive multiple of 8: the depth of one micro-tile");
static_assert(DIM_N > 0 && DIM_N % 32 == 0, "n must be a positive multiple of 32: a byte of B holds 4 column blocks");
