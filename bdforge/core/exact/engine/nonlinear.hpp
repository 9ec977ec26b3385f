// Functions whose bits are published in part or not at all: powers of two, tanh, reciprocals and roots.
#pragma once

#include <algorithm>
#include <cmath>

#include "core.hpp"

namespace engine::nonlinear {

// How far a function's results may be off, which numbers it is told of, and its range: handed over by Python.
struct Approximated {
    double absolute, relative, low, high, least, greatest;
};

constexpr int kFunctions = 5, kLanes = 16;
enum Function { kTanh, kExp2, kInv, kSqrt, kInvSqrt };
constexpr const char* kNames[] = {"VTANH", "VEXP2", "INV", "SQRT", "INVSQRT"};
enum How { kOff, kNearest, kLow, kHigh };
using Rows = std::array<Approximated, kFunctions>;
inline Rows kRows;

inline double bounded(Core& core, int which, double value) {
    const Approximated& row = kRows[which];
    const double error = row.absolute + row.relative * std::abs(value);
    const double made = value + (core.approximation == kLow ? -error : core.approximation == kHigh ? error : 0 * error);
    return std::min(std::max(made, row.least), row.greatest);
}

inline bool approximate_power(float value) { return value >= 2 || value < -126; }

// 2^x in bf16: n + f in 128ths with the exponent's bias.
inline std::uint16_t power(Core& core, std::uint32_t word) {
    const int exponent = int(word >> 23 & 255) - 127;
    const bool negative = word >> 31;
    const float value = load<float>(&word);
    if (!(value < kRows[kExp2].high)) return core.fail(kOpen, "a power of two of no number, or beyond 128, is open"), 0;
    if (approximate_power(value) && !core.approximates(kExp2, kNames[kExp2])) return 0;
    if (value < -126) return core.approximation == kHigh ? 128 : 0;
    const int whole = int(word & 0x7FFFFF) | int(exponent != -127) << 23, significand = negative ? -whole : whole;
    if (exponent < 1) return std::uint16_t((significand >> std::min(16 - exponent, 24)) + (127 << 7));
    const int ones = core.approximation == kLow && !negative ? 0 : (1 << exponent) - 1;
    return std::uint16_t((significand >> 16) * (1 << exponent) + ones + (127 << 7));
}

// a: source, d. 16 numbers each.
inline void exp2(Core& core, const Event& event, std::uint8_t* buffer) {
    std::uint32_t words[kLanes];
    std::memcpy(words, core.at(event.a[0], buffer), sizeof words);
    std::uint8_t* to = core.at(event.a[1], buffer);
    for (int i = 0; i < kLanes && !core.fault; ++i) save(to + 2 * i, power(core, words[i]));
}

inline std::uint16_t nearest_bf16(double value) {
    const float single = float(value);
    const auto word = load<std::uint32_t>(&single);
    return std::uint16_t((word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

// a: source, d. 16 numbers each.
inline void tanh(Core& core, const Event& event, std::uint8_t* buffer) {
    if (!core.approximates(kTanh, kNames[kTanh])) return;
    const Approximated& row = kRows[kTanh];
    float values[kLanes];
    std::memcpy(values, core.at(event.a[0], buffer), sizeof values);
    std::uint8_t* to = core.at(event.a[1], buffer);
    for (const float value : values)
        if (!(value >= row.low && value <= row.high))
            return core.fail(kOpen, "a hyperbolic tangent of no number is open");
    for (int i = 0; i < kLanes; ++i) save(to + 2 * i, nearest_bf16(bounded(core, kTanh, std::tanh(double(values[i])))));
}

inline double of(int which, double value) {
    return which == kInv ? 1 / value : which == kSqrt ? std::sqrt(value) : 1 / std::sqrt(value);
}

// a: source, bits behind the point of it and of the result, d; o: function, whether of an integer, whether to one.
inline void approximate(Core& core, const Event& event, std::uint8_t* buffer) {
    const int which = event.o[0];
    if (!core.approximates(which, kNames[which])) return;
    const Approximated& row = kRows[which];
    const std::uint32_t source = word(core, event, buffer, 0);
    const std::uint32_t up = event.o[1] ? word(core, event, buffer, 1) : 0, down = event.o[2] ? word(core, event, buffer, 2) : 0;
    if (const std::uint32_t most = std::max(up, down); most > 31)
        return core.fail(kOpen, "a scale by %u is open: known are 0 to 31", most);
    const double value = event.o[1] ? double(float(std::ldexp(double(std::int32_t(source)), -int(up)))) : double(load<float>(&source));
    if (!(value >= row.low && value <= row.high))
        return core.fail(kOpen, "%s is open but of positive normal numbers", kNames[which]);
    const double made = bounded(core, which, of(which, value));
    if (event.o[2]) {
        const double whole = std::nearbyint(std::ldexp(made, int(down)));
        if (!(whole >= -2147483648.0 && whole < 2147483648.0))
            return core.fail(kOpen, "floats beyond the range of integers are open");
        return put(core, event, buffer, 3, std::uint32_t(std::int32_t(whole)));
    }
    if (made < 0x1p-126) return core.fail(kOpen, "%s that gives no normal number is open", kNames[which]);
    save(core.at(event.a[3], buffer), float(made));
}

inline constexpr Named kTable[] = {{"exp2", exp2}, {"tanh", tanh}, {"approximate", approximate}};

}  // namespace engine::nonlinear
