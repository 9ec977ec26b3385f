// Kernels whose products run in bfp16ebs8: eight values along K share an exponent (AIE2P).
//
// A micro-tile is 8 x 8 values, 8 blocks of 9 bytes, 72 bytes in all: row by row for A and C, column by column for B,
// which the product takes transposed. bfloat16 operands are converted when they are loaded, to nearest even; sums
// are float32 in registers. C in memory is float32, bfloat16 or bfp16ebs8; the narrower ones are rounded by every call.
//
// 72 is no multiple of 64: these tiles go through the load and store FIFOs, which take any byte address. To open a stream
// fills a FIFO with one line, each tile pops another. A core has two load FIFOs, one in each load unit, so that streams
// of two rows of A and two columns of B would take turns in them and open again for every tile, as many fills as pops.
// The inner loop therefore takes two tiles of each (`run`) from a stream that it opens for these: six of eight load
// slots for four products instead of eight, and two thirds of them pops. Addresses are in bytes, where pointers to
// bfp16ebs8 would depend on the compiler.
#pragma once

#include <array>

#include "arch.h"
#include "floats.h"

static_assert(is_aie2p, "block floats are AIE2P's: compile with -D__AIE_ARCH__=21, or for a target that defines it");

constexpr unsigned block_tile = 64;  // values of one micro-tile
constexpr unsigned block_tile_bytes = 72;
using BlockTile = aie::block_vector<bfp16ebs8, block_tile>;
using BlockSums = aie::accum<accfloat, block_tile>;
using BlockInput = aie::block_vector_input_buffer_stream<bfp16ebs8, block_tile>;
using BlockOutput = aie::block_vector_output_buffer_stream<bfp16ebs8, block_tile>;

/// 8 x 8 x 8 of two block tiles.
struct BlockProduct {
    using Product = aie::mmul<8, 8, 8, bfp16ebs8, bfp16ebs8>;
    static constexpr unsigned M = 8, K = 8, N = 8;

    Product product;

    BlockProduct() = default;
    explicit ALWAYS_INLINE BlockProduct(const BlockSums &sums) : product(sums) {}

    ALWAYS_INLINE void mac(const BlockTile &a, const BlockTile &b) { product.mac(a, aie::op_transpose(b)); }
    template <class T> ALWAYS_INLINE auto to_vector() const { return product.template to_vector<T>(); }
    ALWAYS_INLINE BlockTile to_blocks() const { return product.to_accum().template to_vector<bfp16ebs8>(); }
};

/// Block tiles as they lie in memory.
struct Blocks {
    using memory = uint8;
    static constexpr unsigned step = block_tile_bytes;
    static constexpr unsigned run = tile_depth / 8 % 2 == 0 ? 2 : 1;

    static ALWAYS_INLINE BlockTile load(const uint8 *p) { return load_run<1>(p)[0]; }
    /// Count tiles, one after another.
    template <unsigned Count> static ALWAYS_INLINE std::array<BlockTile, Count> load_run(const uint8 *p) {
        BlockInput stream(reinterpret_cast<const bfp16ebs8 *>(p));
        std::array<BlockTile, Count> tiles;
        LOOP_UNROLL
        for (unsigned i = 0; i < Count; ++i)
            tiles[i] = stream.pop();
        return tiles;
    }
    static ALWAYS_INLINE void store(uint8 *p, const BlockTile &tile) {
        BlockOutput(reinterpret_cast<bfp16ebs8 *>(p)).push(tile);
    }
};

/// A or B in block tiles.
template <bool Transposed> struct PackedBlocks : Blocks {
    static_assert(!Transposed, "A_TRANSPOSED, B_TRANSPOSED: blocks lie along K; the host packs them so");
};

/// Block tiles out of 8 x 8 bfloat16, each line of which becomes a block. Transposed: lines are columns in memory.
template <bool Transposed> struct BlocksOfBfloat16 {
    using Stored = MicroTile<bfloat16, 8, 8, Transposed>;
    using memory = bfloat16;
    static constexpr unsigned step = Stored::step;
    static constexpr unsigned run = 1;

    static ALWAYS_INLINE BlockTile load(const bfloat16 *p) {
        return BlockSums(Stored::load(p)).template to_vector<bfp16ebs8>();
    }
};

/// C as block tiles, blocks along N: C can be the A of a next product.
template <bool Transposed> struct BlockAccumulator {
    using memory = uint8;
    static constexpr unsigned step = Blocks::step;
    static_assert(!Transposed, "C_TRANSPOSED: blocks of C lie along N, so C of bfp16 cannot be transposed");

    static ALWAYS_INLINE BlockProduct load(const uint8 *c) { return BlockProduct(BlockSums(Blocks::load(c))); }
    static ALWAYS_INLINE void store(uint8 *c, const BlockProduct &tile) { Blocks::store(c, tile.to_blocks()); }
    static ALWAYS_INLINE void begin() { set_float_modes(); }
};

template <class A_, class B_, class C_> struct BlockFloats {
    using Tile = BlockProduct;
    using A = A_;
    using B = Weights<B_, 8, B_::run>;
    using C = C_;
};

/// C with elements T of memory; bfp16ebs8 names block tiles.
template <class T, bool Transposed = c_transposed> struct BlockSumsIn : FloatAccumulator<BlockProduct, T> {};
template <bool Transposed> struct BlockSumsIn<bfp16ebs8, Transposed> : BlockAccumulator<Transposed> {};

/// bfloat16 x bfloat16 -> C_. A block of B is a column: what is transposed in memory needs no turning, and the reverse.
template <class C_>
using Bfloat16AsBlocks =
    BlockFloats<BlocksOfBfloat16<a_transposed>, BlocksOfBfloat16<!b_transposed>, BlockSumsIn<C_>>;

/// Block tiles x block tiles -> C_.
template <class C_>
using BlocksTimesBlocks =
    BlockFloats<PackedBlocks<a_transposed>, PackedBlocks<b_transposed>, BlockSumsIn<C_>>;

/// bfloat16 x block tiles -> C_.
template <class C_>
using Bfloat16TimesBlocks =
    BlockFloats<BlocksOfBfloat16<a_transposed>, PackedBlocks<b_transposed>, BlockSumsIn<C_>>;
