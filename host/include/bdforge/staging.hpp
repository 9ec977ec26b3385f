// Which operands of a GEMM a host copies into buffers of its own, and the copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "bdforge/numbers.hpp"

namespace bdforge::generator {

// Orders of operands in host memory; packed: B tile by tile in the order in which the cores eat it.
constexpr std::uint32_t row_major = 0, column_major = 1, packed = 2;

/// How an operand lies in host memory: elements of `bits` bits, line after line. A line of row-major memory holds
/// `block` rows, `run` elements for each of their columns; both are 1 but for block floats.
struct Storage {
    std::uint32_t bits, order, block, run;
};

/// How A, B and C lie in host memory.
struct Storages {
    Storage a, b, c;
};

/// What a GEMM design says of staging: the least M, K and N that are walked without (a tile; in M a panel where one
/// shim feeds several core rows), the depth of a slab of A, and the words from line to line that a BD can step.
struct Layouts {
    Storages operands;
    std::int64_t least_m, k_mt, n;
    std::int64_t step_max;
};

/// C (M x N) = A (M x K) B (K x N), with positions from line to line of each operand (rows of row-major ones, columns
/// of column-major ones); 0: no gap. Packed B has no lines.
struct Problem {
    Problem(std::int64_t M, std::int64_t K, std::int64_t N, std::int64_t lda = 0, std::int64_t ldb = 0,
            std::int64_t ldc = 0)
        : M(M), K(K), N(N), lda(lda), ldb(ldb), ldc(ldc) {}

