#pragma once
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "bdforge/job.hpp"

namespace bdforge::cli {

/// A command line that cannot be followed; the message is one sentence.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A GEMM that runs so many times.
struct Weighed {
    Sizes sizes;
    std::size_t times;
};

struct Options {
    std::string design;  // xclbin or full ELF
    std::string device = "0";
    std::string weights;                                 // .npy of B, "" for random ones
    std::string wait;                                    // "column", "wide", "" for the design's way
    Sizes sizes;                                         // by parameter
    std::vector<Weighed> shapes;                         // instead of them
    std::map<std::string, std::string> inputs, outputs;  // .npy files by operand
    std::size_t in_flight = 0;
    std::size_t batch = 1;
    std::size_t iterations = 10;
    std::size_t warmup = 2;
    std::size_t timeout_ms = 10'000;
    bool verify = false;
    bool energy = false;
    bool generic = false;  // sizes by name
    bool any_device = false;
    bool help = false;
};

/// Reads the words behind the program's name; UsageError names the first that is wrong.
Options parse(const std::vector<std::string>& words);

/// What --help prints.
std::string usage();

}  // namespace bdforge::cli
