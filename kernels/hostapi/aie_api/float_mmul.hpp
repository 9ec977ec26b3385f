// aie::mmul for bfloat16 and float, in accumulators of 32-bit floating point.
//
// bfloat16: products are exact and join the sum one after another in the order of K, each rounded to nearest even; with
// AIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16, 4x8x8 and 8x8x8 of AIE2P turn their operands into bfp16ebs8 first.
// float: the same, but products round to nearest even, where the device makes them out of bfloat16 parts.
#pragma once

#include "bfp16_product.hpp"
#include "float_accum.hpp"
#include "mmul.hpp"

namespace hostapi {

/// Whether a kernel asked for products of bfloat16 by way of block floats, which AIE2P has for two shapes.
#if defined(AIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16)
inline constexpr bool by_blocks = AIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16 + 0 != 0 && aie::arch::version >= 21;
#else
inline constexpr bool by_blocks = false;
#endif

/// M x K x N of bfloat16, the same on both architectures.
constexpr bool has_bfloat16_shape(unsigned m, unsigned k, unsigned n) {
    return (m == 4 && k == 8 && (n == 4 || n == 8)) || (m == 8 && k == 8 && (n == 4 || n == 8))
           || (m == 8 && k == 1 && n == 8);
}

/// M x K x N of float, the same on both architectures.
constexpr bool has_float_shape(unsigned m, unsigned k, unsigned n) {
    return m == 4 && ((k == 8 && n == 4) || (k == 1 && (n == 4 || n == 8)));
}

template <unsigned M, unsigned K, unsigned N, class T>
HOSTAPI_INLINE void mac_floats(float *c, const T *a, const T *b) {
    alignas(64) float left[M * K], right[K * N];
    for (unsigned i = 0; i < M * K; ++i)
        left[i] = a[i];
    for (unsigned i = 0; i < K * N; ++i)
        right[i] = b[i];
    for (unsigned m = 0; m < M; ++m) {
        alignas(64) float sums[N];
        std::memcpy(sums, c + m * N, sizeof sums);
        for (unsigned k = 0; k < K; ++k)
            for (unsigned n = 0; n < N; ++n)
                sums[n] += left[m * K + k] * right[k * N + n];
        std::memcpy(c + m * N, sums, sizeof sums);
    }
}

/// What mmuls of floats share: the accumulator and whether it has begun.
template <unsigned M_, unsigned K_, unsigned N_> class FloatMmul {
  public:
    static constexpr unsigned M = M_, K = K_, N = N_;
    static constexpr unsigned size_A = M * K, size_B = K * N, size_C = M * N;  // elements
    using accum_type = aie::accum<accfloat, size_C>;

    FloatMmul() {}
    FloatMmul(const accum_type &acc) : acc_(acc), started_(true) { acc.read("aie::mmul::mmul"); }
    template <class T> FloatMmul(const aie::vector<T, size_C> &v, int shift = 0) : acc_(v, shift), started_(true) {}

    accum_type to_accum() const {
        require_started("aie::mmul::to_accum");
        return acc_;
    }
    operator accum_type() const { return to_accum(); }

    template <class T> HOSTAPI_INLINE auto to_vector(int shift = 0) const {
        static_assert(is_float<T>, "aie::mmul: to_vector gives float or bfloat16; for bfp16ebs8 use to_accum first");
        require_started("aie::mmul::to_vector");
        return acc_.template narrowed<T>("aie::mmul::to_vector", shift);
    }

  protected:
    HOSTAPI_INLINE float *started(bool afresh) {
        if (afresh || !started_)
            acc_ = aie::zeros<accfloat, size_C>();
        started_ = true;
        return acc_.raw();
    }

  private:
    HOSTAPI_INLINE void require_started(const char *call) const {
        if (!started_) [[unlikely]]
            fail(call, "the accumulator is uninitialised: no mul, mac or initial value came before");
    }

    accum_type acc_;
    bool started_ = false;
};

}  // namespace hostapi

namespace aie {

template <unsigned M, unsigned K, unsigned N, class T, class Tag>
    requires hostapi::is_float<T>
struct mmul<M, K, N, T, T, Tag> : hostapi::FloatMmul<M, K, N> {
    static_assert(std::is_same_v<T, float> || hostapi::has_bfloat16_shape(M, K, N),
                  "aie::mmul: bfloat16 has the shapes 4x8x4, 4x8x8, 8x8x4, 8x8x8 and 8x1x8");
    static_assert(std::is_same_v<T, bfloat16> || hostapi::has_float_shape(M, K, N),
                  "aie::mmul: float has the shapes 4x8x4, 4x1x4 and 4x1x8");
    static_assert(std::is_same_v<Tag, accauto> || std::is_same_v<Tag, accfloat>,
                  "aie::mmul: floats accumulate in accfloat");
    using Base = hostapi::FloatMmul<M, K, N>;
    using Base::Base;

    template <class VA, class VB> HOSTAPI_INLINE void mul(const VA &a, const VB &b) {
        multiply("aie::mmul::mul", a, b, true);
    }
    template <class VA, class VB> HOSTAPI_INLINE void mac(const VA &a, const VB &b) {
        multiply("aie::mmul::mac", a, b, false);
    }

  private:
    template <class VA, class VB>
    HOSTAPI_INLINE void multiply(const char *call, const VA &a, const VB &b, bool afresh) {
        static_assert(std::is_same_v<VA, vector<T, Base::size_A>>,
                      "aie::mmul: operand A must be a vector of exactly TA with size_A = M * K lanes");
        static_assert(std::is_same_v<VB, vector<T, Base::size_B>>,
                      "aie::mmul: operand B must be a vector of exactly TB with size_B = K * N lanes");
        const T *left = a.read(call), *right = b.read(call);
        if constexpr (hostapi::by_blocks && std::is_same_v<T, bfloat16> && M >= 4 && K == 8 && N == 8)
            hostapi::mac_as_blocks<M>(call, this->started(afresh), left, right);
        else
            hostapi::mac_floats<M, K, N>(this->started(afresh), left, right);
    }
};

}  // namespace aie
