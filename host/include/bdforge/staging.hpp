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

/// C (M x N) = A (M x K) B (K x N), A and C row-major with `lda` and `ldc` elements from row to row.
struct Problem {
    Problem(std::int64_t M, std::int64_t K, std::int64_t N) : Problem(M, K, N, K, N) {}
    Problem(std::int64_t M, std::int64_t K, std::int64_t N, std::int64_t lda, std::int64_t ldc)
        : M(M), K(K), N(N), lda(lda), ldc(ldc) {}

    std::int64_t M, K, N, lda, ldc;
};

/// A row-major buffer without gaps, in elements.
struct Buffer {
    std::int64_t rows, columns;
};

/// What the host copies: `a` before the run into the buffer's upper left corner, `c` after it from there.
///
/// Without a value the array reads or writes the user's memory. The rest of a staged A may hold anything.
struct Staging {
    std::optional<Buffer> a, c;
};

namespace detail {

constexpr std::int64_t granule_bits = 32;

inline std::int64_t up(std::int64_t value, std::int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

/// Elements in one 32-bit word.
inline std::int64_t granule(std::uint32_t bits) { return std::max<std::int64_t>(granule_bits / bits, 1); }

inline std::int64_t words(std::int64_t elements, std::uint32_t bits) { return elements * bits / granule_bits; }

/// Whether rows start at whole words, near enough for a BD to step from one to the next.
inline bool reachable(std::int64_t size, std::int64_t leading, std::uint32_t bits, const Design &design) {
    return size % granule(bits) == 0 && leading % granule(bits) == 0 && words(leading, bits) <= design.shim.step_max;
}

inline void refuse(const Problem &p, const std::string &reason) {
    throw SequenceError(std::to_string(p.M) + "x" + std::to_string(p.K) + "x" + std::to_string(p.N) + ": " + reason);
}

inline void check(const Design &design, const Problem &p) {
    const auto size = [&](const char *name, std::int64_t value) {
        if (value < 1 || value > design.largest_size)
            refuse(p, std::string(name) + " = " + std::to_string(value) + " is outside 1 to " +
                          std::to_string(design.largest_size));
    };
    size("M", p.M), size("K", p.K), size("N", p.N);
    if (p.K > design.depth_limit)
        refuse(p, "K = " + std::to_string(p.K) + " could overflow the sums; at most " +
                      std::to_string(design.depth_limit));
    if (p.lda < p.K)
        refuse(p, "lda = " + std::to_string(p.lda) + " is below K; rows would overlap");
    if (p.ldc < p.N)
        refuse(p, "ldc = " + std::to_string(p.ldc) + " is below N; rows would overlap");
}

/// K and N as packed B sees them: at least one slab and one n-tile, K in whole words of A.
inline std::int64_t packed_k(const Design &design, std::int64_t K) {
    return std::max(up(K, granule(design.element_bits.a)), design.tile.k_mt);
}

inline std::int64_t packed_n(const Design &design, std::int64_t N) {
    return std::max(up(N, granule(design.element_bits.c)), design.tile.n);
}

}  // namespace detail

/// What is staged of a problem. SequenceError for sizes that the design cannot compute.
inline Staging staging(const Design &design, const Problem &p) {
    detail::check(design, p);
    const Tile &tile = design.tile;
    const std::int64_t M = std::max(p.M, tile.m), K = detail::packed_k(design, p.K), N = detail::packed_n(design, p.N);
    Staging staged;
    if (p.M < tile.m || p.K < tile.k_mt || !detail::reachable(p.K, p.lda, design.element_bits.a, design))
        staged.a = Buffer{M, K};
    if (p.M < tile.m || p.N < tile.n || !detail::reachable(p.N, p.ldc, design.element_bits.c, design))
        staged.c = Buffer{M, N};
    return staged;
}

/// The sizes and leading dimensions that the shims walk: the problem's, or those of the staged buffers.
inline Problem walked(const Design &design, const Problem &p) {
    const Staging staged = staging(design, p);
    const std::int64_t K = detail::packed_k(design, p.K), N = detail::packed_n(design, p.N);
    return {std::max(p.M, design.tile.m), K, N, staged.a ? K : p.lda, staged.c ? N : p.ldc};
}

/// Copy A into its staged buffer of `staged.a->rows * staged.a->columns` elements; nothing if A is not staged.
template <typename Element>
void stage_a(const Staging &staged, const Problem &p, const Element *a, Element *buffer) {
    if (!staged.a)
        return;
    for (std::int64_t row = 0; row < p.M; ++row)
        std::copy_n(a + row * p.lda, p.K, buffer + row * staged.a->columns);
}

/// Copy C home from its staged buffer; nothing if C is not staged.
template <typename Element>
void fetch_c(const Staging &staged, const Problem &p, const Element *buffer, Element *c) {
    if (!staged.c)
        return;
    for (std::int64_t row = 0; row < p.M; ++row)
        std::copy_n(buffer + row * staged.c->columns, p.N, c + row * p.ldc);
}

}  // namespace bdforge::generator
