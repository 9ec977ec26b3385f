// aie::accum<accfloat, N>: lanes of 32-bit floating point, rounded to nearest even by every operation.
//
// The device sums the products of one VMAC before it rounds, and flushes subnormals; here every sum rounds and
// subnormals stay. Compare with a tolerance: docs/block_floats.md derives it.
#pragma once

#include "accum.hpp"
#include "bfp16.hpp"

namespace hostapi {

/// The one rounding mode in which narrowing floats is modelled.
HOSTAPI_INLINE void require_conv_even(const char *call) {
    if (core_state.rounding != aie::rounding_mode::conv_even) [[unlikely]]
        fail(call, "the rounding mode is not conv_even; floats are narrowed only in this mode here (the reset default "
                   "floor is biased), so call aie::set_rounding(aie::rounding_mode::conv_even) first");
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

    /// vector<float>: the bits; vector<bfloat16>: nearest even; block_vector<bfp16ebs8>: nearest even by blocks of 8.
    template <class T> HOSTAPI_INLINE auto to_vector(int shift = 0) const {
        return narrowed<T>("aie::accum::to_vector", shift);
    }

    /// The same bits as lanes of another tag.
    template <class To> auto cast_to() const { return hostapi::recast<To>(*this); }

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
            hostapi::require_conv_even(call);
            block_vector<bfp16ebs8, N> v;
            hostapi::encode<N>(call, in, v.write());
            return v;
        } else {
            vector<T, N> v;
            T *out = v.write();
            if constexpr (std::is_same_v<T, bfloat16>)
                hostapi::require_conv_even(call);
            for (unsigned i = 0; i < N; ++i)
                out[i] = static_cast<T>(in[i]);
            return v;
        }
    }

    template <class, unsigned> friend class accum;

  private:
    alignas(64) std::array<float, N> lanes_;
    hostapi::Lanes<N> defined_;
};

}  // namespace aie
