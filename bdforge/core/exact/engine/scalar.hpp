// Operations on scalars.
#pragma once

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

template <class F>
void binary(Core& core, const Event& event, std::uint8_t* buffer, F f) {
    put(core, event, buffer, 2, f(word(core, event, buffer, 0), word(core, event, buffer, 1)));
}

template <class F>
void unary(Core& core, const Event& event, std::uint8_t* buffer, F f) {
    put(core, event, buffer, 1, f(word(core, event, buffer, 0)));
}

#define BINARY(name, result) \
    inline void name(Core& c, const Event& e, std::uint8_t* b) { \
        binary(c, e, b, [&](U x, U y) -> U { return result; }); \
    }
#define UNARY(name, result) \
    inline void name(Core& c, const Event& e, std::uint8_t* b) { \
        unary(c, e, b, [&](U x) -> U { return result; }); \
    }

BINARY(mul, x * y)
BINARY(and_, x & y)
BINARY(or_, x | y)
BINARY(xor_, x ^ y)
BINARY(eq, x == y)
BINARY(ne, x != y)
BINARY(lt, ((e.o[0] ? std::int32_t(x) < std::int32_t(y) : x < y) != (e.o[1] != 0)))

inline U shifted(U value, U count, bool arithmetic) {
    if (std::int32_t(count) >= 0) return value << (count & 31);
    const U by = (0u - count) & 31;
    return arithmetic ? U(std::int32_t(value) >> by) : value >> by;
}
BINARY(shift, shifted(x, y, e.o[0] != 0))

UNARY(abs, std::int32_t(x) < 0 ? 0u - x : x)
UNARY(clz, x ? U(__builtin_clz(x)) : 32u)
UNARY(clb, (x ^ U(std::int32_t(x) >> 31)) ? U(__builtin_clz(x ^ U(std::int32_t(x) >> 31))) - 1 : 31u)
UNARY(popcount, U(__builtin_popcount(x)))
UNARY(eqz, (x == 0) != (e.o[0] != 0))

inline U extended(U value, int bits, bool sign) {
    if (bits >= 32) return value;
    const U low = value & ((1u << bits) - 1);
    return sign && (low >> (bits - 1)) ? low | (~0u << bits) : low;
}
UNARY(extend, extended(x, e.o[0], e.o[1] != 0))

// a: a0, s0, s1, d0.
inline void mac(Core& core, const Event& event, std::uint8_t* buffer) {
    const U product = word(core, event, buffer, 1) * word(core, event, buffer, 2);
    const U before = word(core, event, buffer, 0);
    put(core, event, buffer, 3, event.o[0] ? before - product : before + product);
}

// a: s0, s1, condition, d0.
inline void select(Core& core, const Event& event, std::uint8_t* buffer) {
    const bool first = (word(core, event, buffer, 2) == 0) != (event.o[0] != 0);
    put(core, event, buffer, 3, word(core, event, buffer, first ? 0 : 1));
}

#undef BINARY
#undef UNARY

inline const Named kTable[] = {
    {"add", sum<false, 0, true>}, {"sub", sum<true, 1, true>},     {"adc", sum<false, 2, true>},
    {"sbc", sum<true, 2, true>},  {"add_nc", sum<false, 0, false>}, {"mul", mul}, {"mac", mac},
    {"and", and_}, {"or", or_}, {"xor", xor_}, {"eq", eq}, {"ne", ne}, {"lt", lt}, {"shift", shift}, {"abs", abs},
    {"clz", clz}, {"clb", clb}, {"popcount", popcount}, {"eqz", eqz}, {"extend", extend}, {"select", select},
};

}  // namespace engine::scalar
