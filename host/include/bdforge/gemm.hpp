#pragma once
/// GEMMs, the jobs that most hosts run: C = A B with weights B that stay.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "bdforge/job.hpp"

namespace bdforge {

/// Weights of one matrix, K x N, packed and resident in memory that the device sees. Copies are the same weights.
class Weights : public Resident {
public:
    explicit Weights(Resident b) : Resident(std::move(b)) {}

    std::size_t K() const { return sizes().at("K"); }
    std::size_t N() const { return sizes().at("N"); }
};

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

/// C (M x N) = A (M x K) * weights, with the types and orders of the design: lines are rows of row-major operands and
/// columns of column-major ones; block floats lie in lines of 8 rows, 9 bytes for each of their columns. `job()` takes
/// what an epilogue adds: row_scales, column_scales, bias. For one thread at a time, as jobs are.
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

    std::size_t M() const { return job_.sizes().at("M"); }
    std::size_t K() const { return job_.sizes().at("K"); }
    std::size_t N() const { return job_.sizes().at("N"); }

    /// Where to write A: position j of line i is a()[i * lda() + j]. Not while a run is going.
    /// ArgumentError when A is not int8; `a_memory` is for every type.
    std::int8_t* a();
    void* a_memory() { return job_.memory("A"); }
    std::size_t lda() const { return job_.stride("A"); }
    /// Where C is after a run: position j of line i is c()[i * ldc() + j].
    /// ArgumentError when C is not int32; `c_memory` is for every type.
    const std::int32_t* c() const;
    const void* c_memory() const { return job_.memory("C"); }
    std::size_t ldc() const { return job_.stride("C"); }

    /// Computes C from A. TimeoutError when that takes longer, RunError when the device fails.
    void run(std::chrono::milliseconds timeout = default_timeout) { job_.run(timeout); }
    /// Starts and returns; StateError when it is running already.
    void run_async() { job_.run_async(); }
    /// Waits for `run_async`. After a TimeoutError it may be called again. StateError when nothing was started.
    void wait(std::chrono::milliseconds timeout = default_timeout) { job_.wait(timeout); }

    /// Copies A in, runs, copies C out. Strides in elements, 0: no gap.
    void run(const void* a, std::size_t a_stride, void* c, std::size_t c_stride,
             std::chrono::milliseconds timeout = default_timeout);

    /// Writes C as floats, row-major with `stride` elements from row to row (0: N). ArgumentError when C is not int32.
    void scaled(float* out, std::size_t stride, const Scales& scales) const;

    /// Words of the instruction stream; 0 when a full ELF brings its own.
    std::size_t stream_words() const { return job_.stream_words(); }

    Job& job() { return job_; }
    const Job& job() const { return job_; }

private:
    Job job_;
};

}  // namespace bdforge
