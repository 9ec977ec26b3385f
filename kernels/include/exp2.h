// Powers of two in fixed point, for lanes of bfloat16: what the logistic function and softmax are made of.
//
// Of 2^(w - 127), w with 16 bits of fraction: the integer is the biased exponent of a float, and a cubic of the fraction
// f (1.0e-4 of 2^f at most) is what its mantissa has beside 1. Every step is exact or rounded as told, so all
// implementations give the same bits.
#pragma once

#include "arch.h"

template <unsigned N> struct FixedPowers {
    using Sums = aie::accum<accfloat, N>;
    using Words = aie::vector<uint16, N>;
    using Signed = aie::vector<int16, N>;
    using Lanes = aie::vector<bfloat16, N>;
    using Wide = aie::accum<acc64, N>;

    static Words words(unsigned value) { return aie::broadcast<uint16, N>(static_cast<uint16>(value)); }
    static Sums constant(float value) {
        return aie::mul(aie::broadcast<bfloat16, N>(value), aie::broadcast<bfloat16, N>(1.0F));
    }
    template <class A, class B> static Wide product(const A &a, const B &b) {
        return aie::mac(aie::zeros<acc64, N>(), a, b);
    }
    static Words lower(const Sums &w) {
        return aie::filter_even(w.template to_vector<float>().template cast_to<uint16>());
    }
    static Words upper(const Sums &w) {
        return aie::filter_odd(w.template to_vector<float>().template cast_to<uint16>());
    }
    /// A line at lanes of 16 fraction bits: h x / 2^shift + c.
    template <class H> static Signed line(const H &h, const Words &x, int shift, unsigned c) {
        const Words found = product(h, x).template to_vector<int16>(shift).template cast_to<uint16>();
        return aie::add(found, words(c)).template cast_to<int16>();
    }
    /// 2^f - 1, with 15 bits of fraction.
    static Signed power(const Words &fraction) {
        const Signed slope = line(line(aie::broadcast<int16, N>(2557), fraction, 16, 7424), fraction, 16, 22786);
        return product(slope, fraction).template to_vector<int16>(16);
    }
    /// Numbers of a biased exponent, and of a mantissa from 1 to 2 of which 23 bits are behind the point.
    template <class Mantissa> static Wide scaled(const Words &exponent, const Mantissa &mantissa) {
        return aie::mac(Wide(exponent, 23), mantissa, words(256));
    }
};
