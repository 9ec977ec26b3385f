// Functions of N lanes of bfloat16, rounded to bfloat16 after each operation: elementwise_bf16 and gate_i32_bf16.
//
// elementwise_bf16.cc tells what each of them makes of special values, sigmoid.h how near its sigmoids are.
#pragma once

#include "sigmoid.h"

namespace functions_of_bf16 {

template <unsigned N> using Lanes = aie::vector<bfloat16, N>;

template <unsigned N> struct add {
    static Lanes<N> of(const Lanes<N> &a, const Lanes<N> &b) { return aie::add(a, b); }
};

template <unsigned N> struct mul {
    static Lanes<N> of(const Lanes<N> &a, const Lanes<N> &b) { return aie::mul(a, b).template to_vector<bfloat16>(); }
};

template <unsigned N> struct relu2 {
    static Lanes<N> of(const Lanes<N> &a) {
        // A float is negative when its bits are as an integer, and the core compares integers in one instruction.
        const auto bits = aie::max(a.template cast_to<int16>(), aie::zeros<int16, N>());
        const auto gate = bits.template cast_to<bfloat16>();
        return mul<N>::of(gate, gate);
    }
};

template <unsigned N> struct silu {
    static Lanes<N> of(const Lanes<N> &a) { return mul<N>::of(a, Sigmoid<N>::of_itself(a)); }
};

template <unsigned N> struct gelu {
    static Lanes<N> of(const Lanes<N> &a) { return mul<N>::of(a, Sigmoid<N>::of_gelu(a)); }
};

/// A function of one operand, times another one.
template <template <unsigned> class Function, unsigned N> struct gate {
    static Lanes<N> of(const Lanes<N> &a, const Lanes<N> &b) { return mul<N>::of(Function<N>::of(a), b); }
};
template <unsigned N> using relu2_gate = gate<relu2, N>;
template <unsigned N> using silu_gate = gate<silu, N>;
template <unsigned N> using gelu_gate = gate<gelu, N>;

}  // namespace functions_of_bf16
