// How C waits in core memory between the steps of K, for integers.
//
// int32: the accumulator's bits.
// int16 and int8: every call computes C = saturate(round(((C << SHIFT) + A * B) / 2^SHIFT)). The sum in brackets is
// exact in 32 bit. Rounding is conv_even unless -DROUNDING=<name of aie::rounding_mode>; both modes are set by every
// call, because another kernel on this core may have left others.
#pragma once

#include "micro_tile.h"

#ifndef SHIFT
#define SHIFT 0
#endif
#ifndef ROUNDING
#define ROUNDING conv_even
#endif

static_assert(SHIFT >= 0 && SHIFT <= 31, "SHIFT must be 0 to 31");

/// The modes in which this project narrows; they stay set.
static ALWAYS_INLINE void set_narrowing_modes() {
    aie::set_rounding(aie::rounding_mode::ROUNDING);
    aie::set_saturation(aie::saturation_mode::saturate);
}

/// C with elements T of memory for products of type Tile; no |element of B| exceeds LargestB.
template <class Tile, class T, unsigned LargestB = 128> struct Accumulator {
    using Stored = MicroTile<T, Tile::M, Tile::N, c_transposed>;
    using memory = T;
    static constexpr unsigned step = Stored::step;
    static constexpr bool narrow = sizeof(T) < sizeof(int32);
    static constexpr int shift = narrow ? SHIFT : 0;
    static_assert(!narrow || (uint64_t{1} << (8 * sizeof(T) - 1 + shift)) + uint64_t{128 * LargestB} * tile_depth
                                 <= (uint64_t{1} << 31) - 1,
                  "(C << SHIFT) + A * B must fit 32 bit: make SHIFT or k smaller");

    static ALWAYS_INLINE Tile load(const T *c) { return Tile(Stored::load(c), shift); }
    static ALWAYS_INLINE void store(T *c, const Tile &tile) { Stored::store(c, tile.template to_vector<T>(shift)); }
    static ALWAYS_INLINE void begin() {
        if constexpr (narrow)
            set_narrowing_modes();
    }
};
