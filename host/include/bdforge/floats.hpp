#pragma once
/// Products of float matrices on loaded designs of bf16: copies in and out, what is kept, and runs.

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "bdforge/design.hpp"
#include "bdforge/job.hpp"

namespace bdforge {

/// A factor in the program's memory: row-major floats without gaps, or with `turned` the transpose of such a matrix.
/// `kept`: what it holds changes only before `FloatProducts::renew`, so that it is copied once and stays on the device.
struct Factor {
    const float* data;
    bool turned = false;
    bool kept = false;
};

/// c (M x N, row-major) = a (M x K) * b (K x N), plus `bias` of each column where it is not null; with `add`, plus what c
/// holds.
struct FloatProduct {
    std::size_t M, K, N;
    Factor a, b;
    float* c;
    bool add = false;
    const float* bias = nullptr;
};

/// What was done so far. `submissions`: how often the device was handed work, a batch counting once. `turned` is part of
/// `copied`: bytes of floats that were transposed on their way.
struct FloatCounts {
    std::size_t products = 0, submissions = 0, kept_copies = 0, copied_bytes = 0, turned_bytes = 0;
};

class FloatProductsState;

/// Every product is computed by the design, and as itself or as its transpose (c' = b' a'), whichever has the fewest
/// elements turned on the host; of those alike by the first design, and as itself. Designs differ in the orders in which
/// they take A and B and leave C, and no design has all that a step of training needs. One instruction stream, and memory
/// of the device's, for each size and set of kept factors. Threads take turns.
class FloatProducts {
public:
    /// ArgumentError for no designs, and for one that is no GEMM of bf16 with results of f32 or bf16.
    explicit FloatProducts(std::vector<Design> designs);

    /// Computes all of them, submitted at once where one design does all; none may read what another writes.
    /// ArgumentError for sizes that no design takes: then nothing was written. Errors as Job::run.
    void run(const std::vector<FloatProduct>& products, std::chrono::milliseconds timeout = default_timeout);

    /// Kept factors are copied again when they are used next.
    void renew();

    FloatCounts counts() const;

private:
    std::shared_ptr<FloatProductsState> state_;
};

}  // namespace bdforge
