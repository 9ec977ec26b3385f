#include "trial.hpp"

#include <algorithm>
#include <cstdio>
#include <random>

#include "bdforge/npy.hpp"

namespace bdforge::cli {
namespace {

constexpr std::uint32_t seed = 1;

std::vector<std::int8_t> random_values(std::size_t count, int lowest, int highest, std::uint32_t which) {
    std::mt19937 generator(seed + which);
    std::vector<std::int8_t> values(count);
    const auto range = static_cast<std::uint32_t>(highest - lowest + 1);
    for (std::int8_t& value : values) value = static_cast<std::int8_t>(lowest + static_cast<int>(generator() % range));
    return values;
}

void check_size(const char* option, std::size_t given, std::size_t in_file, const std::string& file) {
    if (given == 0 || given == in_file) return;
    throw UsageError(std::string(option) + " is " + std::to_string(given) + ", but " + file + " has " +
                     std::to_string(in_file) + "; leave " + option + " out");
}

/// One row of A * W.
void multiply_row(const Problem& problem, std::size_t row, std::vector<std::int32_t>& sums) {
    std::fill(sums.begin(), sums.end(), 0);
    for (std::size_t k = 0; k < problem.K; ++k) {
        const std::int32_t factor = problem.a[row * problem.K + k];
        const std::int8_t* weights = problem.weights.data() + k * problem.N;
        for (std::size_t column = 0; column < problem.N; ++column) sums[column] += factor * weights[column];
    }
}

}  // namespace

Problem make_problem(const Options& options, const Design& design) {
    Problem problem{options.M, options.K, options.N, {}, {}};
    if (options.weights.empty()) {
        design.check(problem.M, problem.K, problem.N);  // before memory is asked for
        problem.weights = random_values(problem.K * problem.N, -1, 1, 0);
    } else {
        Int8Matrix matrix = load_npy(options.weights);
        check_size("-K", options.K, matrix.rows, options.weights);
        check_size("-N", options.N, matrix.columns, options.weights);
        problem.K = matrix.rows;
        problem.N = matrix.columns;
        problem.weights = std::move(matrix.values);
        design.check(problem.M, problem.K, problem.N);
    }
    problem.a = random_values(problem.M * problem.K, -128, 127, 1);
    return problem;
}

std::string first_mismatch(const Problem& problem, const Gemm& gemm) {
    std::vector<std::int32_t> expected(problem.N);
    for (std::size_t row = 0; row < problem.M; ++row) {
        multiply_row(problem, row, expected);
        const std::int32_t* got = gemm.c() + row * gemm.ldc();
        const auto wrong = std::mismatch(expected.begin(), expected.end(), got);
        if (wrong.first == expected.end()) continue;
        return "C[" + std::to_string(row) + ", " + std::to_string(wrong.first - expected.begin()) + "] is " +
               std::to_string(*wrong.second) + ", expected " + std::to_string(*wrong.first);
    }
    return "";
}

std::vector<double> timed_runs(Gemm& gemm, const Options& options) {
    const std::chrono::milliseconds timeout{options.timeout_ms};
    for (std::size_t i = 0; i < options.warmup; ++i) gemm.run(timeout);
    std::vector<double> times_ms;
    for (std::size_t i = 0; i < options.iterations; ++i) {
        const auto start = std::chrono::steady_clock::now();
        gemm.run(timeout);
        times_ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return times_ms;
}

std::string timing(const Problem& problem, std::vector<double> times_ms, bool npu) {
    std::sort(times_ms.begin(), times_ms.end());
    const double median_ms = times_ms[times_ms.size() / 2];
    const double macs =
        static_cast<double>(problem.M) * static_cast<double>(problem.K) * static_cast<double>(problem.N);
    char text[160];
    std::snprintf(text, sizeof text, "%s: %zu runs, lowest %.3f ms, median %.3f ms, %.3f TOPS at the median",
                  npu ? "measured" : "emulated, no NPU", times_ms.size(), times_ms.front(), median_ms,
                  2 * macs / (median_ms * 1e9));
    return text;
}

}  // namespace bdforge::cli
