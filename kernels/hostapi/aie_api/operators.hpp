// Operators on vectors and accumulators, for kernels that say `using namespace aie::operators`.
#pragma once

#include "float_functions.hpp"
#include "mask.hpp"
#include "sums.hpp"

namespace hostapi {

/// One of the two is a vector or an accumulator.
template <class A, class B>
concept operands = is_vector<A> || is_vector<B> || is_accum<A> || is_accum<B>;

/// The real headers have bitwise operations with the scalar first; operators take it on either side.
template <class A, class B, class F> auto scalar_first(const A &a, const B &b, F f) {
    if constexpr (is_vector<B>)
        return f(a, b);
    else
        return f(b, a);
}

}  // namespace hostapi

namespace aie::operators {

#define HOSTAPI_OPERATOR(symbol, name)                    \
    template <class A, class B>                           \
        requires hostapi::operands<A, B>                  \
    auto operator symbol(const A &a, const B &b) {        \
        return aie::name(a, b);                           \
    }
HOSTAPI_OPERATOR(+, add)
HOSTAPI_OPERATOR(-, sub)
HOSTAPI_OPERATOR(*, mul)
HOSTAPI_OPERATOR(<, lt)
HOSTAPI_OPERATOR(<=, le)
HOSTAPI_OPERATOR(>, gt)
HOSTAPI_OPERATOR(>=, ge)
HOSTAPI_OPERATOR(==, eq)
HOSTAPI_OPERATOR(!=, neq)
#undef HOSTAPI_OPERATOR

#define HOSTAPI_BITWISE(symbol, name)                                                                        \
    template <class A, class B>                                                                              \
        requires hostapi::operands<A, B>                                                                     \
    auto operator symbol(const A &a, const B &b) {                                                           \
        return hostapi::scalar_first(a, b, [](const auto &x, const auto &y) { return aie::name(x, y); });    \
    }
HOSTAPI_BITWISE(&, bit_and)
HOSTAPI_BITWISE(|, bit_or)
HOSTAPI_BITWISE(^, bit_xor)
#undef HOSTAPI_BITWISE

template <class T, unsigned N> auto operator~(const vector<T, N> &v) { return bit_not(v); }
template <class T, unsigned N> auto operator-(const vector<T, N> &v) { return neg(v); }
template <class Tag, unsigned N> auto operator-(const accum<Tag, N> &a) { return neg(a); }
template <class T, unsigned N> auto operator<<(const vector<T, N> &v, unsigned n) { return upshift(v, n); }
template <class T, unsigned N> auto operator>>(const vector<T, N> &v, unsigned n) { return downshift(v, n); }

template <class A, class B>
    requires hostapi::operands<A, B>
A &operator+=(A &a, const B &b) {
    return a = aie::add(a, b);
}
template <class A, class B>
    requires hostapi::operands<A, B>
A &operator-=(A &a, const B &b) {
    return a = aie::sub(a, b);
}

}  // namespace aie::operators
