#pragma once
// What runs take: times, the energy of the processor's packages, and a plain loop on the processor to hold a design against.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"

namespace bdforge::cli {

/// Energy that the processor's packages take, array and cores together, by RAPL's counters in Linux's powercap; other
/// programs' share is in it.
class Energy {
public:
    /// Finds the packages below `folder`.
    explicit Energy(std::string folder);

    void start();
    void stop();

    /// "1.234 J of package-0, 0.123 J a run", or in one sentence why there is none.
    std::string summary(std::size_t runs) const;

private:
    struct Package {
        std::string folder, name;
        std::uint64_t before = 0, after = 0, range = 0;  // microjoules; counters begin again behind `range`
    };

    void read(std::uint64_t Package::* place);

    std::vector<Package> packages_;
    std::string fault_;
};

/// Where powercap is: BDFORGE_POWERCAP, or where Linux has it.
std::string powercap_folder();

/// Milliseconds of each timed run of a GEMM on this machine's processor: int8 A, int8 W with K contiguous, int32 sums, all
/// its threads. What a design is held against by `bdforge estimate --versus cpu`.
std::vector<double> cpu_runs(const Options& options, Energy& energy);

/// Milliseconds of each timed run, of all jobs together: by a batch where there are several.
std::vector<double> timed_runs(const Design& design, const std::vector<Job>& jobs, const Options& options,
                               Energy& energy);

/// Of an even number of times the mean of the two in the middle.
double median(std::vector<double> times_ms);

/// Lowest and median time of `jobs` jobs, and their rate where they multiply matrices, with a label that says where they
/// come from.
std::string timing(const Sizes& sizes, std::size_t jobs, const std::vector<double>& times_ms, bool npu);

}  // namespace bdforge::cli
