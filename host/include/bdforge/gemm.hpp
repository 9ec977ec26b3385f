#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bdforge/design.hpp"

namespace bdforge {

class GemmState;
class BatchState;

/// Long enough for the largest GEMM on an idle NPU, short enough to notice a hang.
constexpr std::chrono::milliseconds default_timeout{10'000};

/// Memory of the caller for A or C, used without a copy: aligned to pages, alive as long as the Gemm.
/// `data` null: the Gemm has memory of its own. `stride`: elements from line to line, 0: no gap.
struct CallerMemory {
    void* data = nullptr;
    std::size_t stride = 0;
};

struct GemmOptions {
    CallerMemory a;
    CallerMemory c;
};

/// Factors that turn int32 sums to floats: out[i][j] = c[i][j] * rows[i] * columns[j] * all. Null: factor 1.
struct Scales {
    const float* rows = nullptr;
    const float* columns = nullptr;
    float all = 1.0F;
};

/// C (M x N) = A (M x K) * weights, with the types and orders of the design (`Manifest::operands`): lines are rows of
/// row-major operands and columns of column-major ones; block floats lie in lines of 8 rows, 9 bytes for each of their
/// columns. For one thread at a time.
/// When one is destroyed whose run is still going, as after a time-out, its memory stays until the process ends.
class Gemm {
public:
    /// Prepares everything; running it then costs no allocation. ArgumentError for sizes that the design cannot take.
    Gemm(const Design& design, std::size_t M, const Weights& weights, const GemmOptions& options = {});
    Gemm(Gemm&&) noexcept = default;
    Gemm& operator=(Gemm&&) noexcept = default;
    Gemm(const Gemm&) = delete;
    Gemm& operator=(const Gemm&) = delete;
    ~Gemm() = default;

    std::size_t M() const;
    std::size_t K() const;
    std::size_t N() const;

    /// Where to write A: position j of line i is a()[i * lda() + j]. Not while a run is going.
    /// ArgumentError when A is not int8; `a_memory` is for every type.
    std::int8_t* a();
    void* a_memory();
    std::size_t lda() const;
    /// Where C is after a run: position j of line i is c()[i * ldc() + j].
    /// ArgumentError when C is not int32; `c_memory` is for every type.
    const std::int32_t* c() const;
    const void* c_memory() const;
    std::size_t ldc() const;

    /// Computes C from A. TimeoutError when that takes longer, RunError when the device fails.
    void run(std::chrono::milliseconds timeout = default_timeout);
    /// Starts and returns; StateError when it is running already.
    void run_async();
    /// Waits for `run_async`. After a TimeoutError it may be called again. StateError when nothing was started.
    void wait(std::chrono::milliseconds timeout = default_timeout);

    /// Copies A in, runs, copies C out. Strides in elements, 0: no gap.
    void run(const void* a, std::size_t a_stride, void* c, std::size_t c_stride,
             std::chrono::milliseconds timeout = default_timeout);

    /// Writes C as floats, row-major with `stride` elements from row to row (0: N). ArgumentError when C is not int32.
    void scaled(float* out, std::size_t stride, const Scales& scales) const;

    /// Words of the instruction stream; 0 when a full ELF brings its own.
    std::size_t stream_words() const;

    const std::shared_ptr<GemmState>& state() const { return state_; }

private:
    std::shared_ptr<GemmState> state_;
};

/// Several GEMMs of one design, submitted 32 at a time and run in order (XRT's runlists). While it runs, they cannot.
/// Where a submission fails, its GEMMs are run again, one by one; `note` says which. Hence none may overwrite the A of
/// one before it.
class Batch {
public:
    Batch(const Design& design, const std::vector<Gemm*>& gemms);
    Batch(Batch&&) noexcept = default;
    Batch& operator=(Batch&&) noexcept = default;
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch() = default;

    void run(std::chrono::milliseconds timeout = default_timeout);
    void run_async();
    void wait(std::chrono::milliseconds timeout = default_timeout);

    /// Which GEMMs of the last run, counted from 1, ran one by one and why; "" when none had to.
    const std::string& note() const;

private:
    std::shared_ptr<BatchState> state_;
};

}  // namespace bdforge
