// Products of the MAC unit by the names of their shapes: lane by lane, of blocks, and sliding.
#pragma once

#include "bfp16_mmul.hpp"
#include "intrinsics.hpp"
#include "mmul.hpp"

namespace hostapi {

/// acc + factor * a * b, the products of `Terms` parts of Lanes lanes each added up.
template <unsigned Lanes, unsigned Terms, class Acc, class A, class B>
Acc mac_parts(const Acc &before, const A &a, const B &b, bool negative) {
    static_assert(A::size() == Lanes * Terms && B::size() == Lanes * Terms,
                  "mul_elem: operands must have the lanes that the name says, times the products that are added up");
    Acc acc = before;
    for (unsigned i = 0; i < Terms; ++i) {
        const auto x = a.template extract<Lanes>(i);
        const auto y = b.template extract<Lanes>(i);
        acc = negative ? aie::msc(acc, x, y) : aie::mac(acc, x, y);
    }
    return acc;
}

/// An accumulator of 0 for a lane's products: 64 bits where two of 16 bits are added up.
template <unsigned Lanes, unsigned Terms, class A, class B> auto no_products() {
    using T = typename A::value_type;
    using U = typename B::value_type;
    constexpr bool wide = element<T>::bits + element<U>::bits > (Terms > 1 ? 24 : 32);
    if constexpr (is_float<T>)
        return aie::zeros<accfloat, Lanes>();
    else
        return aie::zeros<std::conditional_t<wide, acc64, acc32>, Lanes>();
}

/// The lanes that a block product takes: the low ones of a longer register.
template <unsigned Lanes, class V> auto low_lanes(const V &v) {
    if constexpr (requires { v.template extract<Lanes>(0); })
        return v.template extract<Lanes>(0);
    else
        return v;
}
template <unsigned M, unsigned K, unsigned N, class A, class B>
using block_product = aie::mmul<M, K, N, typename A::value_type, typename B::value_type>;

}  // namespace hostapi

#define HOSTAPI_ELEMENTS(name, lanes, terms)                                                                           \
    template <class A, class B, class C> auto mac_elem_##name(const A &a, const B &b, const C &acc) {                  \
        return hostapi::native(                                                                                        \
            hostapi::mac_parts<lanes, terms>(hostapi::api(acc), hostapi::api(a), hostapi::api(b), false));             \
    }                                                                                                                  \
    template <class A, class B, class C> auto msc_elem_##name(const A &a, const B &b, const C &acc) {                  \
        return hostapi::native(                                                                                        \
            hostapi::mac_parts<lanes, terms>(hostapi::api(acc), hostapi::api(a), hostapi::api(b), true));              \
    }                                                                                                                  \
    template <class A, class B> auto mul_elem_##name(const A &a, const B &b) {                                         \
        return mac_elem_##name(a, b, hostapi::no_products<lanes, terms, hostapi::api_t<A>, hostapi::api_t<B>>());      \
    }                                                                                                                  \
    template <class A, class B> auto negmul_elem_##name(const A &a, const B &b) {                                      \
        return msc_elem_##name(a, b, hostapi::no_products<lanes, terms, hostapi::api_t<A>, hostapi::api_t<B>>());      \
    }                                                                                                                  \
    template <class A, class B, class C> auto addmac_elem_##name(const A &a, const B &b, const C &c, const C &d) {     \
        return mac_elem_##name(a, b, add(c, d));                                                                       \
    }
HOSTAPI_ELEMENTS(64, 64, 1)
HOSTAPI_ELEMENTS(32, 32, 1)
HOSTAPI_ELEMENTS(16, 16, 1)
HOSTAPI_ELEMENTS(8, 8, 1)
HOSTAPI_ELEMENTS(64_2, 64, 2)
HOSTAPI_ELEMENTS(32_2, 32, 2)
HOSTAPI_ELEMENTS(16_2, 16, 2)
#undef HOSTAPI_ELEMENTS

#define HOSTAPI_BLOCKS(m, k, n)                                                                                        \
    template <class A, class B, class C> auto mac_##m##x##k##_##k##x##n(const A &a, const B &b, const C &acc) {        \
        using Product = hostapi::block_product<m, k, n, hostapi::api_t<A>, hostapi::api_t<B>>;                         \
        Product c(static_cast<typename Product::accum_type>(hostapi::api(acc)));                                       \
        c.mac(hostapi::low_lanes<m * k>(hostapi::api(a)), hostapi::low_lanes<k * n>(hostapi::api(b)));                 \
        return hostapi::native(c.to_accum());                                                                          \
    }                                                                                                                  \
    template <class A, class B> auto mul_##m##x##k##_##k##x##n(const A &a, const B &b) {                               \
        using Product = hostapi::block_product<m, k, n, hostapi::api_t<A>, hostapi::api_t<B>>;                         \
        using Tag = typename Product::accum_type::value_type;                                                          \
        return mac_##m##x##k##_##k##x##n(a, b, aie::zeros<Tag, m * n>());                                              \
    }
HOSTAPI_BLOCKS(8, 8, 8)
HOSTAPI_BLOCKS(4, 8, 8)
HOSTAPI_BLOCKS(4, 8, 4)
HOSTAPI_BLOCKS(4, 16, 8)
HOSTAPI_BLOCKS(4, 16, 16)
HOSTAPI_BLOCKS(4, 4, 8)
HOSTAPI_BLOCKS(4, 4, 4)
HOSTAPI_BLOCKS(4, 2, 8)
HOSTAPI_BLOCKS(8, 2, 8)
HOSTAPI_BLOCKS(8, 4, 8)
HOSTAPI_BLOCKS(8, 1, 8)
HOSTAPI_BLOCKS(2, 8, 8)
HOSTAPI_BLOCKS(2, 4, 8)
HOSTAPI_BLOCKS(8, 8, 4)
#undef HOSTAPI_BLOCKS

#if __AIE_ARCH__ >= 21
/// A times the transpose of B, both of them 8 rows of 8 block floats.
template <class C>
auto mac_8x8_8x8T(const aie::block_vector<bfp16ebs8, 64> &a, const aie::block_vector<bfp16ebs8, 64> &b, const C &acc) {
    aie::mmul<8, 8, 8, bfp16ebs8, bfp16ebs8> c(static_cast<aie::accum<accfloat, 64>>(hostapi::api(acc)));
    c.mac(a, aie::op_transpose(b));
    return hostapi::native(c.to_accum());
}
inline auto mul_8x8_8x8T(const aie::block_vector<bfp16ebs8, 64> &a, const aie::block_vector<bfp16ebs8, 64> &b) {
    return mac_8x8_8x8T(a, b, aie::zeros<accfloat, 64>());
}
#endif

/// Lane i is the sum of data[i + j] * coefficients[j].
#define HOSTAPI_SLIDING(lanes, points)                                                                                 \
    template <class A, class B, class C> auto mac_conv_##lanes##x##points(const A &data, const B &c, const C &acc) {   \
        return hostapi::native(aie::sliding_mac<lanes, points>(hostapi::api(acc), hostapi::api(c), 0,                  \
                                                               hostapi::api(data), 0));                                \
    }                                                                                                                  \
    template <class A, class B> auto mul_conv_##lanes##x##points(const A &data, const B &c) {                          \
        return mac_conv_##lanes##x##points(                                                                            \
            data, c, hostapi::no_products<lanes, points, hostapi::api_t<A>, hostapi::api_t<B>>());                     \
    }
HOSTAPI_SLIDING(32, 8)
HOSTAPI_SLIDING(64, 8)
HOSTAPI_SLIDING(16, 4)
#undef HOSTAPI_SLIDING
