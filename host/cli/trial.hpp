#pragma once
#include <map>
#include <string>
#include <vector>

#include "bdforge/bdforge.hpp"
#include "files.hpp"
#include "options.hpp"

namespace bdforge::cli {

/// A problem of a design, with arrays by operand: row-major, as files have them.
struct Problem {
    Sizes sizes;
    std::map<std::string, NpyArray> arrays;
};

/// Sizes of the options; K and N of weights from a file. UsageError where both say something else.
Problem make_problem(const Options& options);

/// The jobs of a trial, a batch where there are several; a GEMM's weights are placed once for all.
struct Trial {
    Problem problem;
    std::vector<Resident> residents;
    std::vector<Job> jobs;
};

/// Prepares jobs whose inputs are those of files, others at random; the same for the same options. UsageError for files
/// that fit no operand, ArgumentError for sizes that the design does not take.
Trial make_trial(const Options& options, const Design& design);

/// An output of a job, row-major.
NpyArray fetched(const Job& job, const OperandShape& operand);

/// Compares the outputs with the operator's reference, by bdforge in Python; "" when all elements are right, else the
/// first that is wrong. DeviceError where there is no such Python.
std::string first_mismatch(const Trial& trial, const Options& options);

/// Sizes as they are told: 256 x 2560 x 640, leading dimensions left out.
std::string size_text(const Design& design, const Sizes& sizes);

}  // namespace bdforge::cli
