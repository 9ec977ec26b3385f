// Functions that kernels of others compute by tables, which come with mlir-aie: here each is the function itself,
// rounded to nearest, so it differs from the device by the tables' errors. Compare with a tolerance.
#pragma once

#include <aie_api/aie.hpp>

namespace hostapi {

/// f of bfloat16 lanes, as floats.
template <class V, class F> auto by_function(const V &v, F f) {
    const auto in = api(v);
    aie::vector<float, decltype(in)::size()> out;
    for (unsigned i = 0; i < in.size(); ++i)
        out.set(static_cast<float>(f(static_cast<double>(float(in.get(i))))), i);
    return out;
}
template <unsigned N> auto nearest(const aie::vector<float, N> &v) {
    aie::vector<bfloat16, N> out;
    for (unsigned i = 0; i < N; ++i)
        out.set(bfloat16(v.get(i)), i);
    return native(out);
}

}  // namespace hostapi

/// e^x, in accumulators.
template <class V> auto getExpBf16(const V &x) {
    const auto exact = hostapi::by_function(x, [](double v) { return std::exp(v); });
    return hostapi::native(aie::accum<accfloat, decltype(exact)::size()>(exact));
}

#define HOSTAPI_BY_FUNCTION(name, formula)                                                       \
    template <class V> auto name(const V &x) {                                                   \
        return hostapi::nearest(hostapi::by_function(x, [](double v) { return formula; }));      \
    }
HOSTAPI_BY_FUNCTION(getTanhBf16, std::tanh(v))
HOSTAPI_BY_FUNCTION(getRsqrtBf16, 1 / std::sqrt(v))
HOSTAPI_BY_FUNCTION(getSqrtBf16, std::sqrt(v))
HOSTAPI_BY_FUNCTION(getErfBf16, std::erf(v))
HOSTAPI_BY_FUNCTION(getSinBf16, std::sin(v))
HOSTAPI_BY_FUNCTION(getCosBf16, std::cos(v))
#undef HOSTAPI_BY_FUNCTION

inline bfloat16 getInvBf16(float x) { return 1.0F / x; }
