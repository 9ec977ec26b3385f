// Instruction streams for GEMMs of any size, made where the call happens.
//
//     const std::vector<std::uint32_t> words = bdforge::sequence(design, {M, K, N});
//
// C++17, no dependencies. The same steps, word for word, as `bdforge.plan.sequence`; docs/sequences.md explains them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "bdforge/stream_design.hpp"
#include "bdforge/grid.hpp"
#include "bdforge/staging.hpp"
#include "bdforge/stream.hpp"

namespace bdforge::generator {
namespace detail {

/// `panels` row panels over `count` column steps; at least one of the two is 1.
struct Area {
    std::int64_t panel, panels, first, count;
};

/// The BDs of one shim, taken and freed in order.
struct Ring {
    std::uint32_t head = 0, used = 0;
};

/// Divides a problem into steps and makes their tasks.
class Walk {
public:
    Walk(const Design &design, const Problem &problem)
        : design_(design),
          tile_(design.tile),
          shim_(design.shim),
          sizes_(walked(design, problem)),
          grid_(design, sizes_),
          columns_(design.array.columns),
          b_words_(words(grid_.depth() * tile_.n, design.element_bits.b)),
          b_inner_words_(inner_words(b_words_)) {}

    const Grid &grid() const { return grid_; }

    /// The steps: whole panels in the order that needs fewer of them, then the panel that moved back.
    std::vector<Area> areas() const {
        const std::vector<Area> wide = column_ranges();
        const std::int64_t whole = grid_.whole_panels(), steps = grid_.column_steps(), most = most_panels();
        std::vector<Area> found;
        if (steps * ((whole + most - 1) / most) < whole * static_cast<std::int64_t>(wide.size())) {
            for (std::int64_t step = 0; step < steps; ++step)
                for (std::int64_t panel = 0; panel < whole; panel += most)
                    found.push_back({panel, std::min(most, whole - panel), step, 1});
        } else {
            add_panels(found, 0, whole, wide);
        }
        add_panels(found, whole, grid_.panels(), wide);
        return found;
    }

    /// The tasks of a step, those of A first.
    void tasks(const Area &area, std::vector<Task> &tasks) const {
        tasks.clear();
        for (std::uint32_t row = 0; row < design_.array.rows; ++row)
            tasks.push_back({A, design_.a_columns[row], area.panels * area.count, a(area, row)});
        for (std::uint32_t column = 0; column < columns_; ++column)
            tasks.push_back({B, column, area.panels, b(area, column)});
        const std::vector<RowGroup> groups = c_groups(area);
        const bool iterates = c_iterates(groups, area.count);
        for (std::uint32_t column = 0; column < columns_; ++column)
            tasks.push_back({C, column, iterates ? area.count : 1, c(area, groups, iterates, column)});
    }

private:
    static void add_panels(std::vector<Area> &areas, std::int64_t first, std::int64_t end, const std::vector<Area> &wide) {
        for (std::int64_t panel = first; panel < end; ++panel)
            for (const Area &columns : wide)
                areas.push_back({panel, 1, columns.first, columns.count});
    }

    /// The longest inner run that splits n-tiles of B into two wraps; 0 when none does.
    std::int64_t inner_words(std::int64_t length) const {
        for (std::int64_t inner = shim_.wraps[0]; inner > 0; --inner)
            if (length % inner == 0 && length / inner <= shim_.wraps[1])
                return inner;
        return 0;
    }

    std::int64_t a_words(std::int64_t elements) const { return words(elements, design_.element_bits.a); }
    std::int64_t c_words(std::int64_t elements) const { return words(elements, design_.element_bits.c); }

    /// Panels that one task of A can walk: its BDs iterate over them.
    std::int64_t most_panels() const {
        const bool near = a_words(grid_.panel_rows() * sizes_.lda) <= shim_.step_max;
        return near ? std::min(shim_.repeat_max, shim_.iteration_max) : 1;
    }

    /// The column steps of a panel.
    std::vector<Area> column_ranges() const {
        const std::int64_t steps = grid_.column_steps();
        const bool b_repeats = b_inner_words_ > 0 && columns_ * b_words_ <= shim_.step_max;
        std::int64_t most = b_repeats ? shim_.repeat_max : 1, end = steps;
        if (c_iterates(grid_.row_groups(0), 2)) {
            // All BDs of a chain run equally often, so the step that moved back cannot join the others.
            most = std::min<std::int64_t>(most, shim_.iteration_max);
            end = grid_.moved_columns() ? steps - 1 : steps;
        }
        std::vector<Area> ranges;
        for (std::int64_t first = 0; first < end; first += most)
            ranges.push_back({0, 1, first, std::min(most, end - first)});
        if (end < steps)
            ranges.push_back({0, 1, end, 1});
        return ranges;
    }

