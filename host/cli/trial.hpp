#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bdforge/bdforge.hpp"
#include "options.hpp"

namespace bdforge::cli {

/// The operands of a run, row-major without gaps; whole numbers, whatever the design's types.
struct Problem {
    std::size_t M, K, N;
    std::vector<std::int8_t> a;
    std::vector<std::int8_t> weights;
};

/// A at random, weights from the file or at random; the same for the same options. UsageError when -K or -N is not what
/// the file has or the design's types are none that can be made here, ArgumentError when it cannot take the sizes.
Problem make_problem(const Options& options, const Design& design);

/// Writes A into the memory of a GEMM, and B into that of a design, in their types and orders.
void write_a(const Problem& problem, Gemm& gemm, const Design& design);
Weights write_b(const Problem& problem, const Design& design);

/// UsageError for a design whose C has other rounding than a sum of products in int32 or float.
void check_verifiable(const Design& design);

/// The first element of C that is not that of A * W on the processor, as a sentence; "" when all are right.
std::string first_mismatch(const Problem& problem, const Gemm& gemm, const Design& design);

/// Milliseconds of each timed run, of all GEMMs together: by a batch where there are several.
std::vector<double> timed_runs(const Design& design, std::vector<Gemm>& gemms, const Options& options);

/// Lowest and median time of `gemms` GEMMs and the multiplications per second, with a label that says where they come
/// from.
std::string timing(const Problem& problem, std::size_t gemms, std::vector<double> times_ms, bool npu);

}  // namespace bdforge::cli
