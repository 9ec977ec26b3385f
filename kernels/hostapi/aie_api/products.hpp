// Products of lanes by a scalar, squares, and sums of vectors by coefficients.
#pragma once

#include "float_arithmetic.hpp"

namespace hostapi {

/// A scalar operand of a product: an element, which is neither a vector nor an accumulator.
template <class S>
concept scalar = !is_vector<S> && element<S>::exists;

}  // namespace hostapi

namespace aie {

template <class T, unsigned N, hostapi::scalar S> HOSTAPI_INLINE auto mul(const vector<T, N> &v, S s) {
    return mul(v, broadcast<S, N>(s));
}
template <class T, unsigned N, hostapi::scalar S> HOSTAPI_INLINE auto mul(S s, const vector<T, N> &v) {
    return mul(broadcast<S, N>(s), v);
}
template <class Tag, unsigned M, class T, unsigned N, hostapi::scalar S>
HOSTAPI_INLINE auto mac(const accum<Tag, M> &acc, const vector<T, N> &v, S s) {
    return mac(acc, v, broadcast<S, N>(s));
}
template <class Tag, unsigned M, class T, unsigned N, hostapi::scalar S>
HOSTAPI_INLINE auto mac(const accum<Tag, M> &acc, S s, const vector<T, N> &v) {
    return mac(acc, broadcast<S, N>(s), v);
}
template <class Tag, unsigned M, class T, unsigned N, hostapi::scalar S>
HOSTAPI_INLINE auto msc(const accum<Tag, M> &acc, const vector<T, N> &v, S s) {
    return msc(acc, v, broadcast<S, N>(s));
}
template <class Tag, unsigned M, class T, unsigned N, hostapi::scalar S>
HOSTAPI_INLINE auto msc(const accum<Tag, M> &acc, S s, const vector<T, N> &v) {
    return msc(acc, broadcast<S, N>(s), v);
}

template <class T, unsigned N> HOSTAPI_INLINE auto mul_square(const vector<T, N> &v) { return mul(v, v); }
template <class Tag, unsigned M, class T, unsigned N>
HOSTAPI_INLINE auto mac_square(const accum<Tag, M> &acc, const vector<T, N> &v) {
    return mac(acc, v, v);
}
template <class Tag, unsigned M, class T, unsigned N>
HOSTAPI_INLINE auto msc_square(const accum<Tag, M> &acc, const vector<T, N> &v) {
    return msc(acc, v, v);
}

/// acc + coefficients[start] * first + coefficients[start + 1] * second + ..., in this order.
template <unsigned Lanes, class Tag, class C, unsigned M, class T, class... Rest>
auto accumulate(accum<Tag, Lanes> acc, const vector<C, M> &coefficients, unsigned start, const vector<T, Lanes> &first,
                const Rest &...rest) {
    hostapi::require_range("aie::accumulate", "last coefficient", int64_t{start} + sizeof...(rest), 0, M - 1);
    acc = mac(acc, first, C(coefficients.get(start)));
    ((acc = mac(acc, rest, C(coefficients.get(++start)))), ...);
    return acc;
}
/// The same from zeros.
template <unsigned Lanes, class C, unsigned M, class T, class... Rest>
auto accumulate(const vector<C, M> &coefficients, unsigned start, const vector<T, Lanes> &first, const Rest &...rest) {
    hostapi::require_range("aie::accumulate", "last coefficient", int64_t{start} + sizeof...(rest), 0, M - 1);
    auto acc = mul(first, C(coefficients.get(start)));
    ((acc = mac(acc, rest, C(coefficients.get(++start)))), ...);
    return acc;
}

}  // namespace aie
