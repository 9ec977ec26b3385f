// The compiler's own vector types, v16int32 or v16accfloat: registers as they lie in memory, without the marks of
// undefined lanes that aie::vector keeps. They turn into the API's classes and back wherever one is asked for.
#pragma once

#include "accum.hpp"
#include "float_accum.hpp"
#include "memory.hpp"

namespace hostapi {

/// The address as the compiler does not know it: of a declared type it would take the alignment for granted.
inline const void *unknown(const void *p) {
    asm("" : "+r"(p));
    return p;
}

/// V is an aie::vector or an aie::accum. Default-constructed it is undefined; reading it then is not found out.
template <class V> struct Native {
    using api = V;
    static constexpr unsigned alignment = access_alignment(V::bits());

    Native() {}
    Native(const Native &other) { copy(other); }
    Native(const V &v) { std::memcpy(bytes, v.raw(), sizeof bytes); }
    /// The same bits.
    template <class W>
        requires(W::bits() == V::bits())
    explicit Native(const Native<W> &other) {
        std::memcpy(bytes, other.bytes, sizeof bytes);
    }
    Native &operator=(const Native &other) {
        copy(other);
        return *this;
    }
    operator V() const {
        V v;
        std::memcpy(v.write(), bytes, sizeof bytes);
        return v;
    }

    alignas(alignment) unsigned char bytes[V::bits() / 8];

  private:
    void copy(const Native &other) {
        for (const void *p : {unknown(this), unknown(&other)})
            if (reinterpret_cast<std::uintptr_t>(p) % alignment != 0) [[unlikely]]
                fail_alignment("a vector through a pointer", V::size(), p, alignment);
        std::memcpy(bytes, other.bytes, sizeof bytes);
    }
};

/// An operand of intrinsics: a native value, or one of the API's classes, which turns into it.
template <class X>
concept lanes = is_native<X> || is_vector<X> || is_accum<X>;

/// What an intrinsic computes with: the API's class of a native value, everything else as it is.
template <class X> decltype(auto) api(const X &x) {
    if constexpr (is_native<X>)
        return static_cast<typename X::api>(x);
    else
        return (x);
}
template <class X> using api_t = std::remove_cvref_t<decltype(api(std::declval<const X &>()))>;

/// The native value of what the API's functions give; everything else as it is.
template <class X> auto native(const X &x) {
    if constexpr (requires { X::bits(); })
        return Native<X>(x);
    else
        return x;
}

}  // namespace hostapi

// X(lanes, element): all names that the compilers have for vectors and accumulators of this generation.
#define HOSTAPI_OF_BYTES(X, type) X(16, type) X(32, type) X(64, type) X(128, type)
#define HOSTAPI_OF_HALVES(X, type) X(8, type) X(16, type) X(32, type) X(64, type)
#define HOSTAPI_OF_WORDS(X, type) X(4, type) X(8, type) X(16, type) X(32, type)
#define HOSTAPI_OF_NIBBLES(X, type) X(32, type) X(64, type) X(128, type) X(256, type)
#define HOSTAPI_VECTORS(X)                                              \
    HOSTAPI_OF_BYTES(X, int8) HOSTAPI_OF_BYTES(X, uint8)                \
    HOSTAPI_OF_HALVES(X, int16) HOSTAPI_OF_HALVES(X, uint16)            \
    HOSTAPI_OF_HALVES(X, bfloat16) HOSTAPI_OF_WORDS(X, int32)           \
    HOSTAPI_OF_WORDS(X, uint32) HOSTAPI_OF_WORDS(X, float)              \
    HOSTAPI_OF_NIBBLES(X, int4) HOSTAPI_OF_NIBBLES(X, uint4)
#define HOSTAPI_ACCUMS(X) \
    HOSTAPI_OF_HALVES(X, acc32) HOSTAPI_OF_WORDS(X, acc64) HOSTAPI_OF_WORDS(X, accfloat) X(64, accfloat)

#define HOSTAPI_VECTOR(lanes, type) using v##lanes##type = hostapi::Native<aie::vector<type, lanes>>;
#define HOSTAPI_ACCUM(lanes, tag) using v##lanes##tag = hostapi::Native<aie::accum<tag, lanes>>;
HOSTAPI_VECTORS(HOSTAPI_VECTOR)
HOSTAPI_ACCUMS(HOSTAPI_ACCUM)
#undef HOSTAPI_VECTOR
#undef HOSTAPI_ACCUM

static_assert(sizeof(v64int8) == 64 && sizeof(v8int16) == 16 && sizeof(v32acc64) == 256);
