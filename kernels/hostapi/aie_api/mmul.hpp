// aie::mmul: one M x K x N block product; A, B and C are row-major inside the block.
#pragma once

#include "accum.hpp"
#include "mmul_product.hpp"
#include "mmul_shapes.hpp"

namespace aie {

template <unsigned M_, unsigned K_, unsigned N_, class TA, class TB = TA, class AccTag = accauto> struct mmul {
    static constexpr unsigned accumulator_bits =
        hostapi::mmul_accumulator_bits(hostapi::element<TA>::bits, hostapi::element<TB>::bits, M_, K_, N_);
    static_assert(hostapi::element<TA>::exists && hostapi::element<TB>::exists && !hostapi::is_float<TA>
                      && !hostapi::is_float<TB>,
                  "aie::mmul: the operands must be 4, 8, 16 or 32 bit integers, both bfloat16 or both bfp16ebs8");
    static_assert(accumulator_bits != 0, "aie::mmul: this architecture has no such M x K x N for these element types; "
                                         "the legal ones are in mmul_shapes.hpp");
    static_assert(std::is_same_v<AccTag, accauto> || hostapi::accumulator<AccTag>::bits == accumulator_bits,
                  "aie::mmul: this shape accumulates in another width; leave the tag out and use mmul::accum_type");

    static constexpr unsigned M = M_, K = K_, N = N_;
    static constexpr unsigned size_A = M * K, size_B = K * N, size_C = M * N;  // elements
    using accum_type = accum<std::conditional_t<accumulator_bits == 32, acc32, acc64>, size_C>;

    /// The first mac starts from zero; until then there is nothing to read.
    mmul() {}
    mmul(const accum_type &acc) : acc_(acc), started_(true) { acc.read("aie::mmul::mmul"); }
    template <class T> mmul(const vector<T, size_C> &v, int shift = 0) : acc_(v, shift), started_(true) {}

    HOSTAPI_INLINE mmul &operator=(const accum_type &acc) {
        acc.read("aie::mmul::operator=");
        acc_ = acc;
        started_ = true;
        return *this;
    }

    /// C = A * B
    template <class VA, class VB> HOSTAPI_INLINE void mul(const VA &a, const VB &b) {
        started_ = false;
        multiply("aie::mmul::mul", a, b);
    }

    /// C += A * B
    template <class VA, class VB> HOSTAPI_INLINE void mac(const VA &a, const VB &b) {
        multiply("aie::mmul::mac", a, b);
    }

    accum_type to_accum() const {
        require_started("aie::mmul::to_accum");
        return acc_;
    }
    operator accum_type() const { return to_accum(); }

    template <class T> HOSTAPI_INLINE vector<T, size_C> to_vector(int shift = 0) const {
        require_started("aie::mmul::to_vector");
        return acc_.template narrowed<T>("aie::mmul::to_vector", shift);
    }

  private:
    HOSTAPI_INLINE void require_started(const char *call) const {
        if (!started_) [[unlikely]]
            hostapi::fail(call, "the accumulator is uninitialised: no mul, mac or initial value came before");
    }

    template <class VA, class VB> HOSTAPI_INLINE void multiply(const char *call, const VA &a, const VB &b) {
        static_assert(std::is_same_v<VA, vector<TA, size_A>>,
                      "aie::mmul: operand A must be a vector of exactly TA with size_A = M * K lanes");
        static_assert(std::is_same_v<VB, vector<TB, size_B>>,
                      "aie::mmul: operand B must be a vector of exactly TB with size_B = K * N lanes");
        if (!started_) {
            acc_ = zeros<typename accum_type::value_type, size_C>();
            started_ = true;
        }
        a.read(call);
        b.read(call);
        if constexpr (hostapi::element<TB>::bits == 4)
            hostapi::mac_block<M, K, N>(acc_.raw(), a.raw(), b.unpack().raw());
        else
            hostapi::mac_block<M, K, N>(acc_.raw(), a.raw(), b.raw());
    }

    accum_type acc_;
    bool started_ = false;
};

}  // namespace aie
