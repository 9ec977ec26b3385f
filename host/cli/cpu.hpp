#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "energy.hpp"
#include "options.hpp"

namespace bdforge::cli {

/// Milliseconds of each timed run of a GEMM on this machine's processor: int8 A, int8 W with K contiguous, int32 sums, all
/// its threads. What a design is held against by `bdforge estimate --versus cpu`.
std::vector<double> cpu_runs(const Options& options, Energy& energy);

}  // namespace bdforge::cli
