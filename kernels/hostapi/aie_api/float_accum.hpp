// aie::accum<accfloat, N>: lanes of 32-bit floating point, rounded to nearest even by every operation.
//
// The device sums the products of one VMAC before it rounds, and flushes subnormals; here every sum rounds and
// subnormals stay. Compare with a tolerance: docs/block_floats.md derives it.
#pragma once

#include "accum.hpp"
#include "bfp16.hpp"

namespace hostapi {

/// Floats as lanes of T: themselves, or bfloat16 by the core's rounding mode (floor after a reset, which is biased).
template <class T, unsigned N> HOSTAPI_INLINE void narrow_floats(const float *in, T *out) {
    const aie::rounding_mode mode = core_state.rounding;
    if constexpr (std::is_same_v<T, bfloat16>)
        if (mode != aie::rounding_mode::conv_even) [[unlikely]] {
            for (unsigned i = 0; i < N; ++i)
                out[i].bits = rounded_bfloat16(in[i], mode);
            return;
        }
    for (unsigned i = 0; i < N; ++i)
        out[i] = static_cast<T>(in[i]);
}

}  // namespace hostapi

namespace aie {

template <unsigned N> class accum<accfloat, N> {
    static_assert(hostapi::is_power_of_two(N) && N >= 4 && N <= 128, "aie::accum: accfloat has 4 to 128 lanes");

  public:
    using value_type = accfloat;
    using storage = float;

    static constexpr unsigned size() { return N; }
    static constexpr unsigned bits() { return N * 32; }

    accum() {}
    template <class T> HOSTAPI_INLINE explicit accum(const vector<T, N> &v, int shift = 0) { from_vector(v, shift); }
    template <unsigned Count>
        requires(Count == N)
    HOSTAPI_INLINE explicit accum(const block_vector<bfp16ebs8, Count> &v) {
        hostapi::decode<N>(v.read("aie::accum::accum"), write());
    }

    /// Exact. Floats have no shift.
    template <class T> HOSTAPI_INLINE void from_vector(const vector<T, N> &v, int shift = 0) {
        static_assert(hostapi::is_float<T>, "aie::accum: accfloat is made from float, bfloat16 or bfp16ebs8");
        hostapi::require_range("aie::accum::from_vector", "shift of a float", shift, 0, 0);
        const T *in = v.read("aie::accum::from_vector");
        float *out = write();
        for (unsigned i = 0; i < N; ++i)
            out[i] = static_cast<float>(in[i]);
    }

    /// vector<float>: the bits; vector<bfloat16>: by the rounding mode; block_vector<bfp16ebs8>: by blocks of 8.
    template <class T> HOSTAPI_INLINE auto to_vector(int shift = 0) const {
        return narrowed<T>("aie::accum::to_vector", shift);
    }

    /// A vector of floats where one is asked for.
    template <class T>
        requires hostapi::is_float<T>
    HOSTAPI_INLINE operator vector<T, N>() const {
        return to_vector<T>();
    }

    /// The same bits as lanes of another tag.
    template <class To> auto cast_to() const { return hostapi::recast<To>(*this); }

    template <unsigned M> accum<accfloat, M> grow(unsigned i = 0) const {
        static_assert(M >= N, "aie::accum::grow: the result is shorter than the accumulator");
        accum<accfloat, M> grown;
        grown.insert(i, *this);
        return grown;
    }

    template <unsigned M> HOSTAPI_INLINE accum<accfloat, M> extract(unsigned i) const {
        hostapi::require_range("aie::accum::extract", "part", i, 0, N / M - 1);
        accum<accfloat, M> part;
        std::memcpy(part.raw(), raw() + i * M, M * sizeof(float));
        part.defined_ = defined_.template part<M>(i * M);
        return part;
    }

    template <unsigned M> HOSTAPI_INLINE accum &insert(unsigned i, const accum<accfloat, M> &part) {
        hostapi::require_range("aie::accum::insert", "part", i, 0, N / M - 1);
        std::memcpy(raw() + i * M, part.raw(), M * sizeof(float));
        defined_.assign(i * M, part.defined_);
        return *this;
    }

    /// The same as a type of the compiler, such as v16int32.
    template <class V = accum> hostapi::Native<V> to_native() const { return *this; }

    // The rest serves the other headers of the stand-in; real accumulators do not have it.
    HOSTAPI_INLINE float *raw() { return lanes_.data(); }
    HOSTAPI_INLINE const float *raw() const { return lanes_.data(); }
    HOSTAPI_INLINE float *write() {
        defined_.set_all();
        return raw();
    }
    HOSTAPI_INLINE const float *read(const char *call) const {
        if (!defined_.complete()) [[unlikely]]
            hostapi::fail_undefined(call, "accumulator", defined_.first_missing());
        return raw();
    }

    template <class T> HOSTAPI_INLINE auto narrowed(const char *call, int shift) const {
        static_assert(hostapi::is_float<T> || std::is_same_v<T, bfp16ebs8>,
                      "aie::accum: accfloat becomes float, bfloat16 or bfp16ebs8; use to_fixed for integers");
        hostapi::require_range(call, "shift of a float", shift, 0, 0);
        const float *in = read(call);
        if constexpr (std::is_same_v<T, bfp16ebs8>) {
            block_vector<bfp16ebs8, N> v;
            hostapi::encode<N>(call, in, v.write());
            return v;
        } else {
            vector<T, N> v;
            hostapi::narrow_floats<T, N>(in, v.write());
            return v;
        }
    }

    template <class, unsigned> friend class accum;

  private:
    alignas(64) std::array<float, N> lanes_;
    hostapi::Lanes<N> defined_;
};

}  // namespace aie
