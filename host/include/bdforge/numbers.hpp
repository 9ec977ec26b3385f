// Integers of 64 bits, checked: SequenceError where one leaves its range.
#pragma once

#include <cstdint>
#include <string>

#include "bdforge/program.hpp"

namespace bdforge::generator::detail {

constexpr std::int64_t granule_bits = 32;  // what DMAs move

[[noreturn]] inline void outside(const char *what, std::int64_t value, std::int64_t lowest, std::int64_t highest) {
    throw SequenceError(std::string(what) + " is " + std::to_string(value) + "; it must be from " +
                        std::to_string(lowest) + " to " + std::to_string(highest));
}

/// `value`, where it is in a range; SequenceError names it and its limits.
inline std::int64_t ranged(const char *what, std::int64_t value, std::int64_t lowest, std::int64_t highest) {
    return value < lowest || value > highest ? outside(what, value, lowest, highest), 0 : value;
}

[[noreturn]] inline void too_large(const char *what, std::int64_t a, std::int64_t b) {
    throw SequenceError(std::string(what) + " of " + std::to_string(a) + ", " + std::to_string(b) +
                        " needs more than 64 bits");
}

inline std::int64_t product(const char *what, std::int64_t a, std::int64_t b) {
    std::int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? too_large(what, a, b), 0 : result;
}

}  // namespace bdforge::generator::detail
