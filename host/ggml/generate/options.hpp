#pragma once
/// What is asked for on the command line.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace bdforge::generate {

/// Words that make no sense.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct Options {
    std::string model, text;
    std::vector<std::string> designs;  // compositions of a layer
    std::vector<std::int32_t> ids;
    std::size_t count = 32, threads = 1;
    bool is_text = false, help = false;
};

/// UsageError says which word, and what it may be.
Options parsed(int count, char** words);

extern const char* const help;

}  // namespace bdforge::generate
