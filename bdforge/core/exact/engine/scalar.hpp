// Operations on scalars.
#pragma once

#include <utility>

#include "core.hpp"

namespace engine::scalar {

using U = std::uint32_t;

// a: s0, s1, d0, carry, carry before.
template <bool Invert, int Carry, bool Stored>
void sum(Core& core, const Event& event, std::uint8_t* buffer) {
    const U second = word(core, event, buffer, 1);
    const std::uint64_t before = Carry == 2 ? word(core, event, buffer, 2) : Carry;
    const std::uint64_t total = std::uint64_t(word(core, event, buffer, 0)) + U(Invert ? ~second : second) + before;
    const int first = Carry == 2 ? 3 : 2;
    put(core, event, buffer, first, U(total));
    if (Stored) put(core, event, buffer, first + 1, U(total >> 32));
}

// A function of so many words, which are followed by that of the result, and of as many options.
template <auto Made, int Words, int Options = 0>
void of(Core& core, const Event& event, std::uint8_t* buffer) {
    [&]<std::size_t... I, std::size_t... O>(std::index_sequence<I...>, std::index_sequence<O...>) {
        put(core, event, buffer, Words, U(Made(word(core, event, buffer, I)..., event.o[O]...)));
    }(std::make_index_sequence<Words>{}, std::make_index_sequence<Options>{});
}

inline U shifted(U value, U count, int arithmetic) {
    if (std::int32_t(count) >= 0) return value << (count & 31);
    const U by = (0u - count) & 31;
    return arithmetic ? U(std::int32_t(value) >> by) : value >> by;
}

inline U extended(U value, int bits, int sign) {
    if (bits >= 32) return value;
    const U low = value & ((1u << bits) - 1);
    return sign && (low >> (bits - 1)) ? low | (~0u << bits) : low;
}

inline bool less(U x, U y, int sign, int negate) {
    return (sign ? std::int32_t(x) < std::int32_t(y) : x < y) != (negate != 0);
}

inline U select(U first, U second, U condition, int negate) { return (condition == 0) != (negate != 0) ? first : second; }

inline U leading_zeros(U x) { return x ? U(__builtin_clz(x)) : 32u; }

// a: s0, s1, quotient, d0, quotient.
inline void divide_step(Core& core, const Event& event, std::uint8_t* buffer) {
    const U divisor = word(core, event, buffer, 1), left = word(core, event, buffer, 2);
    const U rest = word(core, event, buffer, 0) << 1 | left >> 31;
    const bool fits = rest >= divisor;
    put(core, event, buffer, 3, fits ? rest - divisor : rest);
    put(core, event, buffer, 4, left << 1 | U(fits));
}

inline constexpr Named kTable[] = {
    {"add", sum<false, 0, true>}, {"sub", sum<true, 1, true>},     {"adc", sum<false, 2, true>},
    {"sbc", sum<true, 2, true>},  {"add_nc", sum<false, 0, false>},
    {"divide_step", divide_step},
    {"mul", of<[](U x, U y) { return x * y; }, 2>},
    {"mac", of<[](U total, U x, U y, int minus) { return minus ? total - x * y : total + x * y; }, 3, 1>},
    {"and", of<[](U x, U y) { return x & y; }, 2>},
    {"or", of<[](U x, U y) { return x | y; }, 2>},
    {"xor", of<[](U x, U y) { return x ^ y; }, 2>},
    {"eq", of<[](U x, U y) { return x == y; }, 2>},
    {"ne", of<[](U x, U y) { return x != y; }, 2>},
    {"lt", of<less, 2, 2>}, {"shift", of<shifted, 2, 1>}, {"extend", of<extended, 1, 2>}, {"select", of<select, 3, 1>},
    {"abs", of<[](U x) { return std::int32_t(x) < 0 ? 0u - x : x; }, 1>},
    {"clz", of<leading_zeros, 1>},
    {"clb", of<[](U x) { return leading_zeros(x ^ U(std::int32_t(x) >> 31)) - 1; }, 1>},
    {"popcount", of<[](U x) { return __builtin_popcount(x); }, 1>},
    {"eqz", of<[](U x, int negate) { return (x == 0) != (negate != 0); }, 1, 1>},
};

}  // namespace engine::scalar
