// Sums of accumulators and vectors, negated products, and sums of several vectors at once.
#pragma once

#include "float_functions.hpp"
#include "products.hpp"

namespace hostapi {

/// A vector or a scalar as an accumulator of the given type.
template <class Acc, class X> Acc accumulated(const X &x) {
    return Acc(factor<Acc::size()>(x));
}

template <class A, class B>
concept accumulator_and_addend = is_accum<A> && (is_vector<B> || scalar<B>);

}  // namespace hostapi

namespace aie {

/// An accumulator and a vector or a scalar.
template <class Acc, class X>
    requires hostapi::accumulator_and_addend<Acc, X>
auto add(const Acc &a, const X &x) {
    return add(a, hostapi::accumulated<Acc>(x));
}
template <class Acc, class X>
    requires hostapi::accumulator_and_addend<Acc, X>
auto sub(const Acc &a, const X &x) {
    return sub(a, hostapi::accumulated<Acc>(x));
}
template <unsigned N> auto neg(const accum<accfloat, N> &a) {
    return hostapi::on_float_accums("aie::neg", a, a, [](float x, float) { return -x; });
}
template <unsigned N> auto neg(const vector<float, N> &v) {
    return hostapi::on_floats("aie::neg", v, v, [](float x, float) { return -x; });
}
template <unsigned N> auto abs(const vector<float, N> &v) {
    return hostapi::on_floats("aie::abs", v, v, [](float x, float) { return __builtin_fabsf(x); });
}

template <class A, class B> auto negmul(const A &a, const B &b) { return neg(mul(a, b)); }

/// a - b where it is above 0, else 0.
template <class T, unsigned N> auto maxdiff(const vector<T, N> &a, const vector<T, N> &b) {
    return sub(max(a, b), b);
}

/// Lane i is the sum of argument i, as reduce_add makes it; lanes after them are undefined.
template <class T, unsigned N, class... Rest> auto reduce_add_v(const vector<T, N> &first, const Rest &...rest) {
    static_assert(1 + sizeof...(rest) <= N, "aie::reduce_add_v: more vectors than lanes");
    vector<T, N> sums;
    unsigned lane = 0;
    sums.set(reduce_add(first), lane);
    (sums.set(reduce_add(rest), ++lane), ...);
    return sums;
}

}  // namespace aie
