#include "array.hpp"

#include <algorithm>

#include "bdforge/error.hpp"

namespace bdforge::software {
namespace {

constexpr std::size_t codes_per_byte = 4;

struct Tile {
    std::size_t m, k, n, k_mt, s, t;
};

Tile tile_of(const Facts& facts) {
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    return {size(facts.tile.m),    size(facts.tile.k), size(facts.tile.n),
            size(facts.tile.k_mt), size(facts.tile.s), size(facts.tile.t)};
}

/// Adds a slab of `rows` x `columns` to a row-major matrix at `to`: row by row, or column by column.
void read_slab(Channel& channel, bool by_columns, std::size_t rows, std::size_t columns, std::int8_t* to,
               std::size_t stride) {
    std::vector<std::int8_t> slab(rows * columns);
    channel.read(slab.data(), slab.size());
    for (std::size_t i = 0; i < slab.size(); ++i) {
        const std::size_t row = by_columns ? i % rows : i / columns, column = by_columns ? i / rows : i % columns;
        to[row * stride + column] = slab[i];
    }
}

/// A panel of A, all core rows' m x depth, row-major, from slabs of k_mt.
std::vector<std::int8_t> read_a(const Facts& facts, const Tile& tile, std::size_t depth, Controller& controller) {
    std::vector<std::int8_t> a(facts.rows * tile.m * depth);
    const bool by_columns = facts.orders[0] == Order::column;
    for (const Feed& feed : facts.a_feeds) {
        Channel& channel = controller.channel(Operand::a, feed.column);
        const std::size_t start = feed.row * tile.m + static_cast<std::size_t>(feed.offset);
        for (std::size_t first = 0; first < depth; first += tile.k_mt) {
            read_slab(channel, by_columns, static_cast<std::size_t>(feed.rows), tile.k_mt,
                      a.data() + start * depth + first, depth);
        }
    }
    return a;
}

/// One packed k x n tile: [n/(4t)][k/s][s][t] bytes, field f of a byte for column f * t of a group of 4t.
void unpack(const Tile& tile, const std::uint8_t* packed, std::int8_t* b) {
    const std::size_t group = codes_per_byte * tile.t;
    for (std::size_t column = 0; column < tile.n; column += group) {
        for (std::size_t row = 0; row < tile.k; ++row) {
            for (std::size_t i = 0; i < group; ++i) {
                const int code = packed[i % tile.t] >> 2 * (i / tile.t) & 3;
                if (code == 3) throw RunError("B holds code 3, which is no ternary weight; pack the weights again");
                b[row * tile.n + column + i] = static_cast<std::int8_t>(code - 1);
            }
            packed += tile.t;
        }
    }
}

/// depth x n of ternary B, row-major, from packed k x n tiles.
std::vector<std::int8_t> read_ternary(const Tile& tile, std::size_t depth, Channel& channel) {
    std::vector<std::int8_t> b(depth * tile.n);
    std::vector<std::uint8_t> packed(tile.k * tile.n / codes_per_byte);
    for (std::size_t first = 0; first < depth; first += tile.k) {
        channel.read(packed.data(), packed.size());
        unpack(tile, packed.data(), b.data() + first * tile.n);
    }
    return b;
}

/// depth x n of int8 B, row-major: from tiles of s x t micro-tiles, t columns at a time, or from slabs.
std::vector<std::int8_t> read_b(const Facts& facts, const Tile& tile, std::size_t depth, Channel& channel) {
    if (facts.ternary) return read_ternary(tile, depth, channel);
    std::vector<std::int8_t> b(depth * tile.n);
    const bool by_columns = facts.orders[1] == Order::column;
    if (facts.orders[1] != Order::packed) {
        for (std::size_t first = 0; first < depth; first += tile.k_mt)
            read_slab(channel, by_columns, tile.k_mt, tile.n, b.data() + first * tile.n, tile.n);
        return b;
    }
    for (std::size_t first = 0; first < depth; first += tile.k) {
        for (std::size_t column = 0; column < tile.n; column += tile.t)
            read_slab(channel, false, tile.k, tile.t, b.data() + first * tile.n + column, tile.n);
    }
    return b;
}

/// m x n of C in the order in which it leaves the memtile; `a` is the core row's m x depth.
std::vector<std::int32_t> multiply(const Tile& tile, std::size_t depth, const std::int8_t* a,
                                   const std::vector<std::int8_t>& b, bool by_columns) {
    std::vector<std::int32_t> c(tile.m * tile.n), lines(c.size());
    for (std::size_t row = 0; row < tile.m; ++row) {
        std::int32_t* sums = c.data() + row * tile.n;
        for (std::size_t i = 0; i < depth; ++i) {
            const std::int32_t factor = a[row * depth + i];
            const std::int8_t* weights = b.data() + i * tile.n;
            for (std::size_t column = 0; column < tile.n; ++column) sums[column] += factor * weights[column];
        }
    }
    if (!by_columns) return c;
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = c[i % tile.m * tile.n + i / tile.m];
    return lines;
}

}  // namespace

void compute(const Facts& facts, Controller& controller) {
    const Tile tile = tile_of(facts);
    const bool by_columns = facts.orders[2] == Order::column;
    const std::size_t depth = controller.k_steps() * tile.k;
    if (depth % tile.k_mt != 0) throw RunError("K / k is no whole number of slabs; generate the stream again");
    for (std::uint32_t turn = 0; turn < controller.output_tiles(); ++turn) {
        const std::vector<std::int8_t> a = read_a(facts, tile, depth, controller);
        for (std::size_t column = 0; column < facts.columns; ++column) {
            const std::vector<std::int8_t> b = read_b(facts, tile, depth, controller.channel(Operand::b, column));
            for (std::size_t row = 0; row < facts.rows; ++row) {
                const std::vector<std::int32_t> c =
                    multiply(tile, depth, a.data() + row * tile.m * depth, b, by_columns);
                controller.channel(Operand::c, column).write(c.data(), c.size() * sizeof(c[0]));
            }
        }
    }
    for (std::size_t column = 0; column < facts.columns; ++column) {
        for (const Operand operand : {Operand::a, Operand::b, Operand::c}) controller.channel(operand, column).finish();
    }
}

}  // namespace bdforge::software
