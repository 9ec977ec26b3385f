// Intrinsics of the compilers: the operations of the API on native values, by their own names.
//
// Most are one call of the API; what they mean is said there. Operands are native values or the API's, results native.
#pragma once

#include "intrinsic_names.hpp"
#include "native.hpp"
#include "operators.hpp"
#include "shifts.hpp"
#include "shuffle.hpp"
#include "sliding.hpp"
#include "sums.hpp"

namespace hostapi {

/// At least one operand is a native value: others are the API's own calls.
template <class... X>
concept with_native = (is_native<X> || ...);

/// Lanes that hold, as bits: 32 or 64 of them.
template <unsigned N> auto bits_of(const aie::mask<N> &m) {
    static_assert(N <= 64, "an intrinsic compares 64 lanes at most");
    if constexpr (N <= 32)
        return m.to_uint32();
    else
        return m.to_uint64();
}
template <unsigned N> using Bits = std::conditional_t<N <= 32, uint32_t, uint64_t>;
template <unsigned N> aie::mask<N> mask_of(uint64_t bits) {
    if constexpr (N < 64)
        bits &= (uint64_t{1} << N) - 1;
    return aie::mask<N>::from_uint64(bits);
}

}  // namespace hostapi

#define HOSTAPI_OF_ONE(name, call)                             \
    template <hostapi::lanes X> auto name(const X &x) {        \
        return hostapi::native(aie::call(hostapi::api(x)));    \
    }
HOSTAPI_OF_ONE(neg, neg)
HOSTAPI_OF_ONE(abs, abs)
HOSTAPI_OF_ONE(bneg, bit_not)
HOSTAPI_OF_ONE(pack, pack)
HOSTAPI_OF_ONE(unpack, unpack)
#undef HOSTAPI_OF_ONE

// The second form takes what is all of the API, where a kernel says ::name; by name alone the API's own is closer.
#define HOSTAPI_OF_TWO(name, call)                                               \
    template <class A, class B>                                                  \
        requires hostapi::with_native<A, B>                                      \
    auto name(const A &a, const B &b) {                                          \
        return hostapi::native(aie::call(hostapi::api(a), hostapi::api(b)));     \
    }                                                                            \
    template <hostapi::lanes... X>                                               \
        requires(sizeof...(X) == 2)                                              \
    auto name(const X &...x) {                                                   \
        return hostapi::native(aie::call(hostapi::api(x)...));                   \
    }
HOSTAPI_OF_TWO(add, add)
HOSTAPI_OF_TWO(sub, sub)
HOSTAPI_OF_TWO(max, max)
HOSTAPI_OF_TWO(min, min)
HOSTAPI_OF_TWO(maxdiff, maxdiff)
HOSTAPI_OF_TWO(band, bit_and)
HOSTAPI_OF_TWO(bor, bit_or)
HOSTAPI_OF_TWO(bxor, bit_xor)
#undef HOSTAPI_OF_TWO

template <hostapi::lanes... X> auto concat(const X &...x) {
    return hostapi::native(aie::concat(hostapi::api(x)...));
}

#define HOSTAPI_COMPARISON(name, call)                                           \
    template <class A, class B>                                                  \
        requires hostapi::with_native<A, B>                                      \
    auto name(const A &a, const B &b) {                                          \
        return hostapi::bits_of(aie::call(hostapi::api(a), hostapi::api(b)));    \
    }                                                                            \
    template <hostapi::lanes... X>                                               \
        requires(sizeof...(X) == 2)                                              \
    auto name(const X &...x) {                                                   \
        return hostapi::bits_of(aie::call(hostapi::api(x)...));                  \
    }
HOSTAPI_COMPARISON(lt, lt)
HOSTAPI_COMPARISON(le, le)
HOSTAPI_COMPARISON(gt, gt)
HOSTAPI_COMPARISON(ge, ge)
HOSTAPI_COMPARISON(eq, eq)
HOSTAPI_COMPARISON(ne, neq)
#undef HOSTAPI_COMPARISON

/// Lane i of b where bit i is set, else of a.
template <hostapi::lanes A, hostapi::lanes B> auto sel(const A &a, const B &b, uint64_t bits) {
    constexpr unsigned lanes = hostapi::api_t<A>::size();
    return hostapi::native(aie::select(hostapi::api(a), hostapi::api(b), hostapi::mask_of<lanes>(bits)));
}

