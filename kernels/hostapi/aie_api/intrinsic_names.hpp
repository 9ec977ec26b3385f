// Intrinsics that carry the name of their result: broadcast_to_v16int32, ups_to_v32acc32, srs_to_v16int16 and so on.
#pragma once

#include "convert.hpp"
#include "native.hpp"

namespace hostapi {

/// An accumulator's lanes narrowed, or floats as others.
template <class V, class X> Native<V> narrowed_to(const X &x, int shift) {
    return api(x).template to_vector<typename V::value_type>(shift);
}
template <class A, class X> Native<A> widened_to(const X &x, int shift) {
    return A(api(x), shift);
}
template <class V, class X> Native<V> part_of(const X &x, unsigned i) {
    return api(x).template extract<V::size()>(i);
}
/// A part at place i; the rest is 0, where the device has what it had.
template <class V, class X> Native<V> whole_of(unsigned i, const X &x) {
    V whole = aie::zeros<typename V::value_type, V::size()>();
    whole.insert(i, api(x));
    return whole;
}

}  // namespace hostapi

#define HOSTAPI_NAMED(lanes, type)                                                                                     \
    inline v##lanes##type undef_v##lanes##type() { return aie::zeros<type, lanes>(); }                                 \
    inline v##lanes##type broadcast_zero_to_v##lanes##type() { return aie::zeros<type, lanes>(); }                     \
    template <class X> v##lanes##type extract_v##lanes##type(const X &x, unsigned i) {                                 \
        return hostapi::part_of<v##lanes##type::api>(x, i);                                                            \
    }                                                                                                                  \
    template <class X> v##lanes##type set_v##lanes##type(unsigned i, const X &x) {                                     \
        return hostapi::whole_of<v##lanes##type::api>(i, x);                                                           \
    }
HOSTAPI_VECTORS(HOSTAPI_NAMED)
HOSTAPI_ACCUMS(HOSTAPI_NAMED)
#undef HOSTAPI_NAMED

#define HOSTAPI_NAMED(lanes, type)                                                                                     \
    inline v##lanes##type broadcast_to_v##lanes##type(type x) { return aie::broadcast<type, lanes>(x); }               \
    inline v##lanes##type broadcast_one_to_v##lanes##type() { return aie::broadcast<type, lanes>(type(1)); }           \
    template <class X> v##lanes##type to_v##lanes##type(const X &x) {                                                  \
        return hostapi::narrowed_to<v##lanes##type::api>(x, 0);                                                        \
    }                                                                                                                  \
    template <class X> v##lanes##type srs_to_v##lanes##type(const X &x, int shift) {                                   \
        return hostapi::narrowed_to<v##lanes##type::api>(x, shift);                                                    \
    }
HOSTAPI_VECTORS(HOSTAPI_NAMED)
#undef HOSTAPI_NAMED

#define HOSTAPI_NAMED(lanes, tag)                                                                                      \
    template <class X> v##lanes##tag ups_to_v##lanes##tag(const X &x, int shift = 0) {                                 \
        return hostapi::widened_to<v##lanes##tag::api>(x, shift);                                                      \
    }
HOSTAPI_ACCUMS(HOSTAPI_NAMED)
#undef HOSTAPI_NAMED

#if __AIE_ARCH__ >= 21
using v64bfp16ebs8 = aie::block_vector<bfp16ebs8, 64>;
inline v64bfp16ebs8 to_v64bfp16ebs8(const v64accfloat &x) { return hostapi::api(x).to_vector<bfp16ebs8>(); }
#endif

// Whole registers of 512 bits, by the short names of their elements.
#define HOSTAPI_NAMED(name, type)                                                                                      \
    inline auto broadcast_##name(type x) { return hostapi::native(aie::broadcast<type>(x)); }                          \
    inline auto broadcast_zero_##name() { return broadcast_##name(type(0)); }                                          \
    inline auto broadcast_one_##name() { return broadcast_##name(type(1)); }
HOSTAPI_NAMED(s8, int8)
HOSTAPI_NAMED(u8, uint8)
HOSTAPI_NAMED(s16, int16)
HOSTAPI_NAMED(u16, uint16)
HOSTAPI_NAMED(s32, int32)
HOSTAPI_NAMED(u32, uint32)
HOSTAPI_NAMED(bfloat16, bfloat16)
HOSTAPI_NAMED(float, float)
#undef HOSTAPI_NAMED

// Accumulators narrowed to as many lanes of an element, and widened from them, by short names.
#define HOSTAPI_NAMED(name, type)                                                                                      \
    template <hostapi::lanes A> auto name(const A &acc, int shift) {                                                   \
        return hostapi::native(hostapi::api(acc).template to_vector<type>(shift));                                     \
    }
HOSTAPI_NAMED(bsrs, int8)
HOSTAPI_NAMED(ubsrs, uint8)
HOSTAPI_NAMED(ssrs, int16)
HOSTAPI_NAMED(ussrs, uint16)
HOSTAPI_NAMED(lsrs, int32)
#undef HOSTAPI_NAMED
template <hostapi::lanes V> auto ups(const V &v, int shift) {
    return hostapi::native(aie::from_vector<acc32>(hostapi::api(v), shift));
}
template <hostapi::lanes V> auto lups(const V &v, int shift) {
    return hostapi::native(aie::from_vector<acc64>(hostapi::api(v), shift));
}
