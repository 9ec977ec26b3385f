// Instruction streams for GEMMs of any size, made where the call happens.
//
//     const std::vector<std::uint32_t> words = bdforge::sequence(design, {M, K, N});
//
// C++17, no dependencies. The same steps, word for word, as `bdforge.operators.gemm.sequence`; docs/sequences.md explains them.
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
          a_(design.operands.a),
          b_(design.operands.b),
          c_(design.operands.c),
          sizes_(walked(design, problem)),
          grid_(design, sizes_),
          columns_(design.array.columns),
          b_words_(words(grid_.depth() * tile_.n, b_.bits)),
          b_inner_words_(b_.order == packed ? inner_words(b_words_) : 0),
          fed_(design.fed_bytes.panel > 0 || design.fed_bytes.tile > 0),
          a_stride_(outer_offset(a_, row_major, grid_.panel_rows(), sizes_.lda)),
          b_stride_(outer_offset(b_, column_major, grid_.step_columns(), sizes_.ldb)) {}

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
        const std::int64_t runs = area.panels * area.count;
        for (const Feed &feed : design_.a_feeds)
            tasks.push_back({A, feed.column, runs, a(area, feed)});
        for (std::uint32_t column = 0; column < columns_; ++column)
            tasks.push_back({B, column, b_.order == packed && !fed_ ? area.panels : runs, b(area, column)});
        const std::vector<RowGroup> groups = c_groups(area);
        const bool iterates = c_iterates(groups, area.count);
        const std::int64_t c_runs = c_.order == column_major ? runs : iterates ? area.count : 1;
        for (std::uint32_t column = 0; column < columns_; ++column)
            tasks.push_back({C, column, c_runs, c(area, groups, iterates, column)});
    }

