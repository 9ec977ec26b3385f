// Operations of float lanes and float accumulators that kernels of floats use after a product.
//
// The device makes float products out of bfloat16 parts; here they round to nearest even, and a multiply-add is fused.
// Products of bfloat16 are exact.
#pragma once

#include "arithmetic.hpp"
#include "float_accum.hpp"

namespace hostapi {

/// The element type of whichever operand is a vector; void for accumulators, which have operations of their own.
template <class A, class B> struct joined_lane {
    using type = void;
};
template <class T, unsigned N, class B> struct joined_lane<aie::vector<T, N>, B> {
    using type = T;
};
template <class T, unsigned N, class A>
    requires(!is_vector<A>)
struct joined_lane<A, aie::vector<T, N>> {
    using type = T;
};
template <class A, class B> using joined_element = typename joined_lane<A, B>::type;

template <class A, class B>
concept comparable_operands =
    is_float<joined_element<A, B>> && !is_accum<A> && !is_accum<B> && !is_native<A> && !is_native<B>;

/// f on pairs of lanes. What it makes of bfloat16 in float is narrowed by the rounding mode, as from an accumulator.
template <class A, class B, class F> HOSTAPI_INLINE auto on_floats(const char *call, const A &a, const B &b, F f) {
    using V = joined_t<A, B>;
    using T = typename V::value_type;
    const V left = operand<V>(a), right = operand<V>(b);
    const auto *x = left.read(call), *y = right.read(call);
    V result;
    auto *out = result.write();
    if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<decltype(f(T{}, T{})), float>)
        if (core_state.rounding != aie::rounding_mode::conv_even) [[unlikely]] {
            for (unsigned i = 0; i < V::size(); ++i)
                out[i].bits = rounded_bfloat16(f(x[i], y[i]), core_state.rounding);
            return result;
        }
    for (unsigned i = 0; i < V::size(); ++i)
        out[i] = f(x[i], y[i]);
    return result;
}

template <unsigned N, class F>
HOSTAPI_INLINE auto on_float_accums(const char *call, const aie::accum<accfloat, N> &a,
                                    const aie::accum<accfloat, N> &b, F f) {
    const float *x = a.read(call), *y = b.read(call);
    aie::accum<accfloat, N> result;
    float *out = result.write();
    for (unsigned i = 0; i < N; ++i)
        out[i] = f(x[i], y[i]);
    return result;
}

template <class T, unsigned N>
HOSTAPI_INLINE auto fused(const char *call, const aie::accum<accfloat, N> &acc, float sign, const aie::vector<T, N> &a,
                          const aie::vector<T, N> &b) {
    const T *x = a.read(call), *y = b.read(call);
    const float *sum = acc.read(call);
    aie::accum<accfloat, N> result;
    float *out = result.write();
    for (unsigned i = 0; i < N; ++i)
        out[i] = __builtin_fmaf(sign * static_cast<float>(x[i]), static_cast<float>(y[i]), sum[i]);
    return result;
}

}  // namespace hostapi

namespace aie {

template <class A, class B>
    requires hostapi::comparable_operands<A, B>
HOSTAPI_INLINE auto max(const A &a, const B &b) {
    return hostapi::on_floats("aie::max", a, b, [](auto x, auto y) { return x < y ? y : x; });
}
template <class A, class B>
    requires hostapi::comparable_operands<A, B>
HOSTAPI_INLINE auto min(const A &a, const B &b) {
    return hostapi::on_floats("aie::min", a, b, [](auto x, auto y) { return y < x ? y : x; });
}
template <class A, class B>
    requires hostapi::comparable_operands<A, B>
HOSTAPI_INLINE auto add(const A &a, const B &b) {
    return hostapi::on_floats("aie::add", a, b, [](float x, float y) { return x + y; });
}
template <class A, class B>
    requires hostapi::comparable_operands<A, B>
HOSTAPI_INLINE auto sub(const A &a, const B &b) {
    return hostapi::on_floats("aie::sub", a, b, [](float x, float y) { return x - y; });
}
template <unsigned N> HOSTAPI_INLINE auto neg(const vector<bfloat16, N> &v) {
    return hostapi::on_floats("aie::neg", v, v, [](float x, float) { return -x; });
}
template <unsigned N> HOSTAPI_INLINE auto abs(const vector<bfloat16, N> &v) {
    return hostapi::on_floats("aie::abs", v, v, [](float x, float) { return __builtin_fabsf(x); });
}

template <unsigned N> HOSTAPI_INLINE auto add(const accum<accfloat, N> &a, const accum<accfloat, N> &b) {
    return hostapi::on_float_accums("aie::add", a, b, [](float x, float y) { return x + y; });
}
template <unsigned N> HOSTAPI_INLINE auto sub(const accum<accfloat, N> &a, const accum<accfloat, N> &b) {
    return hostapi::on_float_accums("aie::sub", a, b, [](float x, float y) { return x - y; });
}

/// acc + a * b, rounded once.
template <class T, unsigned N>
    requires hostapi::is_float<T>
HOSTAPI_INLINE auto mac(const accum<accfloat, N> &acc, const vector<T, N> &a, const vector<T, N> &b) {
    return hostapi::fused("aie::mac", acc, 1.0F, a, b);
}
/// acc - a * b, rounded once.
template <class T, unsigned N>
    requires hostapi::is_float<T>
HOSTAPI_INLINE auto msc(const accum<accfloat, N> &acc, const vector<T, N> &a, const vector<T, N> &b) {
    return hostapi::fused("aie::msc", acc, -1.0F, a, b);
}
template <class T, unsigned N>
    requires hostapi::is_float<T>
HOSTAPI_INLINE auto mul(const vector<T, N> &a, const vector<T, N> &b) {
    const T *x = a.read("aie::mul"), *y = b.read("aie::mul");
    accum<accfloat, N> result;
    float *out = result.write();
    for (unsigned i = 0; i < N; ++i)
        out[i] = static_cast<float>(x[i]) * static_cast<float>(y[i]);
    return result;
}

}  // namespace aie
