#include "block_floats.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace bdforge {
namespace {

constexpr int mantissa_bias = 127 + 6, largest_exponent = 254, mantissa_max = 127;

int exponent(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<int>(bits >> 23 & 255);
}

/// To nearest, ties to even, whatever the rounding mode of the thread; exact until then.
double mantissa(float value, int shared) {
    if (exponent(value) == 0) return 0;
    const double scaled = std::ldexp(static_cast<double>(value), mantissa_bias - shared), down = std::floor(scaled);
    const double rest = scaled - down;
    const bool odd = std::fmod(down, 2) != 0;
    return down + (rest > 0.5 || (rest == 0.5 && odd) ? 1 : 0);
}

}  // namespace

bool finite(const std::array<float, block_values>& values) {
    return std::all_of(values.begin(), values.end(), [](float value) { return exponent(value) < 255; });
}

Block encode(const std::array<float, block_values>& values) {
    int shared = 0;
    double largest = 0;
    for (const float value : values) shared = std::max(shared, exponent(value));
    for (const float value : values) largest = std::max(largest, mantissa(value, shared));
    if (largest > mantissa_max && shared < largest_exponent) ++shared;
    const double lowest = shared < largest_exponent ? -mantissa_max - 1 : -mantissa_max;
    Block block{static_cast<std::uint8_t>(shared)};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double clamped = std::clamp<double>(mantissa(values[i], shared), lowest, mantissa_max);
        block[i + 1] = static_cast<std::uint8_t>(static_cast<std::int8_t>(clamped));
    }
    return block;
}

std::array<float, block_values> decode(const Block& block) {
    std::array<float, block_values> values{};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double wide = std::ldexp(static_cast<std::int8_t>(block[i + 1]), block[0] - mantissa_bias);
        const bool fits = std::abs(wide) <= std::numeric_limits<float>::max();
        values[i] = fits ? static_cast<float>(wide) : std::copysign(INFINITY, static_cast<float>(block[i + 1] & 128 ? -1 : 1));
    }
    return values;
}

}  // namespace bdforge
