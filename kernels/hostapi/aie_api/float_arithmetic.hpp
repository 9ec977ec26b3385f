// Operations of float lanes and float accumulators that kernels of floats use after a product.
//
// The device makes float products out of bfloat16 parts; here they round to nearest even, and a multiply-add is fused.
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
concept float_operands = std::is_same_v<joined_element<A, B>, float>;
template <class A, class B>
concept comparable_operands = is_float<joined_element<A, B>>;

template <class A, class B, class F> HOSTAPI_INLINE auto on_floats(const char *call, const A &a, const B &b, F f) {
    using V = joined_t<A, B>;
    const V left = operand<V>(a), right = operand<V>(b);
    const auto *x = left.read(call), *y = right.read(call);
    V result;
    auto *out = result.write();
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
    requires hostapi::float_operands<A, B>
HOSTAPI_INLINE auto add(const A &a, const B &b) {
    return hostapi::on_floats("aie::add", a, b, [](float x, float y) { return x + y; });
}
template <class A, class B>
    requires hostapi::float_operands<A, B>
HOSTAPI_INLINE auto sub(const A &a, const B &b) {
    return hostapi::on_floats("aie::sub", a, b, [](float x, float y) { return x - y; });
}

template <unsigned N> HOSTAPI_INLINE auto add(const accum<accfloat, N> &a, const accum<accfloat, N> &b) {
    return hostapi::on_float_accums("aie::add", a, b, [](float x, float y) { return x + y; });
}
template <unsigned N> HOSTAPI_INLINE auto sub(const accum<accfloat, N> &a, const accum<accfloat, N> &b) {
    return hostapi::on_float_accums("aie::sub", a, b, [](float x, float y) { return x - y; });
}

/// acc + a * b, rounded once.
template <unsigned N>
HOSTAPI_INLINE auto mac(const accum<accfloat, N> &acc, const vector<float, N> &a, const vector<float, N> &b) {
    const float *x = a.read("aie::mac"), *y = b.read("aie::mac"), *sum = acc.read("aie::mac");
    accum<accfloat, N> result;
    float *out = result.write();
    for (unsigned i = 0; i < N; ++i)
        out[i] = __builtin_fmaf(x[i], y[i], sum[i]);
    return result;
}
template <unsigned N> HOSTAPI_INLINE auto mul(const vector<float, N> &a, const vector<float, N> &b) {
    const float *x = a.read("aie::mul"), *y = b.read("aie::mul");
    accum<accfloat, N> result;
    float *out = result.write();
    for (unsigned i = 0; i < N; ++i)
        out[i] = x[i] * y[i];
    return result;
}

}  // namespace aie
