#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bdforge/manifest.hpp"

namespace bdforge {

/// A buffer that stands for an operand whose own memory the array cannot walk; `why` is "" when it can.
struct StagedShape {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::string why;

    bool needed() const { return !why.empty(); }
};

/// Sizes of a problem, and the positions from line to line of A and C; 0: no gap.
struct Sizes {
    std::size_t M, K, N, lda, ldc;

    auto key() const { return std::tie(M, K, N, lda, ldc); }
    bool operator<(const Sizes& other) const { return key() < other.key(); }
};

/// Words of a stream, and which operands need a buffer of their own.
struct Generated {
    std::shared_ptr<const std::vector<std::uint32_t>> words;
    StagedShape a, c;
    bool a_in_slabs = false;
};

/// Makes instruction streams by a manifest's program; each once, for any number of threads.
class Generator {
public:
    /// ArgumentError for sequences that are to wait in a way that there is none of.
    explicit Generator(const Manifest& manifest);
    ~Generator();

    /// ArgumentError with every reason why the design does not take a problem.
    void check(const Sizes& sizes) const;
    /// What says which operands are staged.
    const generator::Layouts& layouts() const { return layouts_; }
    /// ArgumentError as `check`.
    Generated get(const Sizes& sizes) const;
    /// Only what is staged; ArgumentError as `check`.
    Generated staged(const Sizes& sizes) const;
    /// Arranges A, whose lines have no gaps, in the slabs of its staged buffer.
    void stage_a(const Sizes& sizes, const void* a, void* buffer) const;

    /// Bytes of B (K x N) as the array reads it.
    std::size_t b_bytes(std::size_t K, std::size_t N) const;
    /// Copies lines of unpacked B, `stride` positions apart (0: no gap), into `b_bytes` of memory.
    void copy_b(std::size_t K, std::size_t N, const void* b, std::size_t stride, void* out) const;

private:
    class Cache;

    /// What `act` makes of the cache; its SequenceErrors name the design.
    template <class Act>
    auto named(Act act) const;
    /// Bytes of each host buffer.
    std::vector<std::int64_t> argument_bytes(const Sizes& sizes) const;

    const std::string design_;
    const generator::Layouts layouts_;
    std::unique_ptr<Cache> cache_;
};

}  // namespace bdforge
