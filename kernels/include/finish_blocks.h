// Block floats out of float sums, in place: what finish kernels with bfp16ebs8 results are made of (AIE2P).
#pragma once

#include "block_floats.h"
#include "epilogue.h"

#if defined(SCALE) || defined(BIAS)
#error "block floats are made of sums as they are: SCALE and BIAS are for finish_f32_bf16"
#endif

static_assert(DIM_M % 8 == 0 && tile_columns % 8 == 0, "the C tile must be whole micro-tiles");
static_assert(!c_transposed, "C_TRANSPOSED: blocks of C lie along N, so C of bfp16 cannot be transposed");

/// The whole kernel, for sums of elements T. Nothing is __restrict: results replace sums that were read, and a stream
/// writes no sooner than its blocks are pushed. Rectified before narrowing, as a block's exponent is that of its largest
/// magnitude.
template <class T> static ALWAYS_INLINE void finish_blocks(T *c) {
    set_float_modes();
    BlockOutput out(reinterpret_cast<bfp16ebs8 *>(c));
    event0();
    LOOP_MIN_ITERATIONS(c_elements / block_tile)
    for (unsigned i = 0; i < c_elements / block_tile; ++i) {
        const BlockSums sums(rectified(aie::load_v<block_tile>(c + i * block_tile)));
        out.push(sums.template to_vector<bfp16ebs8>());
    }
    event1();
}
