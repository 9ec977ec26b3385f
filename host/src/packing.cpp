#include "bdforge/packing.hpp"

#include <algorithm>
#include <string>

#include "bdforge/error.hpp"

namespace bdforge {
namespace {

constexpr std::size_t codes_per_byte = 4;
constexpr std::uint8_t zero_codes = 0x55;  // code 1, the weight 0, in all four fields

[[noreturn]] void refuse_value(const WeightView& weights, std::size_t row) {
    const std::int8_t* values = weights.data + row * weights.stride;
    const auto wrong = [](std::int8_t value) { return value < -1 || value > 1; };
    const std::int8_t* first = std::find_if(values, values + weights.columns, wrong);
    throw WeightError("the weight at row " + std::to_string(row) + ", column " + std::to_string(first - values) +
                      " is " + std::to_string(*first) + ", expected -1, 0 or 1; quantise the weights first");
}

void refuse_places(const Places& places, std::size_t multiple, const char* axis, const char* side) {
    if (!places.empty() && places.size() % multiple == 0) return;
    throw ArgumentError(std::string(axis) + " = " + std::to_string(places.size()) + " packed places, no multiple of " +
                        side + " = " + std::to_string(multiple) + "; use padded_places");
}

/// The t columns from each `start` lie side by side in the weights (true), or are looked up one by one.
std::vector<char> side_by_side(const Places& columns, std::size_t t) {
    std::vector<char> runs(columns.size() / t);
    for (std::size_t run = 0; run < runs.size(); ++run) {
        const std::int32_t* place = columns.data() + run * t;
        bool together = place[0] != zero_weight;
        for (std::size_t i = 1; i < t; ++i) together &= place[i] == place[0] + static_cast<std::int32_t>(i);
        runs[run] = together;
    }
    return runs;
}

class Packer {
public:
    Packer(const WeightView& weights, const Places& rows, const Places& columns, const PackedTile& tile)
        : weights_(weights), rows_(rows), columns_(columns), tile_(tile), runs_(side_by_side(columns, tile.t)) {}

    /// One k x n tile; returns the byte behind it.
    std::uint8_t* tile(std::size_t row, std::size_t column, std::uint8_t* out) const {
        const std::size_t group = codes_per_byte * tile_.t;
        for (std::size_t first = column; first < column + tile_.n; first += group) {
            for (std::size_t depth = row; depth < row + tile_.k; ++depth, out += tile_.t) line(depth, first, out);
        }
        return out;
    }

private:
    /// The t bytes that hold 4t columns, from packed column `first`, of one packed row.
    void line(std::size_t depth, std::size_t first, std::uint8_t* out) const {
        if (rows_[depth] == zero_weight) {
            std::fill_n(out, tile_.t, zero_codes);
            return;
        }
        const auto row = static_cast<std::size_t>(rows_[depth]);
        const std::int8_t* values = weights_.data + row * weights_.stride;
        std::fill_n(out, tile_.t, std::uint8_t{0});
        unsigned highest = 0;
        for (unsigned field = 0; field < codes_per_byte; ++field, first += tile_.t) {
            const bool together = runs_[first / tile_.t] != 0;
            const std::int32_t* place = columns_.data() + first;
            for (std::size_t i = 0; i < tile_.t; ++i) {
                const unsigned code =
                    together ? code_of(values[place[0] + static_cast<std::int32_t>(i)]) : code_at(values, place[i]);
                highest = std::max(highest, code);
                out[i] = static_cast<std::uint8_t>(out[i] | code << 2 * field);
            }
        }
        if (highest > 2) refuse_value(weights_, row);
    }

    static unsigned code_of(std::int8_t weight) { return static_cast<std::uint8_t>(weight + 1); }

    static unsigned code_at(const std::int8_t* values, std::int32_t place) {
        return place == zero_weight ? 1 : code_of(values[place]);
    }

