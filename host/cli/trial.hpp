#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bdforge/bdforge.hpp"
#include "options.hpp"

namespace bdforge::cli {

/// The operands of a run, row-major without gaps.
struct Problem {
    std::size_t M, K, N;
    std::vector<std::int8_t> a;
    std::vector<std::int8_t> weights;
};

/// A at random, weights from the file or at random; the same for the same options. UsageError when -K or -N is not what
/// the file has, ArgumentError when the design cannot take the sizes.
Problem make_problem(const Options& options, const Design& design);

/// The first element of C that is not that of A * W on the processor, as a sentence; "" when all are right.
std::string first_mismatch(const Problem& problem, const Gemm& gemm);

/// Milliseconds of each timed run.
std::vector<double> timed_runs(Gemm& gemm, const Options& options);

/// Lowest and median time and the multiplications per second, with a label that says where they come from.
std::string timing(const Problem& problem, std::vector<double> times_ms, bool npu);

}  // namespace bdforge::cli
