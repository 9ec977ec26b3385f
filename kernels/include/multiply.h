// C += A * B for one core tile out of micro-tiles: blocking, edges and parts, for any types.
//
// Layouts, all 64-byte aligned and not overlapping; r x s x t is the shape of Tile, an aie::mmul:
//   A   [m/rho/r][k/s] micro-tiles r x s
//   B   [n/t][k/s] micro-tiles s x t: column block outer, depth inner
//   C   [m/r][n/t] micro-tiles r x t
// m % (rho r) == 0, k % s == 0, n % t == 0. Blocks of 2 x 2 micro-tiles; an odd row or column of them
// makes 1 x 2, 2 x 1 and 1 x 1 blocks at the edge.
//
// A kernel is a struct of four types:
//   Tile  the aie::mmul
//   A     `memory`, `step` (elements of memory in a micro-tile), `load(p)`: one micro-tile as operand of Tile; where
//         several in a row are cheaper, `load_run<Count>(p)` besides, an array of them
//   B     `memory`, `group` (2, or 4 when 4 column blocks share their bytes), `run` (depths that are loaded at a time, a
//         divisor of k / s) and `Columns<Count, First>(b, column)`, a reader of Count (1 or 2) column blocks from
//         `column` on, the block number First of a group: `next()` gives the `first` and the `second` operands at the
//         next `run` depths, two arrays
//   C     `memory`, `step`, `load(p)` and `store(p, tile)`; `begin()` sets the modes that they need
#pragma once

#include <array>

#include "dims.h"
#include "loops.h"

template <class V> struct Pair {
    V first, second;
};

/// Count micro-tiles that follow each other in memory.
template <class Operand, unsigned Count> static ALWAYS_INLINE auto load_tiles(const typename Operand::memory *p) {
    if constexpr (requires { Operand::template load_run<Count>(p); }) {
        return Operand::template load_run<Count>(p);
    } else {
        std::array<decltype(Operand::load(p)), Count> tiles;
        LOOP_UNROLL
        for (unsigned i = 0; i < Count; ++i)
            tiles[i] = Operand::load(p + i * Operand::step);
        return tiles;
    }
}

/// B with one operand per `Loaded::step` elements of memory. Loaded: as A; S: rows of its tiles; Run: depths at a time.
template <class Loaded, unsigned S, unsigned Run = 1> struct Weights {
    using memory = typename Loaded::memory;
    static constexpr unsigned group = 2;
    static constexpr unsigned run = Run;

    template <unsigned Count, unsigned First> struct Columns {
        static constexpr unsigned column_block = tile_depth / S * Loaded::step;
        const memory *b;

        ALWAYS_INLINE Columns(const memory *tile, unsigned column) : b(tile + column * column_block) {}

        ALWAYS_INLINE auto next() {
            const memory *const here = b;
            b += Run * Loaded::step;
            // With one column block there is no second, and what stands for it is never used.
            return Pair<decltype(load_tiles<Loaded, Run>(b))>{
                load_tiles<Loaded, Run>(here), load_tiles<Loaded, Run>(here + (Count - 1) * column_block)};
        }
    };
};

template <class Kernel> struct Multiply {
    using Tile = typename Kernel::Tile;
    using A = typename Kernel::A;
    using B = typename Kernel::B;
    using C = typename Kernel::C;
    using a_element = typename A::memory;
    using b_element = typename B::memory;
    using c_element = typename C::memory;

    static_assert(tile_rows % Tile::M == 0, "m must be a multiple of rho * r, the rows of one micro-tile");
    static_assert(tile_depth % Tile::K == 0, "k must be a multiple of s, the depth of one micro-tile");
    static_assert(tile_columns % Tile::N == 0, "n must be a multiple of t, the columns of one micro-tile");

    static constexpr unsigned row_blocks = tile_rows / Tile::M;  // of one call
    static constexpr unsigned depth_blocks = tile_depth / Tile::K;
    static constexpr unsigned column_blocks = tile_columns / Tile::N;
    static constexpr unsigned a_row_block = depth_blocks * A::step;
    static constexpr unsigned c_row_block = column_blocks * C::step;

    /// Rows row blocks times Count column blocks. c: the upper left of their micro-tiles.
    template <unsigned Rows, unsigned Count, class Columns>
    static ALWAYS_INLINE void block(const a_element *__restrict a, Columns b, c_element *__restrict c) {
        const a_element *__restrict upper = a;
        const a_element *__restrict lower = a + (Rows - 1) * a_row_block;
        Tile c00 = C::load(c), c01, c10, c11;
        if constexpr (Count == 2)
            c01 = C::load(c + C::step);
        if constexpr (Rows == 2)
            c10 = C::load(c + c_row_block);
        if constexpr (Rows == 2 && Count == 2)
            c11 = C::load(c + c_row_block + C::step);

        LOOP_MIN_ITERATIONS(DIM_K / (Tile::K * B::run))
        LOOP_NO_UNROLL
        for (unsigned depth = 0; depth < depth_blocks; depth += B::run) {
            const auto a0 = load_tiles<A, B::run>(upper);
            upper += B::run * A::step;
            const auto a1 = load_tiles<A, B::run>(lower);
            lower += B::run * A::step;
            const auto columns = b.next();
            LOOP_UNROLL
            for (unsigned i = 0; i < B::run; ++i) {
                c00.mac(a0[i], columns.first[i]);
                if constexpr (Count == 2)
                    c01.mac(a0[i], columns.second[i]);
                if constexpr (Rows == 2)
                    c10.mac(a1[i], columns.first[i]);
                if constexpr (Rows == 2 && Count == 2)
                    c11.mac(a1[i], columns.second[i]);
            }
        }

        C::store(c, c00);
        if constexpr (Count == 2)
            C::store(c + C::step, c01);
        if constexpr (Rows == 2)
            C::store(c + c_row_block, c10);
        if constexpr (Rows == 2 && Count == 2)
            C::store(c + c_row_block + C::step, c11);
    }

    /// Rows row blocks times all of B.
    template <unsigned Rows>
    static ALWAYS_INLINE void rows(const a_element *__restrict a, const b_element *__restrict b,
                                   c_element *__restrict c) {
        for (unsigned column = 0; column + B::group <= column_blocks; column += B::group) {
            block<Rows, 2>(a, typename B::template Columns<2, 0>(b, column), c);
            if constexpr (B::group == 4)
                block<Rows, 2>(a, typename B::template Columns<2, 2>(b, column + 2), c + 2 * C::step);
            c += B::group * C::step;
        }
        if constexpr (column_blocks % 2 == 1)
            block<Rows, 1>(a, typename B::template Columns<1, 0>(b, column_blocks - 1), c);
    }

    static ALWAYS_INLINE void tile(const a_element *__restrict a, const b_element *__restrict b,
                                   c_element *__restrict c) {
        for (unsigned row = 0; row + 2 <= row_blocks; row += 2) {
            rows<2>(a, b, c);
            a += 2 * a_row_block;
            c += 2 * c_row_block;
        }
        if constexpr (row_blocks % 2 == 1)
            rows<1>(a, b, c);
    }
};

/// The whole kernel: C += A * B for rows part * m/rho ... of the C tile that begins at c.
template <class Kernel, class A, class B, class C>
static ALWAYS_INLINE void multiply(const A *__restrict a, const B *__restrict b, C *__restrict c, unsigned part) {
    using Tiles = Multiply<Kernel>;
    Kernel::C::begin();
    event0();
    Tiles::tile(a, b, c + part * (Tiles::row_blocks * Tiles::c_row_block));
    event1();
}
