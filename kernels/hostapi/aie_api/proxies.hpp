// v[i] of a vector and *it of an iterator, which stand for a value, as operands.
#pragma once

#include "mask.hpp"
#include "sums.hpp"

namespace hostapi {

template <class X>
concept proxy = requires { typename X::proxied; };

template <class X> HOSTAPI_INLINE decltype(auto) value_of(const X &x) {
    if constexpr (proxy<X>)
        return static_cast<typename X::proxied>(x);
    else
        return (x);
}

template <class... X>
concept with_proxy = (proxy<X> || ...);

}  // namespace hostapi

namespace aie {

#define HOSTAPI_OF_TWO(name)                                             \
    template <class A, class B>                                          \
        requires hostapi::with_proxy<A, B>                               \
    auto name(const A &a, const B &b) {                                  \
        return aie::name(hostapi::value_of(a), hostapi::value_of(b));    \
    }
HOSTAPI_OF_TWO(add)
HOSTAPI_OF_TWO(sub)
HOSTAPI_OF_TWO(mul)
HOSTAPI_OF_TWO(negmul)
HOSTAPI_OF_TWO(max)
HOSTAPI_OF_TWO(min)
HOSTAPI_OF_TWO(lt)
HOSTAPI_OF_TWO(le)
HOSTAPI_OF_TWO(gt)
HOSTAPI_OF_TWO(ge)
HOSTAPI_OF_TWO(eq)
HOSTAPI_OF_TWO(neq)
HOSTAPI_OF_TWO(bit_and)
HOSTAPI_OF_TWO(bit_or)
HOSTAPI_OF_TWO(bit_xor)
#undef HOSTAPI_OF_TWO

#define HOSTAPI_OF_THREE(name)                                                                      \
    template <class Acc, class A, class B>                                                          \
        requires hostapi::with_proxy<Acc, A, B>                                                     \
    auto name(const Acc &acc, const A &a, const B &b) {                                             \
        return aie::name(hostapi::value_of(acc), hostapi::value_of(a), hostapi::value_of(b));       \
    }
HOSTAPI_OF_THREE(mac)
HOSTAPI_OF_THREE(msc)
#undef HOSTAPI_OF_THREE

}  // namespace aie
