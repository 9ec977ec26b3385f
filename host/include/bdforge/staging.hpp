// Which operands a host copies into buffers of its own, and the sizes that the shims then walk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "bdforge/stream_design.hpp"

namespace bdforge::generator {

/// A problem or a design from which no instruction stream can be made.
class SequenceError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
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

/// What the shims walk: the problem's sizes and leading dimensions, or those of the staged buffers.
struct Walked {
    std::int64_t M, K, N, lda, ldb, ldc;
    bool a_in_slabs;
};

namespace detail {

constexpr std::int64_t granule_bits = 32;

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

inline void refuse(const Problem &p, const std::string &reason) {
    throw SequenceError(std::to_string(p.M) + "x" + std::to_string(p.K) + "x" + std::to_string(p.N) + ": " + reason);
}

/// One size, its granule, and the tile below which the operand is staged.
struct Axis {
    std::int64_t size, granule, least;

    std::int64_t walked() const { return std::max(up(size, granule), least); }
    bool fits() const { return size >= least && size % granule == 0; }
};

/// A problem with every leading dimension, and its axes. SequenceError for sizes that the design cannot compute.
struct Request {
    const Design &design;
    const Problem given;
    const Axis m, k, n;

    Request(const Design &design, const Problem &problem)
        : design(design),
          given(with_leading(design, problem)),
          m{given.M, design.granules.m, design.least_rows},
          k{given.K, design.granules.k, design.tile.k_mt},
          n{given.N, design.granules.n, design.tile.n} {
        check();
    }

    Staging staging() const {
        const Storages &stores = design.operands;
        Staging staged;
        staged.a_in_slabs = a_in_slabs();
        if (staged.a_in_slabs || !reached(stores.a, m, k, given.lda))
            staged.a = Buffer{m.walked(), staged.a_in_slabs ? up(k.walked(), design.tile.k_mt) : k.walked()};
        if (stores.b.order != packed && !reached(stores.b, k, n, given.ldb))
            staged.b = Buffer{k.walked(), n.walked()};
        if (!reached(stores.c, m, n, given.ldc))
            staged.c = Buffer{m.walked(), n.walked()};
        return staged;
    }

    Walked walked() const {
        const Storages &stores = design.operands;
        const Staging staged = staging();
        const auto leading = [](const Storage &storage, const std::optional<Buffer> &buffer, std::int64_t own) {
            return buffer ? lines(storage, *buffer).positions : own;
        };
        return {m.walked(), k.walked(), n.walked(), leading(stores.a, staged.a, given.lda),
                stores.b.order == packed ? 0 : leading(stores.b, staged.b, given.ldb),
                leading(stores.c, staged.c, given.ldc), staged.a_in_slabs};
    }

private:
    static Problem with_leading(const Design &design, Problem p) {
        const Storages &stores = design.operands;
        if (p.lda == 0)
            p.lda = lines(stores.a, {p.M, p.K}).positions;
        if (p.ldb == 0)
            p.ldb = lines(stores.b, {p.K, p.N}).positions;
        if (p.ldc == 0)
            p.ldc = lines(stores.c, {p.M, p.N}).positions;
        return p;
    }

    /// Whether B is not packed and K no whole number of slabs.
    bool a_in_slabs() const { return design.operands.b.order != packed && k.walked() % design.tile.k_mt != 0; }

    /// Whether tiles fit and lines start at whole words, near enough for a BD to step from one to the next.
    bool reached(const Storage &storage, const Axis &rows, const Axis &columns, std::int64_t leading) const {
        return rows.fits() && columns.fits() && leading % granule(storage) == 0 &&
               words(leading * storage.run, storage.bits) <= design.shim.step_max;
    }

    void check() const {
        const auto size = [&](const char *name, std::int64_t value) {
            if (value < 1 || value > design.largest_size)
                refuse(given, std::string(name) + " = " + std::to_string(value) + " is outside 1 to " +
                                  std::to_string(design.largest_size));
        };
        size("M", given.M), size("K", given.K), size("N", given.N);
        if (given.K > design.depth_limit)
            refuse(given, "K = " + std::to_string(given.K) + " could overflow the sums; at most " +
                              std::to_string(design.depth_limit));
        const auto line = [&](const char *name, const Storage &storage, const char *axes, const Buffer &matrix,
                              std::int64_t leading) {
            if (storage.order != packed && leading < lines(storage, matrix).positions)
                refuse(given, std::string(name) + " = " + std::to_string(leading) + " is below " +
                                  axes[storage.order == column_major ? 0 : 1] + "; lines would overlap");
        };
        line("lda", design.operands.a, "MK", {given.M, given.K}, given.lda);
        line("ldb", design.operands.b, "KN", {given.K, given.N}, given.ldb);
        line("ldc", design.operands.c, "MN", {given.M, given.N}, given.ldc);
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

/// What is staged of a problem. SequenceError for sizes that the design cannot compute.
inline Staging staging(const Design &design, const Problem &p) { return detail::Request(design, p).staging(); }

/// The sizes and leading dimensions that the shims walk. SequenceError as `staging`.
inline Walked walked(const Design &design, const Problem &p) { return detail::Request(design, p).walked(); }

/// Memory elements of a buffer; of block floats these are bytes.
inline std::int64_t elements(const Storage &storage, const Buffer &buffer) {
    const detail::Lines lines = detail::lines(storage, buffer);
    return lines.count * lines.positions * storage.run;
}

/// Fill A's staged buffer of `elements(design.operands.a, *staged.a)`: A, and zeros; nothing if A is not staged.
template <typename Element>
void stage_a(const Design &design, const Staging &staged, const Problem &p, const Element *a, Element *buffer) {
    if (!staged.a)
        return;
    const Storage &storage = design.operands.a;
    const detail::Request request(design, p);
    const detail::Lines target = detail::lines(storage, *staged.a);
    detail::fill(storage, a, request.given.lda, detail::lines(storage, {p.M, p.K}), buffer, target);
    if (staged.a_in_slabs) {
        const std::int64_t K = request.k.walked();
        detail::move_to_slab_end(storage, K / design.tile.k_mt * design.tile.k_mt, K, target, buffer);
    }
}

/// Fill B's staged buffer: B, and zeros; nothing if B is not staged.
template <typename Element>
void stage_b(const Design &design, const Staging &staged, const Problem &p, const Element *b, Element *buffer) {
    if (!staged.b)
        return;
    const Storage &storage = design.operands.b;
    const detail::Request request(design, p);
    detail::fill(storage, b, request.given.ldb, detail::lines(storage, {p.K, p.N}), buffer,
                 detail::lines(storage, *staged.b));
}

/// Copy C home from its staged buffer; nothing if C is not staged.
template <typename Element>
void fetch_c(const Design &design, const Staging &staged, const Problem &p, const Element *buffer, Element *c) {
    if (!staged.c)
        return;
    const Storage &storage = design.operands.c;
    const detail::Request request(design, p);
    const detail::Lines lines = detail::lines(storage, {p.M, p.N}), held = detail::lines(storage, *staged.c);
    const std::int64_t ldc = detail::up(request.given.ldc, storage.block);
    for (std::int64_t line = 0; line < lines.count; ++line)
        std::copy_n(buffer + line * held.positions * storage.run,
                    detail::up(lines.positions, storage.block) * storage.run, c + line * ldc * storage.run);
}

}  // namespace bdforge::generator
