#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "bdforge/backend.hpp"
#include "bdforge/manifest.hpp"

namespace bdforge::software {

/// The operands of C = A B; also their order as arguments of the runtime sequence.
enum class Operand { a, b, c };
constexpr std::size_t operand_count = 3;

/// A field of a register group: its word, lowest bit and largest value.
struct Field {
    std::size_t word;
    unsigned low;
    std::uint32_t largest;

    std::uint32_t of(const std::uint32_t* words) const { return words[word] >> low & largest; }
};

/// What one shim brings of A for each panel: `rows` rows, from `offset` in core row `row`'s tile on.
struct Feed {
    std::uint32_t column, row;
    std::int64_t offset, rows;
};

/// Where a core reads its parameters, and the lock that says they are there.
struct CoreAddresses {
    std::uint32_t k_steps, output_tiles, go;
};

/// Orders of operands in host memory.
enum class Order { row, column, packed };

/// A core's tile m x k x n, the depth k_mt of a memtile's slab, the MAC shape r x s x t.
struct TileSizes {
    std::int64_t m, k, n, k_mt, r, s, t;
};

/// What the software device knows of the array: what the manifest's sequence program does to it, and the tile sizes.
struct Facts {
    TileSizes tile;
    std::size_t rows, columns;
    std::array<std::uint32_t, 2> header;
    std::array<std::uint32_t, operand_count> arguments;  // index of each operand
    std::array<Order, operand_count> orders;
    bool ternary;                       // B holds codes of 2 bits
    std::vector<Feed> a_feeds;
    std::vector<CoreAddresses> cores;
    std::uint32_t column_stride;
    std::uint32_t bd_address, bd_stride_bytes, bds;
    std::size_t patched_word;
    std::array<std::uint32_t, operand_count> queues;  // task queue of each operand's channel, column 0
    std::uint32_t token_direction, token_channel;
    Field length, d0_wrap, d0_step, d1_wrap, d1_step, d2_step, iteration_wrap, iteration_step, next, use_next;
    Field queue_bd, queue_repeat, queue_token;
};

/// Reads them; ManifestError names what is missing, DeviceError an element type that the software device lacks.
Facts read_facts(const Manifest& manifest);

}  // namespace bdforge::software
