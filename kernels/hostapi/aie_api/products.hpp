// Products of lanes by a scalar, squares, and sums of vectors by coefficients.
#pragma once

#include "float_arithmetic.hpp"

namespace hostapi {

/// An element, which is neither a vector nor an accumulator.
template <class S>
concept scalar = !is_vector<S> && element<S>::exists;

/// A vector and a scalar, in any order.
template <class A, class B>
concept scaled_operands = (is_vector<A> && scalar<B>) || (scalar<A> && is_vector<B>);

/// A factor of N lanes; unlike `operand`, a scalar keeps its own type.
template <unsigned N, class X> HOSTAPI_INLINE auto factor(const X &x) {
    if constexpr (is_vector<X>)
        return x;
    else
        return aie::broadcast<X, N>(x);
}

}  // namespace hostapi

namespace aie {

template <class A, class B>
    requires hostapi::scaled_operands<A, B>
HOSTAPI_INLINE auto mul(const A &a, const B &b) {
    constexpr unsigned lanes = hostapi::joined_t<A, B>::size();
    return mul(hostapi::factor<lanes>(a), hostapi::factor<lanes>(b));
}
template <class Tag, unsigned N, class A, class B>
    requires hostapi::scaled_operands<A, B>
HOSTAPI_INLINE auto mac(const accum<Tag, N> &acc, const A &a, const B &b) {
    return mac(acc, hostapi::factor<N>(a), hostapi::factor<N>(b));
}
template <class Tag, unsigned N, class A, class B>
    requires hostapi::scaled_operands<A, B>
HOSTAPI_INLINE auto msc(const accum<Tag, N> &acc, const A &a, const B &b) {
    return msc(acc, hostapi::factor<N>(a), hostapi::factor<N>(b));
}

/// Products in accumulators of a given tag.
template <class Tag, class A, class B>
    requires(hostapi::accumulator<Tag>::exists && (hostapi::is_vector<A> || hostapi::is_vector<B>))
HOSTAPI_INLINE auto mul(const A &a, const B &b) {
    constexpr unsigned lanes = std::conditional_t<hostapi::is_vector<A>, A, B>::size();
    return mac(zeros<Tag, lanes>(), hostapi::factor<lanes>(a), hostapi::factor<lanes>(b));
}

template <class T, unsigned N> HOSTAPI_INLINE auto mul_square(const vector<T, N> &v) { return mul(v, v); }
template <class Tag, class T, unsigned N>
HOSTAPI_INLINE auto mac_square(const accum<Tag, N> &acc, const vector<T, N> &v) {
    return mac(acc, v, v);
}
template <class Tag, class T, unsigned N>
HOSTAPI_INLINE auto msc_square(const accum<Tag, N> &acc, const vector<T, N> &v) {
    return msc(acc, v, v);
}

/// acc + coefficients[start] * first + coefficients[start + 1] * second + ..., in this order.
template <unsigned Lanes, class Tag, class C, unsigned M, class T, class... Rest>
auto accumulate(const accum<Tag, Lanes> &acc, const vector<C, M> &coefficients, unsigned start,
                const vector<T, Lanes> &first, const Rest &...rest) {
    const auto sum = mac(acc, first, coefficients.get(start));
    if constexpr (sizeof...(rest) == 0)
        return sum;
    else
        return accumulate<Lanes>(sum, coefficients, start + 1, rest...);
}
/// The same without a sum before it.
template <unsigned Lanes, class C, unsigned M, class T, class... Rest>
auto accumulate(const vector<C, M> &coefficients, unsigned start, const vector<T, Lanes> &first, const Rest &...rest) {
    const auto sum = mul(first, coefficients.get(start));
    if constexpr (sizeof...(rest) == 0)
        return sum;
    else
        return accumulate<Lanes>(sum, coefficients, start + 1, rest...);
}

}  // namespace aie