    std::int64_t M, K, N, lda, ldb, ldc;
};

/// A buffer without gaps that stands for an operand of `rows` x `columns`.
struct Buffer {
    std::int64_t rows, columns;
};

/// What the host copies: `a` and `b` before the run, `c` after it; `stage_a`, `stage_b` and `fetch_c` do it.
///
/// Without a value the array reads or writes the user's memory. With `a_in_slabs` A's columns stand in whole slabs.
struct Staging {
    std::optional<Buffer> a, b, c;
    bool a_in_slabs = false;
};

namespace detail {

inline std::int64_t up(std::int64_t value, std::int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

inline std::int64_t words(std::int64_t elements, std::uint32_t bits) { return elements * bits / granule_bits; }

/// Positions along a line whose elements are whole words.
inline std::int64_t granule(const Storage &storage) {
    return std::max<std::int64_t>({granule_bits / storage.bits, storage.block, 1});
}

/// Lines of a matrix and positions in each.
struct Lines {
    std::int64_t count, positions;
};

inline Lines lines(const Storage &storage, const Buffer &matrix) {
    return storage.order == column_major ? Lines{matrix.columns, matrix.rows}
                                         : Lines{up(matrix.rows, storage.block) / storage.block, matrix.columns};
}

/// One size, its granule, and the tile below which the operand is staged.
struct Axis {
    std::int64_t size, granule, least;

    std::int64_t walked() const { return std::max(up(size, granule), least); }
    bool fits() const { return size >= least && size % granule == 0; }
};

/// What M, K or N must be a multiple of, so that tiles of both operands start at whole words.
inline std::int64_t granule(const Storage &one, bool along_one, const Storage &other, bool along_other) {
    return std::lcm(along_one ? granule(one) : 1, along_other ? granule(other) : 1);
}

/// A problem with every leading dimension, and its axes.
struct Request {
    const Layouts &layouts;
    const Problem given;
    const Axis m, k, n;

    Request(const Layouts &layouts, const Problem &problem)
        : layouts(layouts),
          given(with_leading(layouts, problem)),
          m{given.M, m_granule(layouts.operands), layouts.least_m},
          k{given.K, k_granule(layouts.operands), layouts.k_mt},
          n{given.N, n_granule(layouts.operands), layouts.n} {}

    Staging staging() const {
        const Storages &stores = layouts.operands;
        Staging staged;
        staged.a_in_slabs = stores.b.order != packed && k.walked() % layouts.k_mt != 0;
        if (staged.a_in_slabs || !reached(stores.a, m, k, given.lda))
            staged.a = Buffer{m.walked(), staged.a_in_slabs ? up(k.walked(), layouts.k_mt) : k.walked()};
        if (stores.b.order != packed && !reached(stores.b, k, n, given.ldb))
            staged.b = Buffer{k.walked(), n.walked()};
        if (!reached(stores.c, m, n, given.ldc))
            staged.c = Buffer{m.walked(), n.walked()};
        return staged;
    }

private:
    static Problem with_leading(const Layouts &layouts, Problem p) {
        const Storages &stores = layouts.operands;
        if (p.lda == 0)
            p.lda = lines(stores.a, {p.M, p.K}).positions;
        if (p.ldb == 0)
            p.ldb = lines(stores.b, {p.K, p.N}).positions;
        if (p.ldc == 0)
            p.ldc = lines(stores.c, {p.M, p.N}).positions;
        return p;
    }

    static std::int64_t m_granule(const Storages &stores) {
        const auto along = [](const Storage &storage) { return storage.order == column_major || storage.block > 1; };
        return granule(stores.a, along(stores.a), stores.c, along(stores.c));
    }

    static std::int64_t k_granule(const Storages &stores) {
        return granule(stores.a, stores.a.order == row_major, stores.b, stores.b.order == column_major);
    }

    static std::int64_t n_granule(const Storages &stores) {
        return granule(stores.b, stores.b.order == row_major, stores.c, stores.c.order == row_major);
    }

    /// Whether tiles fit and lines start at whole words, near enough for a BD to step from one to the next.
    bool reached(const Storage &storage, const Axis &rows, const Axis &columns, std::int64_t leading) const {
        return rows.fits() && columns.fits() && leading % granule(storage) == 0 &&
               words(leading * storage.run, storage.bits) <= layouts.step_max;
    }
};

/// Copies lines of `positions` positions of user's memory; what is left of each line and the lines behind are zeros.
template <typename Element>
void fill(const Storage &storage, const Element *from, std::int64_t leading, Lines source, Element *to, Lines target) {
    const std::int64_t length = up(source.positions, storage.block) * storage.run;
    const std::int64_t whole = target.positions * storage.run;
    for (std::int64_t line = 0; line < source.count; ++line, to += whole) {
        std::copy_n(from + line * up(leading, storage.block) * storage.run, length, to);
        std::fill(to + length, to + whole, Element{});
    }
    std::fill_n(to, (target.count - source.count) * whole, Element{});
}

/// Moves the columns of a filled A that stand behind `whole` to the end of the last slab, whose rest becomes zeros.
template <typename Element>
void move_to_slab_end(const Storage &storage, std::int64_t whole, std::int64_t columns, Lines target, Element *buffer) {
    const std::int64_t by = storage.order == column_major ? target.positions : storage.run;
    const std::int64_t lines = storage.order == column_major ? 1 : target.count;
    const std::int64_t end = storage.order == column_major ? target.count * by : target.positions * by;
    for (std::int64_t line = 0; line < lines; ++line, buffer += end) {
        std::copy_backward(buffer + whole * by, buffer + columns * by, buffer + end);
        std::fill(buffer + whole * by, buffer + end - (columns - whole) * by, Element{});
    }
}

}  // namespace detail

/// What is staged of a problem that the design's program takes.
inline Staging staging(const Layouts &layouts, const Problem &p) { return detail::Request(layouts, p).staging(); }

/// Memory elements of a buffer; of block floats these are bytes.
inline std::int64_t elements(const Storage &storage, const Buffer &buffer) {
    const detail::Lines lines = detail::lines(storage, buffer);
    return lines.count * lines.positions * storage.run;
}

/// Fill A's staged buffer of `elements(layouts.operands.a, *staged.a)`: A, and zeros; nothing if A is not staged.
template <typename Element>
void stage_a(const Layouts &layouts, const Staging &staged, const Problem &p, const Element *a, Element *buffer) {
    if (!staged.a)
        return;
    const Storage &storage = layouts.operands.a;
    const detail::Request request(layouts, p);
    const detail::Lines target = detail::lines(storage, *staged.a);
    detail::fill(storage, a, request.given.lda, detail::lines(storage, {p.M, p.K}), buffer, target);
    if (staged.a_in_slabs) {
        const std::int64_t K = request.k.walked();
        detail::move_to_slab_end(storage, K / layouts.k_mt * layouts.k_mt, K, target, buffer);
    }
}

/// Fill B's staged buffer: B, and zeros; nothing if B is not staged.
template <typename Element>
void stage_b(const Layouts &layouts, const Staging &staged, const Problem &p, const Element *b, Element *buffer) {
    if (!staged.b)
        return;
    const Storage &storage = layouts.operands.b;
    const detail::Request request(layouts, p);
    detail::fill(storage, b, request.given.ldb, detail::lines(storage, {p.K, p.N}), buffer,
                 detail::lines(storage, *staged.b));
}

/// Copy C home from its staged buffer; nothing if C is not staged.
template <typename Element>
void fetch_c(const Layouts &layouts, const Staging &staged, const Problem &p, const Element *buffer, Element *c) {
    if (!staged.c)
        return;
    const Storage &storage = layouts.operands.c;
    const detail::Request request(layouts, p);
    const detail::Lines lines = detail::lines(storage, {p.M, p.N}), held = detail::lines(storage, *staged.c);
    const std::int64_t ldc = detail::up(request.given.ldc, storage.block);
    for (std::int64_t line = 0; line < lines.count; ++line)
        std::copy_n(buffer + line * held.positions * storage.run,
                    detail::up(lines.positions, storage.block) * storage.run, c + line * ldc * storage.run);
}

}  // namespace bdforge::generator
