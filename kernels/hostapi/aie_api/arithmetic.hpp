// Lane-wise integer operations and reductions. Everything wraps except upshift under a saturating mode.
#pragma once

#include "vector.hpp"

namespace aie {

template <class T, unsigned N = native_vector_length_v<T>> HOSTAPI_INLINE vector<T, N> broadcast(T x) {
    vector<T, N> v;
    typename vector<T, N>::storage word;
    if constexpr (hostapi::element<T>::bits == 4)
        word = x.nibble * 0x11;
    else
        word = x;
    auto *out = v.write();
    for (unsigned i = 0; i < v.words; ++i)
        out[i] = word;
    return v;
}

}  // namespace aie

namespace hostapi {

/// A vector of type V from a vector or a scalar operand, refusing every other type.
template <class V, class X> HOSTAPI_INLINE V operand(const X &x) {
    using T = typename V::value_type;
    if constexpr (is_vector<X>) {
        static_assert(std::is_same_v<typename X::value_type, T>,
                      "aie: both vector operands must have the same element type; use cast_to or unpack");
        static_assert(X::size() == V::size(), "aie: both vector operands must have the same number of lanes");
        return x;
    } else {
        static_assert(std::is_same_v<X, T>, "aie: a scalar operand must have exactly the vector's element type: "
                                            "write uint8(15), not 15");
        return aie::broadcast<T, V::size()>(x);
    }
}

template <class A, class B> struct joined {
    static_assert(is_vector<A> || is_vector<B>, "aie: one operand must be a vector");
    using type = std::conditional_t<is_vector<A>, A, B>;
};
template <class A, class B> using joined_t = typename joined<A, B>::type;

/// The real headers have these operations for two vectors and for a scalar before a vector.
template <class A, class B> constexpr void refuse_trailing_scalar() {
    static_assert(!is_vector<A> || is_vector<B>, "aie: a bitwise operation takes its scalar first, as in "
                                                 "aie::bit_and(uint8(15), v)");
}

template <class V> constexpr void refuse_nibbles() {
    static_assert(element<typename V::value_type>::bits >= 8,
                  "aie: this operation has no 4-bit form; unpack, or cast_to<uint8> for bitwise operations");
    static_assert(!is_float<typename V::value_type>, "aie: the stand-in has no floating-point form of this operation; "
                                                     "use an accumulator of accfloat");
}

/// f on the storage words of both operands; 4-bit lanes stay packed, so f must not carry between nibbles.
template <class A, class B, class F> HOSTAPI_INLINE auto on_words(const char *call, const A &a, const B &b, F f) {
    using V = joined_t<A, B>;
    const V left = operand<V>(a), right = operand<V>(b);
    const auto *x = left.read(call), *y = right.read(call);
    V result;
    auto *out = result.write();
    for (unsigned i = 0; i < V::words; ++i)
        out[i] = static_cast<typename V::storage>(f(x[i], y[i]));
    return result;
}

/// f on every lane of one vector as int64; the result keeps its low bits.
template <class V, class F> auto on_lanes(const char *call, const V &v, F f) {
    refuse_nibbles<V>();
    const auto *x = v.read(call);
    V result;
    auto *out = result.write();
    for (unsigned i = 0; i < V::size(); ++i)
        out[i] = static_cast<typename V::value_type>(f(int64_t{x[i]}));
    return result;
}

/// f on pairs of lanes as int64; the result is narrowed under the saturation mode.
template <class V, class F> auto on_pairs(const char *call, const V &a, const V &b, F f) {
    refuse_nibbles<V>();
    using T = typename V::value_type;
    const auto *x = a.read(call), *y = b.read(call);
    V result;
    auto *out = result.write();
    for (unsigned i = 0; i < V::size(); ++i)
        out[i] = saturated<T>(f(int64_t{x[i]}, int64_t{y[i]}), core_state.saturation);
    return result;
}

template <class V> auto upshifted_lanes(const V &v, int n) {
    return on_lanes("aie::upshift", v, [=](int64_t x) {
        return saturated<typename V::value_type>(static_cast<int64_t>(static_cast<uint64_t>(x) << n),
                                                 core_state.saturation);
    });
}

template <class V, class F> auto reduced(const char *call, const V &v, F f) {
    refuse_nibbles<V>();
    const auto *x = v.read(call);
    typename V::value_type result = x[0];
    for (unsigned i = 1; i < V::size(); ++i)
        result = static_cast<typename V::value_type>(f(int64_t{result}, int64_t{x[i]}));
    return result;
}

}  // namespace hostapi