/// An operation and the comparison of its operands.
#define HOSTAPI_COMPARED(name, call, comparison)                                              \
    template <hostapi::lanes A, hostapi::lanes B>                                             \
    auto name(const A &a, const B &b, hostapi::Bits<hostapi::api_t<A>::size()> &bits) {       \
        bits = hostapi::bits_of(aie::comparison(hostapi::api(a), hostapi::api(b)));           \
        return hostapi::native(aie::call(hostapi::api(a), hostapi::api(b)));                  \
    }
HOSTAPI_COMPARED(max_lt, max, lt)
HOSTAPI_COMPARED(min_ge, min, ge)
HOSTAPI_COMPARED(maxdiff_lt, maxdiff, lt)
HOSTAPI_COMPARED(sub_lt, sub, lt)
HOSTAPI_COMPARED(sub_ge, sub, ge)
#undef HOSTAPI_COMPARED

// Lanes and parts

template <hostapi::lanes X> auto extract_elem(const X &x, unsigned lane) { return hostapi::api(x).get(lane); }
template <hostapi::lanes X> auto ext_elem(const X &x, unsigned lane) { return hostapi::api(x).get(lane); }

template <hostapi::lanes X, class Part> auto insert(const X &x, unsigned i, const Part &part) {
    auto whole = hostapi::api_t<X>(x);
    if constexpr (hostapi::lanes<Part>)
        whole.insert(i, hostapi::api(part));
    else
        whole.set(static_cast<typename hostapi::api_t<X>::value_type>(part), i);
    return hostapi::native(whole);
}
template <hostapi::lanes X> auto upd_elem(const X &x, unsigned lane, typename hostapi::api_t<X>::value_type value) {
    return insert(x, lane, value);
}
template <hostapi::lanes X> auto broadcast_elem(const X &x, unsigned lane) {
    using V = hostapi::api_t<X>;
    return hostapi::native(aie::broadcast<typename V::value_type, V::size()>(hostapi::api(x).get(lane)));
}

/// Bytes n and up of a followed by b.
template <hostapi::lanes A> auto shift_bytes(const A &a, const hostapi::api_t<A> &b, unsigned n) {
    const auto low = hostapi::api(a).template cast_to<uint8_t>(), high = b.template cast_to<uint8_t>();
    const auto shifted = hostapi::spliced("shift_bytes", low, high, n);
    return hostapi::native(shifted.template cast_to<typename hostapi::api_t<A>::value_type>());
}
template <hostapi::lanes A> auto shift(const A &a, const hostapi::api_t<A> &b, unsigned step, unsigned bytes) {
    return shift_bytes(a, b, step * (hostapi::api_t<A>::bits() / 8 / hostapi::api_t<A>::size()) + bytes);
}

// Modes

enum : unsigned {
    rnd_floor = 0, rnd_ceil = 1, rnd_sym_floor = 2, rnd_sym_ceil = 3, rnd_neg_inf = 8, rnd_pos_inf = 9,
    rnd_sym_zero = 10, rnd_sym_inf = 11, rnd_conv_even = 12, rnd_conv_odd = 13,
};
inline void set_rnd(unsigned mode) { aie::set_rounding(static_cast<aie::rounding_mode>(mode)); }
inline unsigned get_rnd() { return static_cast<unsigned>(aie::get_rounding()); }
inline void set_sat() { aie::set_saturation(aie::saturation_mode::saturate); }
inline void clr_sat() { aie::set_saturation(aie::saturation_mode::none); }
inline void set_satmode(unsigned mode) { aie::set_saturation(static_cast<aie::saturation_mode>(mode)); }

// The core's own functions

inline float inv(float x) { return aie::inv(x); }
inline float invsqrt(float x) { return aie::invsqrt(x); }
#if __AIE_ARCH__ != 20
inline v16bfloat16 exp2(const v16accfloat &x) { return aie::exp2<bfloat16>(hostapi::api(x)); }
inline v16bfloat16 tanh(const v16accfloat &x) { return aie::tanh<bfloat16>(hostapi::api(x)); }
#endif
/// The integers at or below x * 2^shift.
inline v16int32 bfloat16_to_int(const v16bfloat16 &x, int shift) {
    return aie::to_fixed<int32>(hostapi::api(x), shift);
}
