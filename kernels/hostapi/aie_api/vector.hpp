// aie::vector: N lanes of T, lane 0 lowest in memory, 4-bit lanes packed low nibble first.
#pragma once

#include <cstring>

#include "config.hpp"
#include "fault.hpp"
#include "lanes.hpp"
#include "narrow.hpp"
#include "types.hpp"
#include "unpack.hpp"

namespace aie {

template <class T> inline constexpr unsigned native_vector_length_v = 512 / hostapi::element<T>::bits;

/// A default-constructed vector is undefined. Moving undefined lanes (copy, extract, insert, concat, grow) is allowed;
/// computing with them or storing them faults.
template <class T, unsigned N = native_vector_length_v<T>> class vector {
    using traits = hostapi::element<T>;
    static_assert(traits::exists, "aie::vector: the element must be int4, uint4, a signed or unsigned 8, 16 or 32 bit "
                                  "integer, bfloat16 or float");
    static_assert(hostapi::is_power_of_two(N), "aie::vector: the number of lanes must be a power of two");
    static_assert(N * traits::bits >= 128, "aie::vector: no vector is shorter than 128 bit");

  public:
    using value_type = T;
    using storage = typename traits::storage;

    static constexpr unsigned size() { return N; }
    static constexpr unsigned bits() { return N * traits::bits; }
    static constexpr unsigned memory_bytes() { return bits() / 8; }

    vector() {}

    /// Values of the first lanes, two of them or more.
    template <class... Values>
        requires(sizeof...(Values) >= 2 && sizeof...(Values) <= N && (std::is_convertible_v<Values, T> && ...))
    explicit vector(const Values &...values) {
        unsigned lane = 0;
        (set(static_cast<T>(values), lane++), ...);
    }

    T get(unsigned lane) const {
        hostapi::require_range("aie::vector::get", "lane", lane, 0, N - 1);
        if (!defined_.has(lane)) [[unlikely]]
            hostapi::fail_undefined("aie::vector::get", "vector", lane);
        return at(lane);
    }

    void set(T value, unsigned lane) {
        hostapi::require_range("aie::vector::set", "lane", lane, 0, N - 1);
        put(lane, value);
        defined_.set(lane);
    }

    /// All lanes one up, x in lane 0.
    vector &push(T x) {
        for (unsigned lane = N - 1; lane > 0; --lane)
            if (defined_.has(lane - 1))
                set(at(lane - 1), lane);
        set(x, 0);
        return *this;
    }

    class reference {
      public:
        using proxied = T;
        reference(vector &owner, unsigned lane) : owner_(owner), lane_(lane) {}
        operator T() const { return owner_.get(lane_); }
        operator float() const
            requires std::is_same_v<T, bfloat16>
        {
            return owner_.get(lane_);
        }
        reference &operator=(T value) {
            owner_.set(value, lane_);
            return *this;
        }
        reference &operator=(const reference &other) { return *this = static_cast<T>(other); }
        reference(const reference &) = default;

      private:
        vector &owner_;
        unsigned lane_;
    };

    T operator[](unsigned lane) const { return get(lane); }
    reference operator[](unsigned lane) { return {*this, lane}; }

    /// Part i of the vector, in units of M lanes.
    template <unsigned M> vector<T, M> extract(unsigned i) const {
        static_assert(M <= N, "aie::vector::extract: the part is longer than the vector");
        hostapi::require_range("aie::vector::extract", "part", i, 0, N / M - 1);
        vector<T, M> part;
        std::memcpy(part.raw(), raw() + i * vector<T, M>::words, sizeof(storage) * vector<T, M>::words);
        part.defined_ = defined_.template part<M>(i * M);
        return part;
    }

    template <unsigned M> vector &insert(unsigned i, const vector<T, M> &part) {
        static_assert(M <= N, "aie::vector::insert: the part is longer than the vector");
        hostapi::require_range("aie::vector::insert", "part", i, 0, N / M - 1);
        std::memcpy(raw() + i * vector<T, M>::words, part.raw(), sizeof(storage) * vector<T, M>::words);
        defined_.assign(i * M, part.defined_);
        return *this;
    }

    /// This vector as the low part of a longer one; the lanes above are undefined.
    template <unsigned M> vector<T, M> grow(unsigned i = 0) const {
        static_assert(M >= N, "aie::vector::grow: the result is shorter than the vector");
        vector<T, M> grown;
        grown.insert(i, *this);
        return grown;
    }

    template <unsigned M> std::array<vector<T, M>, N / M> split() const {
        std::array<vector<T, M>, N / M> parts;
        for (unsigned i = 0; i < N / M; ++i)
            parts[i] = extract<M>(i);
        return parts;
    }

    /// The same bits as lanes of another type.
    template <class To> HOSTAPI_INLINE auto cast_to() const {
        vector<To, bits() / hostapi::element<To>::bits> cast;
        std::memcpy(cast.write(), read("aie::vector::cast_to"), memory_bytes());
        return cast;
    }

    /// Every lane one step wider: sign-extended if T is signed, else zero-extended.
    HOSTAPI_INLINE auto unpack() const {
        using Wide = typename traits::wide;
        static_assert(!std::is_void_v<Wide>, "aie::vector::unpack: 32-bit lanes have no wider type");
        vector<Wide, N> wide;
        read("aie::vector::unpack");
        Wide *out = wide.write();
        if constexpr (traits::bits == 4)
            hostapi::unpack_nibbles<words, traits::is_signed>(raw(), out);
        else
            for (unsigned lane = 0; lane < N; ++lane)
                out[lane] = static_cast<Wide>(at(lane));
        return wide;
    }

    /// Every lane one step narrower: its low bits, or clamped when saturation is on.
    auto pack() const {
        using Narrow = typename traits::narrow;
        static_assert(!std::is_void_v<Narrow>, "aie::vector::pack: 4-bit lanes have no narrower type");
        read("aie::vector::pack");
        vector<Narrow, N> narrow;
        for (unsigned lane = 0; lane < N; ++lane)
            narrow.put(lane, hostapi::saturated<Narrow>(at(lane), hostapi::core_state.saturation));
        narrow.write();
        return narrow;
    }

    /// The same as a type of the compiler, such as v16int32.
    template <class V = vector> hostapi::Native<V> to_native() const { return *this; }

    // The rest serves the other headers of the stand-in; real vectors do not have it.
    static constexpr unsigned words = bits() / 8 / sizeof(storage);

    HOSTAPI_INLINE storage *raw() { return lanes_.data(); }
    HOSTAPI_INLINE const storage *raw() const { return lanes_.data(); }

    /// Storage that the caller fills completely.
    HOSTAPI_INLINE storage *write() {
        defined_.set_all();
        return raw();
    }

    /// Storage to compute with; faults in the name of `call` when a lane is undefined.
    HOSTAPI_INLINE const storage *read(const char *call) const {
        if (!defined_.complete()) [[unlikely]]
            hostapi::fail_undefined(call, "vector", defined_.first_missing());
        return raw();
    }

    HOSTAPI_INLINE bool has(unsigned lane) const { return defined_.has(lane); }

    HOSTAPI_INLINE T at(unsigned lane) const {
        if constexpr (traits::bits == 4)
            return T(lanes_[lane / 2] >> (4 * (lane % 2)));
        else
            return lanes_[lane];
    }

    HOSTAPI_INLINE void put(unsigned lane, T value) {
        if constexpr (traits::bits == 4) {
            const unsigned shift = 4 * (lane % 2);
            lanes_[lane / 2] = (lanes_[lane / 2] & (0xf0 >> shift)) | (value.nibble << shift);
        } else {
            lanes_[lane] = value;
        }
    }

    template <class, unsigned> friend class vector;

  private:
    alignas(16) std::array<storage, words> lanes_;
    hostapi::Lanes<N> defined_;
};

}  // namespace aie

namespace hostapi {

template <class> inline constexpr bool is_vector = false;
template <class T, unsigned N> inline constexpr bool is_vector<aie::vector<T, N>> = true;

}  // namespace hostapi

namespace aie {

template <class To, class T, unsigned N> HOSTAPI_INLINE auto vector_cast(const vector<T, N> &v) {
    return v.template cast_to<To>();
}
template <class T, unsigned N> auto unpack(const vector<T, N> &v) { return v.unpack(); }
template <class T, unsigned N> auto pack(const vector<T, N> &v) { return v.pack(); }

/// Vectors of one type one after another, the first lowest.
template <class T, unsigned N, class... Rest>
    requires(hostapi::is_vector<Rest> && ...)
auto concat(const vector<T, N> &first, const Rest &...rest) {
    static_assert((std::is_same_v<vector<T, N>, Rest> && ...), "aie::concat: all parts must have the same type");
    vector<T, N *(1 + sizeof...(Rest))> whole;
    unsigned i = 0;
    whole.insert(i++, first);
    (whole.insert(i++, rest), ...);
    return whole;
}

}  // namespace aie
