#pragma once
// Numbers as the array has them: bf16, and bfp16ebs8, blocks of 8 values that share an exponent; the same as
// `bdforge/devices/formats`, which says the rules.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace bdforge {

/// bf16 as 16-bit words, the upper halves of floats.
using Bf16 = std::uint16_t;

/// To nearest, ties to even; NaN stays NaN.
inline Bf16 narrowed(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value), rounded = bits + 0x7FFF + (bits >> 16 & 1);
    const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    return static_cast<Bf16>((nan ? bits | 0x400000 : rounded) >> 16);
}

inline float widened(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

constexpr std::int64_t block_values = 8, block_bytes = 9, tile_bytes = block_values * block_bytes;
constexpr int mantissa_bias = 127 + 6, largest_exponent = 254, mantissa_max = 127;

/// The exponent, then the mantissas.
using Block = std::array<std::uint8_t, block_bytes>;
using BlockValues = std::array<float, block_values>;

inline int exponent(float value) { return static_cast<int>(std::bit_cast<std::uint32_t>(value) >> 23 & 255); }

/// Whether a block may hold them: no infinity, no NaN.
inline bool finite(const BlockValues& values) {
    return std::all_of(values.begin(), values.end(), [](float value) { return exponent(value) < 255; });
}

/// To nearest, ties to even, whatever the rounding mode of the thread; exact until then.
inline double mantissa(float value, int shared) {
    if (exponent(value) == 0) return 0;
    const double scaled = std::ldexp(static_cast<double>(value), mantissa_bias - shared), down = std::floor(scaled);
    const double rest = scaled - down;
    return down + (rest > 0.5 || (rest == 0.5 && std::fmod(down, 2) != 0) ? 1 : 0);
}

inline Block encode(const BlockValues& values) {
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

inline BlockValues decode(const Block& block) {
    BlockValues values{};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double wide = std::ldexp(static_cast<std::int8_t>(block[i + 1]), block[0] - mantissa_bias);
        const bool fits = std::abs(wide) <= std::numeric_limits<float>::max();
        values[i] =
            fits ? static_cast<float>(wide) : std::copysign(INFINITY, static_cast<float>(block[i + 1] & 128 ? -1 : 1));
    }
    return values;
}

}  // namespace bdforge
