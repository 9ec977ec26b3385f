// 4-bit weights: signed two's complement, -8 to 7.
//
// Packed order: that of int8, micro-tile by micro-tile, with two neighbouring elements of a micro-tile in one byte, the
// first in the low nibble. aie::int4 vectors have the same order, so that loading and unpacking need no shuffle, and
// Peano can fold both into one instruction of the load slot (VLDB.UNPACK).
#pragma once

#include <type_traits>

#include "accumulator.h"
#include "arch.h"
#include "multiply.h"

/// One micro-tile S x T of packed weights, as int8 (Operand int8) or as it is (Operand int4).
template <unsigned S, unsigned T, class Operand> struct PackedInt4 {
    // Bytes, not int4: pointers to int4 count bytes but say elements.
    using memory = uint8;
    static constexpr unsigned step = S * T / 2;  // bytes
    static_assert(!b_transposed, "B_TRANSPOSED: packed weights come in the kernel's own order");

    static ALWAYS_INLINE aie::vector<Operand, S * T> load(const uint8 *b) {
        const auto packed = aie::load_v<step>(b).template cast_to<int4>();
        if constexpr (std::is_same_v<Operand, int8>)
            return packed.unpack();
        else
            return packed;
    }
};

/// int8 x packed int4 in micro-tiles R x S x T; in memory C has elements C_.
template <unsigned R, unsigned S, unsigned T, class Operand, class C_> struct Int8Int4 {
    using Tile = aie::mmul<R, S, T, int8, Operand>;
    using A = MicroTile<int8, R, S, a_transposed>;
    using B = Weights<PackedInt4<S, T, Operand>, S>;
    using C = Accumulator<Tile, C_, 8>;
};

/// The micro-tiles of each generation: AIE2 multiplies int4 as it is, AIE2P has it unpacked.
template <class C>
using PackedInt8Int4 = Int8Int4<mac_rows, is_aie2p ? 8 : 16, 8, std::conditional_t<is_aie2p, int8, int4>, C>;
