// Ternary weights packed to 2 bit, unpacked by masking in place.
//
// B is [n/32][k/8][8][8] bytes. Field j (bits 2j+1:2j) of a byte is the code u = w + 1 in {0, 1, 2} of the weight w in
// column block 4 q + j. 64 bytes & (3 << 2j) leave u * 4^j; minus 1 << 2j, in wrapping uint8, read as int8, that is
// w * 4^j in {-4^j, 0, 4^j}: signed, so that no row sum of A has to be corrected. No shift is made: it would take a
// round trip through an accumulator per micro-tile. The power 4^j leaves once per C tile (finish.h).
#pragma once

#include "accumulator.h"
#include "arch.h"
#include "multiply.h"

constexpr unsigned fields = 4;  // 2-bit codes in a byte of B

template <unsigned S, unsigned T> struct TernaryWeights {
    using memory = uint8;
    static constexpr unsigned group = fields;
    static constexpr unsigned run = 1;
    static constexpr unsigned step = S * T;  // bytes, of `fields` micro-tiles
    using Bytes = aie::vector<uint8, step>;

    static_assert(!b_transposed, "B_TRANSPOSED: packed weights come in the kernel's own order");
    static_assert(tile_columns % (fields * T) == 0, "n must be a multiple of 4 t: a byte of B holds 4 column blocks");

    /// Fields First and First + 1 of the same bytes: one load serves both.
    template <unsigned Count, unsigned First> struct Columns {
        static_assert(Count == 2);
        static constexpr unsigned quad = tile_depth / S * step;  // bytes of 4 column blocks
        const uint8 *b;

        ALWAYS_INLINE Columns(const uint8 *tile, unsigned column) : b(tile + column / fields * quad) {}

        /// The masks are constants: they leave the loop.
        ALWAYS_INLINE auto next() {
            const Bytes packed = aie::load_v<step>(b);
            b += step;
            return Pair<std::array<aie::vector<int8, step>, run>>{{weights<First>(packed)},
                                                                  {weights<First + 1>(packed)}};
        }
    };

  private:
    /// The weights in one field, scaled by 4^Field.
    template <unsigned Field> static ALWAYS_INLINE aie::vector<int8, step> weights(const Bytes &packed) {
        const Bytes mask = aie::broadcast<uint8, step>(uint8(3 << (2 * Field)));
        const Bytes bias = aie::broadcast<uint8, step>(uint8(1 << (2 * Field)));
        return aie::sub(aie::bit_and(packed, mask), bias).template cast_to<int8>();
    }
};

/// int8 x ternary in micro-tiles R x S x T; C is int32, its column block 4 q + j scaled by 4^j.
template <unsigned R, unsigned S, unsigned T> struct Int8Ternary {
    using Tile = aie::mmul<R, S, T, int8, int8>;
    using A = MicroTile<int8, R, S, a_transposed>;
    using B = TernaryWeights<S, T>;
    using C = Accumulator<Tile, int32>;
};