private:
    static void add_panels(std::vector<Area> &areas, std::int64_t first, std::int64_t end, const std::vector<Area> &wide) {
        for (std::int64_t panel = first; panel < end; ++panel)
            for (const Area &columns : wide)
                areas.push_back({panel, 1, columns.first, columns.count});
    }

    /// The longest inner run that splits n-tiles of packed B into two wraps; 0 when none does.
    std::int64_t inner_words(std::int64_t length) const {
        for (std::int64_t inner = shim_.wraps[0]; inner > 0; --inner)
            if (length % inner == 0 && length / inner <= shim_.wraps[1])
                return inner;
        return 0;
    }

    /// Memory elements from an operand's row (A) or column (B) to the one `rows` further on.
    static std::int64_t outer_offset(const Storage &storage, std::uint32_t along_depth, std::int64_t rows,
                                     std::int64_t leading) {
        return storage.order == along_depth ? rows / storage.block * leading * storage.run : rows;
    }

    bool near(const Storage &storage, std::int64_t stride) const {
        return words(stride, storage.bits) <= shim_.step_max;
    }

    /// Panels that one task can walk: the BDs of A, and of a column-major C, iterate over them.
    std::int64_t most_panels() const {
        return near(a_, a_stride_) ? std::min(shim_.repeat_max, shim_.iteration_max) : 1;
    }

    /// The column steps of a panel.
    std::vector<Area> column_ranges() const {
        const std::int64_t steps = grid_.column_steps();
        std::int64_t most = columns_iterate() ? shim_.repeat_max : 1, end = steps;
        if (b_.order != packed || fed_ || c_iterates(c_groups({0, 1, 0, 1}), 2)) {
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

    /// Whether one BD of B, and of a column-major C, can walk several column steps.
    bool columns_iterate() const {
        if (c_.order == column_major && !near(c_, grid_.step_columns() * sizes_.ldc))
            return false;
        if (b_.order != packed)
            return near(b_, b_stride_);
        return b_inner_words_ > 0 && columns_ * b_words_ <= shim_.step_max;
    }

    /// Whether C's column steps are runs of a task: one BD cannot hold several when a panel's lines need more.
    bool c_iterates(const std::vector<RowGroup> &groups, std::int64_t count) const {
        return count > 1 && (c_.order == column_major || groups.size() > 1 || groups[0].rows > shim_.wraps[1]);
    }

    /// A feed's rows of A in slabs, then the slab that moved back.
    std::vector<Bd> a(const Area &area, const Feed &feed) const {
        const std::int64_t start = grid_.row_start(area.panel, feed.row) + feed.offset;
        return slabs(a_, row_major, start, feed.rows, sizes_.lda, grid_.a_depth(), {area.panels, a_stride_});
    }

    /// The column's n-tiles, column step by column step.
    std::vector<Bd> b(const Area &area, std::int64_t column) const {
        if (fed_)
            return b_fed(area, column);
        if (b_.order == packed)
            return b_packed(area, column);
        const std::int64_t start = grid_.tile_column(grid_.n_tile(area.first, column));
        return slabs(b_, column_major, start, tile_.n, sizes_.ldb, sizes_.K, {area.count, b_stride_});
    }

    /// `rows` rows of A (columns of B) from `start` on, slab by slab: lines of k_mt, or k_mt lines where they run
    /// across K.
    std::vector<Bd> slabs(const Storage &storage, std::uint32_t along_depth, std::int64_t start, std::int64_t rows,
                          std::int64_t leading, std::int64_t depth, Dim runs) const {
        const std::int64_t whole = depth / tile_.k_mt, begin = outer_offset(storage, along_depth, start, leading);
        const std::int64_t line = leading * storage.run;
        std::vector<Bd> bds;
        const std::int64_t run = tile_.k_mt * storage.run, rest = depth % tile_.k_mt;
        if (whole == 1 && rest > 0 && storage.order == along_depth)  // two slabs, however far apart
            return {bd(storage, begin, {run, 1}, {rows / storage.block, line}, {2, rest * storage.run}, runs)};
        if (whole == 1 && rest > 0 && tile_.k_mt <= shim_.wraps[1] && near(storage, rest * leading))
            return {bd(storage, begin, {rows, 1}, {tile_.k_mt, line}, {2, rest * line}, runs)};
        const auto add = [&](std::int64_t first_slab_position, std::int64_t count) {
            if (storage.order == along_depth) {
                bds.push_back(bd(storage, begin + first_slab_position * storage.run, {run, 1},
                                 {rows / storage.block, line}, {count, count > 1 ? run : 0}, runs));
            } else {
                bds.push_back(bd(storage, begin + first_slab_position * line, {rows, 1}, {1, 0},
                                 {count * tile_.k_mt, line}, runs));
            }
        };
        add(0, whole);
        if (rest > 0)
            add(depth - tile_.k_mt, 1);
        return bds;
    }

    /// The column's n-tiles of packed B; linear for one.
    std::vector<Bd> b_packed(const Area &area, std::int64_t column) const {
        std::vector<Bd> bds;
        const auto add = [&](std::int64_t n_tile, std::int64_t tiles, std::int64_t apart) {
            const std::int64_t offset = n_tile * b_words_ * word_bytes;
            if (tiles == 1)
                bds.push_back({from_b, offset, {{{b_words_, 1}, {1, 0}, {1, 0}}}});
            else
                bds.push_back({from_b, offset,
                               {{{b_inner_words_, 1},
                                 {b_words_ / b_inner_words_, b_inner_words_},
                                 {tiles, apart * b_words_}}}});
        };
        stretches(area, columns_, [&](std::int64_t step) { return grid_.n_tile(step, column); }, add);
        return bds;
    }

    /// An n-tile, the row panel's numbers and the n-tile's, again for each column step or panel.
    std::vector<Bd> b_fed(const Area &area, std::int64_t column) const {
        const std::int64_t n_tile = grid_.n_tile(area.first, column);
        return {stretch(from_b, n_tile, b_words_, area.count, columns_),
                stretch(from_r, area.panel, design_.fed_bytes.panel / word_bytes, area.panels, 1),
                stretch(from_s, n_tile, design_.fed_bytes.tile / word_bytes, area.count, columns_)};
    }

    /// Stretch `first` of `length` words each, moved on by `stride` stretches in each of `count` runs.
    Bd stretch(Source source, std::int64_t first, std::int64_t length, std::int64_t count, std::int64_t stride) const {
        const std::int64_t offset = first * length * word_bytes;
        if (count == 1)
            return {source, offset, {{{length, 1}, {1, 0}, {1, 0}}}};
        const std::int64_t inner = inner_words(length);
        if (inner == 0)
            throw SequenceError("a stretch of packed B has no two factors that a BD's dimensions hold");
        return {source, offset, {{{inner, 1}, {length / inner, inner}, {1, 0}}}, {count, stride * length}};
    }

    /// Rows of C, or lines of several rows; panels of a tall step follow one another.
    std::vector<RowGroup> c_groups(const Area &area) const {
        std::vector<RowGroup> groups = grid_.row_groups(area.panel);
        if (c_.order == column_major)
            return groups;
        if (area.panels > 1)
            groups = {{area.panel * grid_.panel_rows(), area.panels * grid_.panel_rows()}};
        for (RowGroup &group : groups)
            group = {group.first / c_.block, group.rows / c_.block};
        return groups;
    }

    std::vector<Bd> c(const Area &area, const std::vector<RowGroup> &groups, bool iterates, std::int64_t column) const {
        if (c_.order == column_major)
            return c_columns(area, groups, column);
        const auto start = [&](std::int64_t step) { return grid_.tile_column(grid_.n_tile(step, column)) * c_.run; };
        const std::int64_t step = grid_.step_columns() * c_.run;
        std::vector<Bd> bds;
        if (iterates) {
            for (const RowGroup &group : groups)
                bds.push_back(c_lines(group, start(area.first), {area.count, step}));
            return bds;
        }
        stretches(area, step, start, [&](std::int64_t first, std::int64_t tiles, std::int64_t apart) {
            for (const RowGroup &group : groups)
                bds.push_back(group.rows > shim_.wraps[1] ? c_lines(group, first, {1, 0})
                                                          : c_tiles(group, first, tiles, apart));
        });
        return bds;
    }

    /// A group's lines of one tile, however many.
    Bd c_lines(const RowGroup &group, std::int64_t first, Dim runs) const {
        const std::int64_t line = sizes_.ldc * c_.run;
        return bd(c_, group.first * line + first, {tile_.n * c_.run, 1}, {1, 0}, {group.rows, line}, runs);
    }

    Bd c_tiles(const RowGroup &group, std::int64_t first, std::int64_t tiles, std::int64_t step) const {
        const std::int64_t line = sizes_.ldc * c_.run;
        return bd(c_, group.first * line + first, {tile_.n * c_.run, 1}, {group.rows, line}, {tiles, step}, {1, 0});
    }

    /// Column-major C: neighbouring tiles of core rows, in each column step or panel.
    std::vector<Bd> c_columns(const Area &area, const std::vector<RowGroup> &groups, std::int64_t column) const {
        const std::int64_t start = grid_.tile_column(grid_.n_tile(area.first, column)) * sizes_.ldc;
        const std::int64_t stride = area.panels > 1 ? grid_.panel_rows() : grid_.step_columns() * sizes_.ldc;
        std::vector<Bd> bds;
        for (const RowGroup &group : groups)
            bds.push_back(bd(c_, start + group.first, {tile_.m, 1}, {tile_.n, sizes_.ldc},
                             {group.rows / tile_.m, tile_.m}, {area.panels * area.count, stride}));
        return bds;
    }

    /// A BD of memory elements, innermost dimension first. SequenceError when its registers cannot hold it.
    Bd bd(const Storage &storage, std::int64_t offset, Dim d0, Dim d1, Dim d2, Dim runs) const {
        const auto in_words = [&](Dim dim) { return Dim{dim.size, words(dim.stride, storage.bits)}; };
        const Source source = &storage == &a_ ? from_a : &storage == &b_ ? from_b : from_c;
        const Bd made{source,
                      offset * storage.bits / 8,
                      {{{words(d0.size, storage.bits), 1}, in_words(d1), in_words(d2)}},
                      runs.size > 1 ? in_words(runs) : Dim{1, 0}};
        const bool dims_fit = made.dims[0].size <= shim_.wraps[0] && made.dims[1].size <= shim_.wraps[1] &&
                              made.dims[1].stride <= shim_.step_max && made.dims[2].stride <= shim_.step_max;
        const bool runs_fit =
            made.iteration.stride <= shim_.step_max && made.iteration.size <= shim_.iteration_max;
        if (!(made.linear() || dims_fit) || !runs_fit)
            throw SequenceError("a tile or a leading dimension is larger than a BD's dimensions");
        return made;
    }

    /// Calls `add(start, count, stride)` for one or two stretches; only the last start may be off. Two steps are one
    /// stretch, however far apart.
    template <typename Start, typename Add>
    void stretches(const Area &area, std::int64_t stride, Start start, Add add) const {
        const std::int64_t first = start(area.first), last = start(area.first + area.count - 1);
        if (area.count == 2)
            return add(first, area.count, last - first);
        if (last == first + (area.count - 1) * stride)
            return add(first, area.count, stride);
        add(first, area.count - 1, stride);
        add(last, std::int64_t{1}, stride);
    }

    const Design &design_;
    const Tile &tile_;
    const Shim &shim_;
    const Storage &a_, &b_, &c_;
    Walked sizes_;
    Grid grid_;
    std::int64_t columns_;
    std::int64_t b_words_;  // of one n-tile of packed B
    std::int64_t b_inner_words_;
    bool fed_;
    std::int64_t a_stride_, b_stride_;  // memory elements from panel to panel, from column step to column step
};

/// Runs steps in order, as many at a time as queues and BDs hold.
class Schedule {
public:
    Schedule(const Design &design, Writer &writer, const Grid &grid)
        : design_(design), writer_(writer), grid_(grid), rings_(design.array.columns) {}

    void start(const std::vector<Task> &tasks) {
        std::vector<std::uint32_t> needs(rings_.size());
        for (const Task &task : tasks)
            needs[task.column] += static_cast<std::uint32_t>(task.bds.size());
        while (!running_.empty() && (running_.size() == design_.shim.tasks_in_flight || !fits(needs)))
            wait();
        for (const Task &task : tasks) {
            if (task.operand == C && !released_)
                release();
            run(task);
        }
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

    /// Cores begin once the first step's A and B are on their way to them.
    void release() {
        writer_.release(static_cast<std::uint32_t>(grid_.depth() / design_.tile.k),
                        static_cast<std::uint32_t>(grid_.panels() * grid_.column_steps()));
        released_ = true;
    }

    const Design &design_;
    Writer &writer_;
    const Grid &grid_;
    bool released_ = false;
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
    const Storages &stores = design.operands;
    require(tile.k_mt % tile.k == 0, "k_mt is no multiple of k");
    require(tile.k * tile.n * stores.b.bits % granule_bits == 0, "a tile of B is no whole number of words");
    const auto whole = [](const Storage &storage, std::int64_t down, std::int64_t across) {
        return (storage.order == column_major ? down : across * storage.run) * storage.bits % granule_bits == 0;
    };
    require(whole(stores.a, tile.m, tile.k_mt), "a line of a slab of A is no whole number of words");
    require(stores.b.order == packed || whole(stores.b, tile.k_mt, tile.n),
            "a line of a slab of B is no whole number of words");
    require(whole(stores.c, tile.m, tile.n), "a line of a tile of C is no whole number of words");
}

}  // namespace detail

/// The instruction stream that computes `problem`. SequenceError for sizes that the design cannot compute.
///
/// Arguments: A, B and C, or their staged buffers; see `staging`.
inline std::vector<std::uint32_t> sequence(const Design &design, const Problem &problem) {
    detail::check_tile(design);
    const detail::Walk walk(design, problem);
    detail::Writer writer(design);
    detail::Schedule schedule(design, writer, walk.grid());
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
