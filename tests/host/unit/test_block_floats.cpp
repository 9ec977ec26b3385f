// Blocks of 8 values that share an exponent e: mantissas m of values m 2^(e - 133), worked by hand.

#include "number_formats.hpp"

#include <cmath>
#include <limits>

#include "unit.hpp"

using namespace bdforge;
using namespace unit;

namespace {

constexpr float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::min(),
                infinity = std::numeric_limits<float>::infinity();

/// A block of one value beside another and zeros.
std::array<float, block_values> beside(float one, float other) { return {one, other}; }

}  // namespace

UNIT_CASE("blocks", values_are_rounded_to_the_largest_ones_exponent) {
    const struct {
        const char* what;
        float one, other;
        int shared, first, second;
    } cases[] = {
        {"1", 1, 0, 127, 64, 0},
        {"-1", 0, -1, 127, 0, -64},
        {"the largest mantissa", 127 / 64.0F, 0, 127, 127, 0},
        {"below a tie at it", 127.25F / 64, 0, 127, 127, 0},
        {"a tie at it, of which the exponent is one more", 127.5F / 64, 1, 128, 64, 32},
        {"a tie at the least", -127.5F / 64, 0, 127, -128, 0},
        {"0.5, to even", 1, 0.5F / 64, 127, 64, 0},
        {"1.5, to even", 1, 1.5F / 64, 127, 64, 2},
        {"2.5, to even", 1, 2.5F / 64, 127, 64, 2},
        {"-0.5, to even", 1, -0.5F / 64, 127, 64, 0},
        {"-1.5, to even", 1, -1.5F / 64, 127, 64, -2},
        {"-2.5, to even", 1, -2.5F / 64, 127, 64, -2},
        {"above 0.5", 1, 0.51F / 64, 127, 64, 1},
        {"zeros", 0, -0.0F, 0, 0, 0},
        {"the least normal", least, 0, 1, 64, 0},
        {"no normal", least / 2, 0, 0, 0, 0},
        {"no normal beside one", least, least * 0.75F, 1, 64, 0},
        {"the largest, which no exponent above holds", most, 0, 254, 127, 0},
        {"its negative, which would be infinite", -most, 0, 254, -127, 0},
        {"a tie at the largest exponent but one", std::ldexp(127.5F, 120), 0, 254, 64, 0},
    };
    for (const auto& [what, one, other, shared, first, second] : cases) {
        const Block block = encode(beside(one, other));
        check_equal(int{block[0]}, shared, std::string(what) + ": exponent");
        check_equal(int{static_cast<std::int8_t>(block[1])}, first, std::string(what) + ": first mantissa");
        check_equal(int{static_cast<std::int8_t>(block[2])}, second, std::string(what) + ": second mantissa");
    }
}

UNIT_CASE("blocks", mantissas_become_floats) {
    const struct {
        int shared, mantissa;
        float value;
    } cases[] = {
        {127, 64, 1},  {127, -128, -2}, {127, 1, 1 / 64.0F}, {0, 0, 0}, {0, 1, std::ldexp(1.0F, -133)}, {1, 64, least},
        {254, 127, std::ldexp(127.0F, 121)}, {255, 63, std::ldexp(63.0F, 122)}, {255, 64, infinity}, {255, -64, -infinity},
        {254, -127, std::ldexp(-127.0F, 121)}, {254, -128, -infinity},
    };
    for (const auto& [shared, mantissa, value] : cases) {
        const Block block{static_cast<std::uint8_t>(shared), 0, static_cast<std::uint8_t>(mantissa)};
        const std::string what = std::to_string(mantissa) + " of exponent " + std::to_string(shared);
        check_equal(decode(block)[0], 0.0F, what + ": the one before it");
        check_equal(decode(block)[1], value, what);
    }
}

UNIT_CASE("blocks", hold_finite_values_alone) {
    for (const float value : {0.0F, 1.0F, most, -most, least}) check_equal(finite(beside(1, value)), true, std::to_string(value));
    for (const float value : {infinity, -infinity, std::nanf("")})
        check_equal(finite(beside(1, value)), false, std::to_string(value));
}