    const WeightView& weights_;
    const Places& rows_;
    const Places& columns_;
    const PackedTile& tile_;
    std::vector<char> runs_;
};

}  // namespace

Places padded_places(std::size_t size, std::size_t multiple) {
    Places places((size + multiple - 1) / multiple * multiple, zero_weight);
    for (std::size_t i = 0; i < size; ++i) places[i] = static_cast<std::int32_t>(i);
    return places;
}

std::size_t packed_bytes(std::size_t rows, std::size_t columns) { return rows * columns / codes_per_byte; }

void pack(const WeightView& weights, const Places& rows, const Places& columns, const PackedTile& tile,
          std::uint8_t* out) {
    refuse_places(rows, tile.k, "K", "k");
    refuse_places(columns, tile.n, "N", "n");
    const Packer packer(weights, rows, columns, tile);
    for (std::size_t column = 0; column < columns.size(); column += tile.n) {
        for (std::size_t row = 0; row < rows.size(); row += tile.k) out = packer.tile(row, column, out);
    }
}

namespace {

/// One k x n tile; returns the element behind it.
template <class Element>
Element* plain_tile(const MatrixView<Element>& weights, const std::int32_t* rows, const std::int32_t* columns,
                    const PackedTile& tile, Element* out) {
    for (std::size_t first = 0; first < tile.n; first += tile.t) {
        for (std::size_t depth = 0; depth < tile.k; ++depth) {
            for (std::size_t i = first; i < first + tile.t; ++i) {
                const bool zero = rows[depth] == zero_weight || columns[i] == zero_weight;
                const std::size_t row = static_cast<std::size_t>(zero ? 0 : rows[depth]) * weights.stride;
                *out++ = zero ? Element{0} : weights.data[row + static_cast<std::size_t>(columns[i])];
            }
        }
    }
    return out;
}

}  // namespace

template <class Element>
void pack_tiles(const MatrixView<Element>& weights, const Places& rows, const Places& columns, const PackedTile& tile,
                Element* out) {
    refuse_places(rows, tile.k, "K", "k");
    refuse_places(columns, tile.n, "N", "n");
    for (std::size_t column = 0; column < columns.size(); column += tile.n) {
        for (std::size_t row = 0; row < rows.size(); row += tile.k) {
            out = plain_tile(weights, rows.data() + row, columns.data() + column, tile, out);
        }
    }
}

void pack_int4(const WeightView& weights, const Places& rows, const Places& columns, const PackedTile& tile,
               std::uint8_t* out) {
    refuse_places(columns, 2, "N", "two columns in a byte");
    for (std::size_t row = 0; row < weights.rows; ++row) {
        const std::int8_t* values = weights.data + row * weights.stride;
        const auto wrong = [](std::int8_t value) { return value < -8 || value > 7; };
        const std::int8_t* first = std::find_if(values, values + weights.columns, wrong);
        if (first == values + weights.columns) continue;
        throw WeightError("the weight at row " + std::to_string(row) + ", column " + std::to_string(first - values) +
                          " is " + std::to_string(*first) + ", expected -8 to 7; quantise the weights first");
    }
    std::vector<std::uint8_t> bytes(rows.size() * columns.size());
    const MatrixView<std::uint8_t> view{reinterpret_cast<const std::uint8_t*>(weights.data), weights.rows,
                                        weights.columns, weights.stride};
    pack_tiles(view, rows, columns, tile, bytes.data());
    for (std::size_t i = 0; i < bytes.size(); i += 2)
        out[i / 2] = static_cast<std::uint8_t>((bytes[i] & 15) | (bytes[i + 1] & 15) << 4);
}

template void pack_tiles(const MatrixView<std::uint8_t>&, const Places&, const Places&, const PackedTile&,
                         std::uint8_t*);
template void pack_tiles(const MatrixView<std::uint16_t>&, const Places&, const Places&, const PackedTile&,
                         std::uint16_t*);

}  // namespace bdforge