    /// Whether C's column steps are runs of a task: one BD cannot hold several when a panel's rows need more.
    bool c_iterates(const std::vector<RowGroup> &groups, std::int64_t count) const {
        return count > 1 && (groups.size() > 1 || groups[0].rows > shim_.wraps[1]);
    }

    /// Core row `row`'s rows of A in slabs, then the slab that moved back.
    std::vector<Bd> a(const Area &area, std::int64_t row) const {
        const std::int64_t start = grid_.row_start(area.panel, row) * sizes_.lda, slab = a_words(tile_.k_mt);
        const std::int64_t whole = sizes_.K / tile_.k_mt;
        const Dim rows = {tile_.m, a_words(sizes_.lda)}, panels = {area.panels, a_words(grid_.panel_rows() * sizes_.lda)};
        std::vector<Bd> bds = {{a_bytes(start), {{{slab, 1}, rows, {whole, slab}}}, false, panels}};
        if (sizes_.K % tile_.k_mt)
            bds.push_back({a_bytes(start + sizes_.K - tile_.k_mt), {{{slab, 1}, rows, {1, 0}}}, false, panels});
        return bds;
    }

    /// The column's n-tiles; linear for one.
    std::vector<Bd> b(const Area &area, std::int64_t column) const {
        std::vector<Bd> bds;
        const auto add = [&](std::int64_t n_tile, std::int64_t tiles) {
            const std::int64_t offset = n_tile * b_words_ * word_bytes;
            if (tiles == 1)
                bds.push_back({offset, {{{b_words_, 1}, {1, 0}, {1, 0}}}, true});
            else
                bds.push_back({offset,
                               {{{b_inner_words_, 1},
                                 {b_words_ / b_inner_words_, b_inner_words_},
                                 {tiles, columns_ * b_words_}}}});
        };
        stretches(area, columns_, [&](std::int64_t step) { return grid_.n_tile(step, column); }, add);
        return bds;
    }

    /// Rows of C; panels of a tall step follow one another.
    std::vector<RowGroup> c_groups(const Area &area) const {
        if (area.panels == 1)
            return grid_.row_groups(area.panel);
        return {{area.panel * grid_.panel_rows(), area.panels * grid_.panel_rows()}};
    }

    std::vector<Bd> c(const Area &area, const std::vector<RowGroup> &groups, bool iterates, std::int64_t column) const {
        const auto start = [&](std::int64_t step) { return grid_.tile_column(grid_.n_tile(step, column)); };
        std::vector<Bd> bds;
        if (iterates) {
            for (const RowGroup &group : groups) {
                bds.push_back(c_column(group, start(area.first)));
                bds.back().iteration = {area.count, c_words(grid_.step_columns())};
            }
            return bds;
        }
        stretches(area, grid_.step_columns(), start, [&](std::int64_t first_column, std::int64_t tiles) {
            for (const RowGroup &group : groups)
                bds.push_back(group.rows > shim_.wraps[1] ? c_column(group, first_column)
                                                          : c_tiles(group, first_column, tiles));
        });
        return bds;
    }

    /// A group's rows of one tile, however many.
    Bd c_column(const RowGroup &group, std::int64_t column) const {
        return {c_offset(group, column), {{{c_words(tile_.n), 1}, {1, 0}, {group.rows, c_words(sizes_.ldc)}}}};
    }

    Bd c_tiles(const RowGroup &group, std::int64_t column, std::int64_t tiles) const {
        return {c_offset(group, column),
                {{{c_words(tile_.n), 1}, {group.rows, c_words(sizes_.ldc)}, {tiles, c_words(grid_.step_columns())}}}};
    }

    std::int64_t c_offset(const RowGroup &group, std::int64_t column) const {
        return (group.first * sizes_.ldc + column) * design_.element_bits.c / 8;
    }

    std::int64_t a_bytes(std::int64_t elements) const { return elements * design_.element_bits.a / 8; }