namespace aie {

template <class A, class B> HOSTAPI_INLINE auto bit_and(const A &a, const B &b) {
    hostapi::refuse_trailing_scalar<A, B>();
    return hostapi::on_words("aie::bit_and", a, b, [](auto x, auto y) { return x & y; });
}
template <class A, class B> HOSTAPI_INLINE auto bit_or(const A &a, const B &b) {
    hostapi::refuse_trailing_scalar<A, B>();
    return hostapi::on_words("aie::bit_or", a, b, [](auto x, auto y) { return x | y; });
}
template <class A, class B> HOSTAPI_INLINE auto bit_xor(const A &a, const B &b) {
    hostapi::refuse_trailing_scalar<A, B>();
    return hostapi::on_words("aie::bit_xor", a, b, [](auto x, auto y) { return x ^ y; });
}
template <class T, unsigned N> auto bit_not(const vector<T, N> &v) {
    return hostapi::on_words("aie::bit_not", v, v, [](auto x, auto) { return ~x; });
}

template <class A, class B> HOSTAPI_INLINE auto add(const A &a, const B &b) {
    hostapi::refuse_nibbles<hostapi::joined_t<A, B>>();
    return hostapi::on_words("aie::add", a, b, [](auto x, auto y) { return static_cast<unsigned>(x) + y; });
}
template <class A, class B> HOSTAPI_INLINE auto sub(const A &a, const B &b) {
    hostapi::refuse_nibbles<hostapi::joined_t<A, B>>();
    return hostapi::on_words("aie::sub", a, b, [](auto x, auto y) { return static_cast<unsigned>(x) - y; });
}
template <class A, class B> HOSTAPI_INLINE auto max(const A &a, const B &b) {
    hostapi::refuse_nibbles<hostapi::joined_t<A, B>>();
    return hostapi::on_words("aie::max", a, b, [](auto x, auto y) { return x < y ? y : x; });
}
template <class A, class B> HOSTAPI_INLINE auto min(const A &a, const B &b) {
    hostapi::refuse_nibbles<hostapi::joined_t<A, B>>();
    return hostapi::on_words("aie::min", a, b, [](auto x, auto y) { return y < x ? y : x; });
}

/// v between lo and hi, each a vector or a scalar.
template <class T, unsigned N, class Lo, class Hi> auto clamp(const vector<T, N> &v, const Lo &lo, const Hi &hi) {
    return min(max(v, lo), hi);
}

template <class T, unsigned N> auto neg(const vector<T, N> &v) {
    return hostapi::on_lanes("aie::neg", v, [](int64_t x) { return -x; });
}
template <class T, unsigned N> auto abs(const vector<T, N> &v) {
    return hostapi::on_lanes("aie::abs", v, [](int64_t x) { return x < 0 ? -x : x; });
}

/// Sums and differences through an accumulator: they wrap, or clamp to T when saturation is on.
template <class T, unsigned N> auto saturating_add(const vector<T, N> &a, const vector<T, N> &b) {
    return hostapi::on_pairs("aie::saturating_add", a, b, [](int64_t x, int64_t y) { return x + y; });
}
template <class T, unsigned N> auto saturating_sub(const vector<T, N> &a, const vector<T, N> &b) {
    return hostapi::on_pairs("aie::saturating_sub", a, b, [](int64_t x, int64_t y) { return x - y; });
}

/// v * 2^n through an accumulator: wraps, or clamps to T when saturation is on. 4-bit lanes are unpacked and packed.
template <class T, unsigned N> vector<T, N> upshift(const vector<T, N> &v, int n) {
    hostapi::require_range("aie::upshift", "shift", n, 0, 31);
    if constexpr (hostapi::element<T>::bits == 4)
        return upshift(v.unpack(), n).pack();
    else
        return hostapi::upshifted_lanes(v, n);
}

/// v / 2^n. Only under rounding mode floor: with another mode the result depends on the release of the real headers
/// (2025.1 obeys the mode, 2026.1 always floors).
template <class T, unsigned N> vector<T, N> downshift(const vector<T, N> &v, int n) {
    hostapi::require_range("aie::downshift", "shift", n, 0, 31);
    if (get_rounding() != rounding_mode::floor)
        hostapi::fail("aie::downshift", "rounding mode is not floor, so releases of the AIE API differ; "
                                        "call aie::set_rounding(aie::rounding_mode::floor) first");
    if constexpr (hostapi::element<T>::bits == 4)
        return downshift(v.unpack(), n).pack();
    else
        return hostapi::on_lanes("aie::downshift", v, [=](int64_t x) { return x >> n; });
}

template <class T, unsigned N> vector<T, N> logical_downshift(const vector<T, N> &v, int n) {
    hostapi::require_range("aie::logical_downshift", "shift", n, 0, 31);
    using Unsigned = std::make_unsigned_t<typename vector<T, N>::storage>;
    if constexpr (hostapi::element<T>::bits == 4)
        return logical_downshift(v.template cast_to<uint4>().unpack(), n).pack().template cast_to<T>();
    else
        return hostapi::on_lanes("aie::logical_downshift", v,
                                 [=](int64_t x) { return int64_t{static_cast<Unsigned>(x)} >> n; });
}

/// The sum in T: it wraps in 8 bit for int8, so widen first.
template <class T, unsigned N> T reduce_add(const vector<T, N> &v) {
    return hostapi::reduced("aie::reduce_add", v, [](int64_t x, int64_t y) { return x + y; });
}
template <class T, unsigned N> T reduce_max(const vector<T, N> &v) {
    return hostapi::reduced("aie::reduce_max", v, [](int64_t x, int64_t y) { return x < y ? y : x; });
}
template <class T, unsigned N> T reduce_min(const vector<T, N> &v) {
    return hostapi::reduced("aie::reduce_min", v, [](int64_t x, int64_t y) { return y < x ? y : x; });
}

}  // namespace aie
