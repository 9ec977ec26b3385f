// aie::accum: 32-bit (acc32) or 64-bit (all others) lanes. Accumulators wrap; rounding and saturation act in to_vector.
#pragma once

#include "arithmetic.hpp"
#include "narrow_lanes.hpp"

namespace aie {

template <class Tag, unsigned N> class accum;

}  // namespace aie

namespace hostapi {

template <class> inline constexpr bool is_accum = false;
template <class Tag, unsigned N> inline constexpr bool is_accum<aie::accum<Tag, N>> = true;

/// The same bits as lanes of another accumulator tag.
template <class To, class Acc> auto recast(const Acc &acc) {
    aie::accum<To, Acc::bits() / accumulator<To>::bits> cast;
    std::memcpy(cast.write(), acc.read("aie::accum::cast_to"), Acc::bits() / 8);
    return cast;
}

}  // namespace hostapi

namespace aie {

template <class Tag, unsigned N> class accum {
    using traits = hostapi::accumulator<Tag>;
    static_assert(traits::exists, "aie::accum: the tag must be acc32, acc40, acc48, acc56 or acc64");
    static_assert(hostapi::is_power_of_two(N), "aie::accum: the number of lanes must be a power of two");
    static_assert(N * traits::bits >= 256 && N * traits::bits <= 4096,
                  "aie::accum: an accumulator has 8 to 128 lanes of 32 bit or 4 to 64 lanes of 64 bit");

  public:
    using value_type = Tag;
    using storage = typename traits::storage;

    static constexpr unsigned size() { return N; }
    static constexpr unsigned bits() { return N * traits::bits; }

    accum() {}
    template <class T> HOSTAPI_INLINE explicit accum(const vector<T, N> &v, int shift = 0) { from_vector(v, shift); }

    /// v * 2^shift; wraps, or clamps when saturation is on.
    template <class T> HOSTAPI_INLINE void from_vector(const vector<T, N> &v, int shift = 0) {
        hostapi::refuse_nibbles<vector<T, N>>();
        constexpr bool bit_copy = traits::bits == 32 && hostapi::element<T>::bits == 32;
        hostapi::require_range("aie::accum::from_vector", bit_copy ? "shift of a 32-bit lane into acc32" : "shift",
                               shift, 0, bit_copy ? 0 : hostapi::shift_max);
        const T *in = v.read("aie::accum::from_vector");
        storage *out = write();
        if constexpr (bit_copy)
            for (unsigned i = 0; i < N; ++i)
                out[i] = static_cast<storage>(in[i]);
        else
            hostapi::upshift_lanes<storage, N>(in, out, shift);
    }

    /// Lanes / 2^shift, rounded and saturated by the core's modes; acc32 to 32-bit lanes copies bits and ignores all.
    template <class T> HOSTAPI_INLINE vector<T, N> to_vector(int shift = 0) const {
        return narrowed<T>("aie::accum::to_vector", shift);
    }

    /// The same bits as lanes of another tag.
    template <class To> auto cast_to() const { return hostapi::recast<To>(*this); }

    template <unsigned M> accum<Tag, M> extract(unsigned i) const {
        hostapi::require_range("aie::accum::extract", "part", i, 0, N / M - 1);
        accum<Tag, M> part;
        std::memcpy(part.raw(), raw() + i * M, M * sizeof(storage));
        part.defined_ = defined_.template part<M>(i * M);
        return part;
    }

    template <unsigned M> accum &insert(unsigned i, const accum<Tag, M> &part) {
        static_assert(M <= N, "aie::accum::insert: the part is longer than the accumulator");
        hostapi::require_range("aie::accum::insert", "part", i, 0, N / M - 1);
        std::memcpy(raw() + i * M, part.raw(), M * sizeof(storage));
        defined_.assign(i * M, part.defined_);
        return *this;
    }

    template <unsigned M> accum<Tag, M> grow(unsigned i = 0) const {
        static_assert(M >= N, "aie::accum::grow: the result is shorter than the accumulator");
        accum<Tag, M> grown;
        grown.insert(i, *this);
        return grown;
    }

    /// The same as a type of the compiler, such as v16int32.
    template <class V = accum> hostapi::Native<V> to_native() const { return *this; }

    // The rest serves the other headers of the stand-in; real accumulators do not have it.
    HOSTAPI_INLINE storage *raw() { return lanes_.data(); }
    HOSTAPI_INLINE const storage *raw() const { return lanes_.data(); }
    HOSTAPI_INLINE storage *write() {
        defined_.set_all();
        return raw();
    }
    HOSTAPI_INLINE const storage *read(const char *call) const {
        if (!defined_.complete()) [[unlikely]]
            hostapi::fail_undefined(call, "accumulator", defined_.first_missing());
        return raw();
    }

    template <class T> HOSTAPI_INLINE vector<T, N> narrowed(const char *call, int shift) const {
        hostapi::refuse_nibbles<vector<T, N>>();
        hostapi::require_range(call, "shift", shift, 0, hostapi::shift_max);
        const storage *in = read(call);
        vector<T, N> v;
        T *out = v.write();
        if constexpr (traits::bits == 32 && hostapi::element<T>::bits == 32)
            for (unsigned i = 0; i < N; ++i)
                out[i] = static_cast<T>(in[i]);
        else
            hostapi::narrow_lanes<T, N>(in, out, shift);
        return v;
    }

    template <class, unsigned> friend class accum;

  private:
    alignas(16) std::array<storage, N> lanes_;
    hostapi::Lanes<N> defined_;
};

template <class Tag, class T, unsigned N> auto from_vector(const vector<T, N> &v, int shift = 0) {
    return accum<Tag, N>(v, shift);
}
template <class T, class Tag, unsigned N> auto to_vector(const accum<Tag, N> &acc, int shift = 0) {
    return acc.template to_vector<T>(shift);
}

template <class Tag, unsigned N, class... Rest>
    requires(hostapi::is_accum<Rest> && ...)
auto concat(const accum<Tag, N> &first, const Rest &...rest) {
    static_assert((std::is_same_v<accum<Tag, N>, Rest> && ...), "aie::concat: all parts must have the same type");
    accum<Tag, N *(1 + sizeof...(Rest))> whole;
    unsigned i = 0;
    whole.insert(i++, first);
    (whole.insert(i++, rest), ...);
    return whole;
}

/// All lanes 0: a vector for an element type, an accumulator for a tag.
template <class T, unsigned N> HOSTAPI_INLINE auto zeros() {
    if constexpr (hostapi::accumulator<T>::exists) {
        accum<T, N> acc;
        std::memset(acc.write(), 0, acc.bits() / 8);
        return acc;
    } else {
        vector<T, N> v;
        std::memset(v.write(), 0, v.memory_bytes());
        return v;
    }
}
template <class T> HOSTAPI_INLINE auto zeros() { return zeros<T, native_vector_length_v<T>>(); }

}  // namespace aie

