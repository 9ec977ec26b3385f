#pragma once
/// Weights in the order in which the cores eat B; the twin of Python's `bdforge.weights`.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bdforge {

/// A row-major matrix that somebody else owns: `rows` x `columns`, `stride` elements from row to row.
template <class Element>
struct MatrixView {
    const Element* data;
    std::size_t rows;
    std::size_t columns;
    std::size_t stride;
};
using WeightView = MatrixView<std::int8_t>;

/// A core's tile of B, k x n, in micro-tiles of s x t.
struct PackedTile {
    std::size_t k;
    std::size_t n;
    std::size_t s;
    std::size_t t;
};

/// For each row or column of the packed matrix the one of the weights that stands there, or `zero_weight`.
using Places = std::vector<std::int32_t>;
constexpr std::int32_t zero_weight = -1;

/// The places 0 ... size - 1, then zeros up to a multiple of `multiple`.
Places padded_places(std::size_t size, std::size_t multiple);

/// Bytes of a packed ternary matrix of `rows` x `columns`, both multiples of the tile's.
std::size_t packed_bytes(std::size_t rows, std::size_t columns);

/// Packs the weights that `rows` and `columns` name: codes u = w + 1, four to a byte,
/// `[N/n][K/k][n/(4t)][k/s][s][t]`; field f (bits 2f+1:2f) is column f * t of a group of 4t.
/// `out` has room for `packed_bytes`. WeightError names row, column and value of a weight that is not -1, 0 or 1;
/// ArgumentError when the places are no multiples of the tile.
void pack(const WeightView& weights, const Places& rows, const Places& columns, const PackedTile& tile,
          std::uint8_t* out);

/// Packs int8 weights of -8 to 7 in the order of `pack_tiles`, two columns to a byte, the first in the low nibble.
/// `out` has room for half a byte for each place. WeightError for other values, ArgumentError as `pack`.
void pack_int4(const WeightView& weights, const Places& rows, const Places& columns, const PackedTile& tile,
               std::uint8_t* out);

/// Packs the elements that `rows` and `columns` name, `zero_weight` being 0: `[N/n][K/k][n/t][k/s][s][t]`.
/// `out` has room for `rows.size() * columns.size()`. For elements of 1 and 2 bytes; ArgumentError as `pack`.
template <class Element>
void pack_tiles(const MatrixView<Element>& weights, const Places& rows, const Places& columns, const PackedTile& tile,
                Element* out);

}  // namespace bdforge