    /// Calls `add(start, count)` for one or two stretches of equal stride; only the last start may be off.
    template <typename Start, typename Add>
    void stretches(const Area &area, std::int64_t stride, Start start, Add add) const {
        const std::int64_t first = start(area.first), last = start(area.first + area.count - 1);
        if (last == first + (area.count - 1) * stride)
            return add(first, area.count);
        add(first, area.count - 1);
        add(last, std::int64_t{1});
    }

    const Design &design_;
    const Tile &tile_;
    const Shim &shim_;
    Problem sizes_;
    Grid grid_;
    std::int64_t columns_;
    std::int64_t b_words_;  // of one n-tile
    std::int64_t b_inner_words_;
};

/// Runs steps in order, as many at a time as queues and BDs hold.
class Schedule {
public:
    Schedule(const Design &design, Writer &writer)
        : design_(design), writer_(writer), rings_(design.array.columns) {}

    void start(const std::vector<Task> &tasks) {
        std::vector<std::uint32_t> needs(rings_.size());
        for (const Task &task : tasks)
            needs[task.column] += static_cast<std::uint32_t>(task.bds.size());
        while (!running_.empty() && (running_.size() == design_.shim.tasks_in_flight || !fits(needs)))
            wait();
        for (const Task &task : tasks)
            run(task);
        running_.push_back(std::move(needs));
    }

    void finish() {
        while (!running_.empty())
            wait();
    }

private:
    bool fits(const std::vector<std::uint32_t> &needs) const {
        for (std::size_t column = 0; column < needs.size(); ++column)
            if (rings_[column].used + needs[column] > design_.shim.bds)
                return false;
        return true;
    }

    void wait() {
        writer_.wait_for_c();
        for (std::size_t column = 0; column < rings_.size(); ++column)
            rings_[column].used -= running_.front()[column];
        running_.pop_front();
    }

    void run(const Task &task) {
        Ring &ring = rings_[task.column];
        const std::uint32_t first = ring.head;
        for (std::size_t i = 0; i < task.bds.size(); ++i) {
            const std::uint32_t id = ring.head, next = (ring.head + 1) % design_.shim.bds;
            writer_.configure(task, task.bds[i], id, i + 1 < task.bds.size() ? &next : nullptr);
            ring.head = next;
            ++ring.used;
        }
        writer_.push(task, first);
    }

    const Design &design_;
    Writer &writer_;
    std::vector<Ring> rings_;
    std::deque<std::vector<std::uint32_t>> running_;  // BDs by column of each step in flight
};

/// SequenceError for a tile that the shims' BDs cannot describe.
inline void check_tile(const Design &design) {
    const auto require = [](bool legal, const char *reason) {
        if (!legal)
            throw SequenceError(reason);
    };
    const Tile &tile = design.tile;
    const std::array<std::uint32_t, 2> &wraps = design.shim.wraps;
    require(tile.k_mt % tile.k == 0, "k_mt is no multiple of k");
    require(tile.k * tile.n * design.element_bits.b % granule_bits == 0, "a tile of B is no whole number of words");
    require(tile.n * design.element_bits.c % granule_bits == 0, "a row of a tile of C is no whole number of words");
    require(words(tile.k_mt, design.element_bits.a) <= wraps[0], "k_mt is longer than a BD's inner dimension");
    require(words(tile.n, design.element_bits.c) <= wraps[0], "n is longer than a BD's inner dimension");
    require(tile.m <= wraps[1], "m is larger than a BD's second dimension");
}

}  // namespace detail

/// The instruction stream that computes `problem`. SequenceError for sizes that the design cannot compute.
///
/// Arguments: A (or its staged buffer), B packed, C (or its staged buffer); see `staging`.
inline std::vector<std::uint32_t> sequence(const Design &design, const Problem &problem) {
    detail::check_tile(design);
    const detail::Walk walk(design, problem);
    detail::Writer writer(design);
    const auto k_steps = static_cast<std::uint32_t>(walk.grid().depth() / design.tile.k);
    const auto tiles = static_cast<std::uint32_t>(walk.grid().panels() * walk.grid().column_steps());
    for (const Core &core : design.cores) {
        writer.write(core.k_steps, k_steps);
        writer.write(core.output_tiles, tiles);
        writer.write(core.go, 1);
    }
    detail::Schedule schedule(design, writer);
    std::vector<detail::Task> tasks;
    for (const detail::Area &area : walk.areas()) {
        walk.tasks(area, tasks);
        schedule.start(tasks);
    }
    schedule.finish();
    return writer.finish();
}

}  // namespace bdforge::generator

namespace bdforge {
using generator::sequence;
}
