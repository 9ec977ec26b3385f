#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bdforge/manifest.hpp"

namespace bdforge {

/// A row-major buffer that stands for an operand whose own memory the array cannot walk; `why` is "" when it can.
struct StagedShape {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::string why;

    bool needed() const { return !why.empty(); }
};

/// Sizes of a problem, and the elements from row to row of A and C.
struct Sizes {
    std::size_t M, K, N, lda, ldc;

    auto key() const { return std::tie(M, K, N, lda, ldc); }
    bool operator<(const Sizes& other) const { return key() < other.key(); }
};

/// Words of a stream, and which operands need a buffer of their own.
struct Generated {
    std::shared_ptr<const std::vector<std::uint32_t>> words;
    StagedShape a, c;
};

/// Makes instruction streams from the numbers in a manifest; each once, for any number of threads.
class Generator {
public:
    /// ManifestError when a number is missing.
    explicit Generator(const Manifest& manifest);
    ~Generator();

    /// ArgumentError when the design cannot compute the problem.
    Generated get(const Sizes& sizes) const;
    /// Only what is staged.
    Generated staged(const Sizes& sizes) const;

private:
    class Cache;
    std::string design_;
    std::unique_ptr<Cache> cache_;
};

}  // namespace bdforge
