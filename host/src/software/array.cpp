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

/// m x depth of A, row-major, from slabs of k_mt.
std::vector<std::int8_t> read_a(const Tile& tile, std::size_t depth, Channel& channel) {
    std::vector<std::int8_t> a(tile.m * depth), slab(tile.m * tile.k_mt);
    for (std::size_t first = 0; first < depth; first += tile.k_mt) {
        channel.read(slab.data(), slab.size());
        for (std::size_t row = 0; row < tile.m; ++row) {
            std::copy_n(slab.data() + row * tile.k_mt, tile.k_mt, a.data() + row * depth + first);
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

/// depth x n of B, row-major, from packed k x n tiles.
std::vector<std::int8_t> read_b(const Tile& tile, std::size_t depth, Channel& channel) {
    std::vector<std::int8_t> b(depth * tile.n);
    std::vector<std::uint8_t> packed(tile.k * tile.n / codes_per_byte);
    for (std::size_t first = 0; first < depth; first += tile.k) {
        channel.read(packed.data(), packed.size());
        unpack(tile, packed.data(), b.data() + first * tile.n);
    }
    return b;
}

std::vector<std::int32_t> multiply(const Tile& tile, std::size_t depth, const std::vector<std::int8_t>& a,
                                   const std::vector<std::int8_t>& b) {
    std::vector<std::int32_t> c(tile.m * tile.n);
    for (std::size_t row = 0; row < tile.m; ++row) {
        std::int32_t* sums = c.data() + row * tile.n;
        for (std::size_t i = 0; i < depth; ++i) {
            const std::int32_t factor = a[row * depth + i];
            const std::int8_t* weights = b.data() + i * tile.n;
            for (std::size_t column = 0; column < tile.n; ++column) sums[column] += factor * weights[column];
        }
    }
    return c;
}

}  // namespace

void compute(const Facts& facts, Controller& controller) {
    const Tile tile = tile_of(facts);
    const std::size_t depth = controller.k_steps() * tile.k;
    if (depth % tile.k_mt != 0) throw RunError("K / k is no whole number of slabs; generate the stream again");
    for (std::uint32_t turn = 0; turn < controller.output_tiles(); ++turn) {
        std::vector<std::vector<std::int8_t>> a;
        for (const std::size_t column : facts.a_columns) {
            a.push_back(read_a(tile, depth, controller.channel(Operand::a, column)));
        }
        for (std::size_t column = 0; column < facts.columns; ++column) {
            const std::vector<std::int8_t> b = read_b(tile, depth, controller.channel(Operand::b, column));
            for (const auto& rows : a) {
                const std::vector<std::int32_t> c = multiply(tile, depth, rows, b);
                controller.channel(Operand::c, column).write(c.data(), c.size() * sizeof(c[0]));
            }
        }
    }
    for (std::size_t column = 0; column < facts.columns; ++column) {
        for (const Operand operand : {Operand::a, Operand::b, Operand::c}) controller.channel(operand, column).finish();
    }
}

}  // namespace bdforge::software
