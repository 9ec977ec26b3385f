// Where the tiles of a GEMM of any size lie: where a dimension is no multiple, the last tile moves back.
//
// The same as `bdforge/operators/gemm/grid.py`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bdforge/stream_design.hpp"
#include "bdforge/staging.hpp"

namespace bdforge::generator {

/// Rows of C that one BD can walk, in the order of core rows.
struct RowGroup {
    std::int64_t first, rows;
};

class Grid {
public:
    Grid(const Design &design, const Walked &sizes)
        : tile_(design.tile), rows_(design.array.rows), columns_(design.array.columns), sizes_(sizes) {}

    std::int64_t panel_rows() const { return rows_ * tile_.m; }
    std::int64_t step_columns() const { return columns_ * tile_.n; }
    std::int64_t whole_panels() const { return sizes_.M / panel_rows(); }
    std::int64_t panels() const { return parts(sizes_.M, panel_rows()); }
    std::int64_t depth() const { return parts(sizes_.K, tile_.k_mt) * tile_.k_mt; }
    /// Columns of A in host memory.
    std::int64_t a_depth() const { return sizes_.a_in_slabs ? depth() : sizes_.K; }
    std::int64_t n_tiles() const { return parts(sizes_.N, tile_.n); }
    std::int64_t column_steps() const { return parts(n_tiles(), columns_); }

    /// Whether the last column step, or its last tile, had to move.
    bool moved_columns() const { return n_tiles() % columns_ || sizes_.N % tile_.n; }

    /// First row of a core row's tile. The last panel moves back as a whole; a single one tile by tile.
    std::int64_t row_start(std::int64_t panel, std::int64_t row) const {
        if (panel_rows() > sizes_.M)
            return std::min(row * tile_.m, sizes_.M - tile_.m);
        return std::min(panel * panel_rows(), sizes_.M - panel_rows()) + row * tile_.m;
    }

    /// The tiles of a panel with neighbours joined.
    std::vector<RowGroup> row_groups(std::int64_t panel) const {
        std::vector<RowGroup> groups;
        for (std::int64_t row = 0; row < rows_; ++row) {
            const std::int64_t start = row_start(panel, row);
            if (!groups.empty() && groups.back().first + groups.back().rows == start)
                groups.back().rows += tile_.m;
            else
                groups.push_back({start, tile_.m});
        }
        return groups;
    }

    /// The n-tile of an array column. The last step moves back as a whole; a single one repeats its last tile.
    std::int64_t n_tile(std::int64_t step, std::int64_t column) const {
        const std::int64_t tiles = n_tiles(), last = std::max<std::int64_t>(tiles - columns_, 0);
        return std::min(std::min(step * columns_, last) + column, tiles - 1);
    }

    /// First column of an n-tile in C; the last tile moves back.
    std::int64_t tile_column(std::int64_t n_tile) const { return std::min(n_tile * tile_.n, sizes_.N - tile_.n); }

private:
    static std::int64_t parts(std::int64_t size, std::int64_t part) { return (size + part - 1) / part; }

    Tile tile_;
    std::int64_t rows_, columns_;
    Walked sizes_;
};

/// Bytes of B as the array reads it: packed, or the lines of a matrix without gaps, which `staging` may enlarge.
inline std::int64_t b_bytes(const Design &design, const Problem &problem) {
    const Storage &storage = design.operands.b;
    const Walked sizes = walked(design, {problem.M, problem.K, problem.N});
    const Grid grid(design, sizes);
    if (storage.order == packed)
        return grid.n_tiles() * grid.depth() * design.tile.n * storage.bits / 8;
    return elements(storage, {sizes.K, sizes.N}) * storage.bits / 8;
}

}  // namespace bdforge::generator
