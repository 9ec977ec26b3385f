// aie::mmul of bfp16ebs8, in accumulators of 32-bit floating point (AIE2P).
//
// The eight products of a pair of blocks are summed exactly, then join the accumulator with one rounding.
#pragma once

#include "float_mmul.hpp"

namespace aie {

/// Block floats for B, and for A these or bfloat16, which is converted by the rounding mode at each product.
template <unsigned M, unsigned K, unsigned N, class T, class Tag>
    requires(std::is_same_v<T, bfp16ebs8> || std::is_same_v<T, bfloat16>)
struct mmul<M, K, N, T, bfp16ebs8, Tag> : hostapi::FloatMmul<M, K, N> {
    static_assert(arch::version >= 21 && M == 8 && K == 8 && (N == 8 || (N == 16 && std::is_same_v<T, bfp16ebs8>)),
                  "aie::mmul: bfp16ebs8 has the shapes 8x8x8 and 8x8x16, with A of bfloat16 8x8x8, on AIE2P only");
    static_assert(std::is_same_v<Tag, accauto> || std::is_same_v<Tag, accfloat>,
                  "aie::mmul: bfp16ebs8 accumulates in accfloat");
    using Base = hostapi::FloatMmul<M, K, N>;
    using Base::Base;
    using operand = std::conditional_t<std::is_same_v<T, bfloat16>, vector<bfloat16, Base::size_A>,
                                       block_vector<bfp16ebs8, Base::size_A>>;
    using operand_b = block_vector<bfp16ebs8, Base::size_B>;

    /// C = A * B. b: op_transpose of a block vector that holds B as N rows of K, grouped along K as A is.
    template <class VB> HOSTAPI_INLINE void mul(const operand &a, const VB &b) {
        multiply("aie::mmul::mul", a, b, true);
    }
    template <class VB> HOSTAPI_INLINE void mac(const operand &a, const VB &b) {
        multiply("aie::mmul::mac", a, b, false);
    }

  private:
    template <class VB> HOSTAPI_INLINE void multiply(const char *call, const operand &a, const VB &b, bool afresh) {
        static_assert(std::is_same_v<VB, transposed_operand<operand_b>>,
                      "aie::mmul: operand B of bfp16ebs8 is stored N x K and passed by aie::op_transpose");
        const auto &right = b.value.read(call);
        if constexpr (std::is_same_v<T, bfloat16>)
            hostapi::mac_blocks(this->started(afresh), hostapi::blocks_of_rows<M>(call, a.read(call), 1, 8), right);
        else if constexpr (N == 8)
            hostapi::mac_blocks(this->started(afresh), a.read(call), right);
        else
            hostapi::mac_wide_blocks(this->started(afresh), a.read(call), right);
    }
};

}  // namespace aie
