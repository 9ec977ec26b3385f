// Kernels of bfloat16 operands: how C waits in core memory, and the operands that multiply.h puts together.
//
// C as float32 is the accumulator's bits. C as bfloat16 is rounded to nearest even at the end of every call, so that
// each step of K costs one rounding. The rounding mode is set by every such call, because another kernel on this core
// may have left another, and stays set.
#pragma once

#include "micro_tile.h"
#include "multiply.h"

/// Narrowing of floats is always to nearest, ties to even.
static ALWAYS_INLINE void set_float_modes() { aie::set_rounding(aie::rounding_mode::conv_even); }

/// C with elements T of memory for products of type Tile.
template <class Tile, class T> struct FloatAccumulator {
    using Stored = MicroTile<T, Tile::M, Tile::N, c_transposed>;
    using memory = T;
    static constexpr unsigned step = Stored::step;

    static ALWAYS_INLINE Tile load(const T *c) { return Tile(aie::accum<accfloat, step>(Stored::load(c))); }
    static ALWAYS_INLINE void store(T *c, const Tile &tile) { Stored::store(c, tile.template to_vector<T>()); }
    static ALWAYS_INLINE void begin() { set_float_modes(); }
};

/// bfloat16 x bfloat16 in micro-tiles R x S x T as the architecture multiplies them; in memory C has elements C_.
template <unsigned R, unsigned S, unsigned T, class C_> struct Floats {
    using Tile = aie::mmul<R, S, T, bfloat16, bfloat16>;
    using A = MicroTile<bfloat16, R, S, a_transposed>;
    using B = Weights<MicroTile<bfloat16, S, T, b_transposed>, S>;
    using C = FloatAccumulator<Tile, C_>;
};