namespace hostapi {

template <class Tag, unsigned N, class F>
aie::accum<Tag, N> on_accums(const char *call, const aie::accum<Tag, N> &a, const aie::accum<Tag, N> &b, F f) {
    using Unsigned = std::make_unsigned_t<typename aie::accum<Tag, N>::storage>;
    const auto *x = a.read(call), *y = b.read(call);
    aie::accum<Tag, N> result;
    auto *out = result.write();
    for (unsigned i = 0; i < N; ++i)
        out[i] = static_cast<typename aie::accum<Tag, N>::storage>(
            f(static_cast<Unsigned>(x[i]), static_cast<Unsigned>(y[i])));
    return result;
}

/// Tag that accauto means for an element-wise product.
template <class A, class B>
using product_tag = std::conditional_t<(element<A>::bits + element<B>::bits > 32), acc64, acc32>;

/// acc + factor * a * b lane by lane, wrapping. 4-bit lanes of b are unpacked.
template <class Acc, class T, class U, unsigned N>
Acc multiplied(const char *call, Acc acc, int factor, const aie::vector<T, N> &a, const aie::vector<U, N> &b) {
    static_assert(Acc::size() == N, "aie::mac: the accumulator must have one lane per product");
    static_assert(element<T>::bits != 4 && (element<U>::bits != 4 || element<T>::bits == 8),
                  "aie::mul: lanes of 4 bit are the second operand, and the first has 8 bit; unpack");
    if constexpr (element<T>::bits == 8 && element<U>::bits == 4) {
        return multiplied(call, acc, factor, a, b.unpack());
    } else {
        refuse_nibbles<aie::vector<T, N>>();
        refuse_nibbles<aie::vector<U, N>>();
        const T *x = a.read(call);
        const U *y = b.read(call);
        acc.read(call);
        auto *out = acc.write();
        for (unsigned i = 0; i < N; ++i)
            out[i] = static_cast<typename Acc::storage>(
                static_cast<uint64_t>(out[i]) + static_cast<uint64_t>(factor * int64_t{x[i]} * int64_t{y[i]}));
        return acc;
    }
}

}  // namespace hostapi

namespace aie {

template <class Tag, unsigned N> auto add(const accum<Tag, N> &a, const accum<Tag, N> &b) {
    return hostapi::on_accums("aie::add", a, b, [](auto x, auto y) { return x + y; });
}
template <class Tag, unsigned N> auto sub(const accum<Tag, N> &a, const accum<Tag, N> &b) {
    return hostapi::on_accums("aie::sub", a, b, [](auto x, auto y) { return x - y; });
}
template <class Tag, unsigned N> auto neg(const accum<Tag, N> &a) { return sub(zeros<Tag, N>(), a); }

/// Element-wise products in a fresh accumulator.
template <class T, class U, unsigned N> auto mul(const vector<T, N> &a, const vector<U, N> &b) {
    return hostapi::multiplied("aie::mul", zeros<hostapi::product_tag<T, U>, N>(), 1, a, b);
}
template <class Tag, unsigned M, class T, class U, unsigned N>
auto mac(const accum<Tag, M> &acc, const vector<T, N> &a, const vector<U, N> &b) {
    return hostapi::multiplied("aie::mac", acc, 1, a, b);
}
template <class Tag, unsigned M, class T, class U, unsigned N>
auto msc(const accum<Tag, M> &acc, const vector<T, N> &a, const vector<U, N> &b) {
    return hostapi::multiplied("aie::msc", acc, -1, a, b);
}

}  // namespace aie
