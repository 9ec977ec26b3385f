// Kernels of int8 activations: the operands that multiply.h puts together.
#pragma once

#include "accumulator.h"
#include "arch.h"
#include "multiply.h"

/// int8 x int8 in micro-tiles R x S x T; in memory C has elements C_.
template <unsigned R, unsigned S, unsigned T, class C_> struct Int8 {
    using Tile = aie::mmul<R, S, T, int8, int8>;
    using A = MicroTile<int8, R, S, a_transposed>;
    using B = Weights<MicroTile<int8, S, T, b_transposed>, S>;
    using C = Accumulator<Tile, C_>;
};
