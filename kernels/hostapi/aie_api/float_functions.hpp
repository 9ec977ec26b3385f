// Reductions of float lanes, and functions that the device approximates.
//
// A sum adds halves of a vector until one lane is left, in float32; that the device adds in this order is assumed, so its
// sums may differ by their roundings. Inverses, roots, 2^x and tanh are those of the core's
// own tables, whose bits nobody has published: here they are the function in double, rounded. Compare kernels that call
// them with a tolerance.
#pragma once

#include <array>
#include <cmath>

#include "float_arithmetic.hpp"

namespace hostapi {

template <class T, unsigned N, class F> HOSTAPI_INLINE T halved(const char *call, const aie::vector<T, N> &v, F f) {
    const T *in = v.read(call);
    std::array<float, N> lanes;
    for (unsigned i = 0; i < N; ++i)
        lanes[i] = static_cast<float>(in[i]);
    for (unsigned half = N / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half; ++i)
            lanes[i] = f(lanes[i], lanes[i + half]);
    T sum;
    narrow_floats<T, 1>(lanes.data(), &sum);
    return sum;
}

template <class To, class T, unsigned N, class F>
HOSTAPI_INLINE aie::vector<To, N> near(const char *call, const aie::vector<T, N> &v, F f) {
    const T *in = v.read(call);
    std::array<float, N> exact;
    for (unsigned i = 0; i < N; ++i)
        exact[i] = static_cast<float>(f(static_cast<double>(static_cast<float>(in[i]))));
    aie::vector<To, N> result;
    narrow_floats<To, N>(exact.data(), result.write());
    return result;
}

}  // namespace hostapi

namespace aie {

/// The sum in float32; of bfloat16 it is rounded once, at the end.
template <class T, unsigned N>
    requires hostapi::is_float<T>
T reduce_add(const vector<T, N> &v) {
    return hostapi::halved("aie::reduce_add", v, [](float x, float y) { return x + y; });
}
template <class T, unsigned N>
    requires hostapi::is_float<T>
T reduce_max(const vector<T, N> &v) {
    return hostapi::halved("aie::reduce_max", v, [](float x, float y) { return x < y ? y : x; });
}
template <class T, unsigned N>
    requires hostapi::is_float<T>
T reduce_min(const vector<T, N> &v) {
    return hostapi::halved("aie::reduce_min", v, [](float x, float y) { return y < x ? y : x; });
}

inline float inv(float x) { return 1.0F / x; }
inline float sqrt(float x) { return std::sqrt(x); }
inline float invsqrt(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }

template <class T, unsigned N>
    requires hostapi::is_float<T>
auto inv(const vector<T, N> &v) {
    return hostapi::near<T>("aie::inv", v, [](double x) { return 1.0 / x; });
}
template <class T, unsigned N>
    requires hostapi::is_float<T>
auto sqrt(const vector<T, N> &v) {
    return hostapi::near<T>("aie::sqrt", v, [](double x) { return std::sqrt(x); });
}
template <class T, unsigned N>
    requires hostapi::is_float<T>
auto invsqrt(const vector<T, N> &v) {
    return hostapi::near<T>("aie::invsqrt", v, [](double x) { return 1.0 / std::sqrt(x); });
}

#if __AIE_ARCH__ != 20
/// 2^x and tanh x as bfloat16; AIE2 has neither.
template <class To = bfloat16, unsigned N> auto exp2(const vector<float, N> &v) {
    static_assert(std::is_same_v<To, bfloat16>, "aie::exp2: the result is bfloat16");
    return hostapi::near<To>("aie::exp2", v, [](double x) { return std::exp2(x); });
}
template <class To = bfloat16, unsigned N> auto tanh(const vector<float, N> &v) {
    static_assert(std::is_same_v<To, bfloat16>, "aie::tanh: the result is bfloat16");
    return hostapi::near<To>("aie::tanh", v, [](double x) { return std::tanh(x); });
}
template <class To = bfloat16, unsigned N> auto exp2(const accum<accfloat, N> &a) {
    return exp2<To>(a.template to_vector<float>());
}
template <class To = bfloat16, unsigned N> auto tanh(const accum<accfloat, N> &a) {
    return tanh<To>(a.template to_vector<float>());
}
#endif

}  // namespace aie
