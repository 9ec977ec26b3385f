// Element and accumulator types, with their width, sign and storage.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "bfloat16.hpp"

using int8 = std::int8_t;
using uint8 = std::uint8_t;
using int16 = std::int16_t;
using uint16 = std::uint16_t;
using int32 = std::int32_t;
using uint32 = std::uint32_t;
using int64 = std::int64_t;
using uint64 = std::uint64_t;

/// 4-bit elements. As with Peano, sizeof is 1 and `p + n` moves n bytes, that is 2n elements.
struct int4 {
    uint8_t nibble;
    int4() = default;
    constexpr int4(int value) : nibble(value & 15) {}
    constexpr operator int() const { return (nibble ^ 8) - 8; }
};

struct uint4 {
    uint8_t nibble;
    uint4() = default;
    constexpr uint4(int value) : nibble(value & 15) {}
    constexpr operator int() const { return nibble; }
};

static_assert(sizeof(int4) == 1 && sizeof(uint4) == 1);

struct acc32 {};
struct acc40 {};
struct acc48 {};
struct acc56 {};
struct acc64 {};
struct accfloat {};
struct accauto {};

namespace hostapi {

template <class V> struct Native;  // native.hpp
template <class> inline constexpr bool is_native = false;
template <class V> inline constexpr bool is_native<Native<V>> = true;

template <class T, class Narrow, class Wide, unsigned Bits, bool Signed> struct element_base {
    static constexpr bool exists = true;
    static constexpr unsigned bits = Bits;
    static constexpr bool is_signed = Signed;
    static constexpr int64_t lowest = Signed ? -(int64_t{1} << (Bits - 1)) : 0;
    static constexpr int64_t highest = (int64_t{1} << (Bits - (Signed ? 1 : 0))) - 1;
    using storage = std::conditional_t<Bits == 4, uint8_t, T>;
    using narrow = Narrow;  // one step down, void at the end
    using wide = Wide;      // one step up, void at the end
};

template <class T> struct element {
    static constexpr bool exists = false;
    static constexpr unsigned bits = 8;
    using storage = uint8_t;
};
template <> struct element<int4> : element_base<int4, void, int8_t, 4, true> {};
template <> struct element<uint4> : element_base<uint4, void, uint8_t, 4, false> {};
template <> struct element<int8_t> : element_base<int8_t, int4, int16_t, 8, true> {};
template <> struct element<uint8_t> : element_base<uint8_t, uint4, uint16_t, 8, false> {};
template <> struct element<int16_t> : element_base<int16_t, int8_t, int32_t, 16, true> {};
template <> struct element<uint16_t> : element_base<uint16_t, uint8_t, uint32_t, 16, false> {};
template <> struct element<int32_t> : element_base<int32_t, int16_t, void, 32, true> {};
template <> struct element<uint32_t> : element_base<uint32_t, uint16_t, void, 32, false> {};

template <class T> inline constexpr bool is_float = std::is_same_v<T, float> || std::is_same_v<T, bfloat16>;

template <class T, unsigned Bits> struct float_element {
    static constexpr bool exists = true;
    static constexpr unsigned bits = Bits;
    static constexpr bool is_signed = true;
    using storage = T;
    using narrow = void;
    using wide = void;
};
template <> struct element<bfloat16> : float_element<bfloat16, 16> {};
template <> struct element<float> : float_element<float, 32> {};

template <class Tag> struct accumulator {
    static constexpr bool exists = false;
    static constexpr unsigned bits = 64;
    using storage = int64_t;
};
template <class Storage> struct accumulator_base {
    static constexpr bool exists = true;
    static constexpr unsigned bits = 8 * sizeof(Storage);
    using storage = Storage;
};
template <> struct accumulator<acc32> : accumulator_base<int32_t> {};
template <> struct accumulator<acc40> : accumulator_base<int64_t> {};
template <> struct accumulator<acc48> : accumulator_base<int64_t> {};
template <> struct accumulator<acc56> : accumulator_base<int64_t> {};
template <> struct accumulator<acc64> : accumulator_base<int64_t> {};
template <> struct accumulator<accfloat> : accumulator_base<float> {};

constexpr bool is_power_of_two(unsigned n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace hostapi
