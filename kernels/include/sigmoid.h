// The logistic function of bfloat16's arguments, in fixed point: what SiLU and GELU multiply with.
//
// sigmoid(z) = 1 / (1 + e) for z >= 0 and e / (1 + e) below, with e = 2^-|z log2(e)|:
//   1. 127 - |z| log2(e), with 16 bits of fraction, is e's exponent and the place between two powers of two;
//   2. 2^f - 1 by a cubic (exp2.h), which together are e as a float; float addition makes 1 + e;
//   3. its inverse by a quadratic (1.0e-2 at most) and a step of Newton's, which leaves 1.1e-4 and never exceeds it;
//   4. of e / (1 + e) the product of both, shifted up where it is below 1/2; rounded to bfloat16, to nearest even.
// Arguments are cut to 2^-12 to 87, so that e is a normal number below 1. Every step is exact or rounded as told, so
// all implementations give the same bits. The core's own exponential and inverse are not used: what they round to is
// not published.
//
// Cost (modelled, not measured): a vector of 16-bit lanes takes 13 products and 14 shifts with rounding.
#pragma once

#include "exp2.h"

template <unsigned N> struct Sigmoid : private FixedPowers<N> {
    using Powers = FixedPowers<N>;
    using typename Powers::Lanes, typename Powers::Signed, typename Powers::Sums, typename Powers::Words;
    using Powers::constant, Powers::line, Powers::lower, Powers::power, Powers::product, Powers::scaled, Powers::upper;
    using Powers::words;

    /// sigmoid of lanes of z = a.
    static Lanes of_itself(const Lanes &a) {
        const Lanes t = magnitude(a, 0x42ae).template cast_to<bfloat16>();
        // log2(e) in two bfloat16 parts
        const auto high = aie::msc(constant(255.0F), t, aie::broadcast<bfloat16, N>(1.4453125F));
        const Sums w = aie::msc(high, t, aie::broadcast<bfloat16, N>(-0.00262451171875F));
        return at(aie::sub(upper(w), words(0x4300)), lower(w), a);
    }

    /// sigmoid of lanes of z = 2 sqrt(2 / pi) (a + 0.044715 a^3): a times it is GELU's tanh form.
    static Lanes of_gelu(const Lanes &a) {
        const Lanes t = magnitude(a, 0x411e).template cast_to<bfloat16>();
        // 2048 + t has 12 bits of fraction; the integers below are t / 2^-12, t^2 / 2^-9, and their polynomial / 2^-12
        const Words fixed = lower(aie::mac(constant(2048.0F), t, aie::broadcast<bfloat16, N>(1.0F)));
        const Words square = product(fixed, fixed).template to_vector<uint16>(15);
        const Words cubic = product(square, words(53971)).template to_vector<uint16>(16);
        const typename Powers::Wide whole(words(127), 24);
        const auto rest = aie::msc(whole, fixed, aie::add(cubic, words(9430)));
        const auto parts = rest.template to_vector<int32>(8).template cast_to<uint16>();
        return at(aie::filter_odd(parts), aie::filter_even(parts), a);
    }

  private:
    static Words magnitude(const Lanes &a, unsigned most) {
        const Words bits = aie::bit_and(a.template cast_to<uint16>(), words(0x7fff));
        return aie::max(aie::min(bits, words(most)), words(0x3980));
    }
    /// sigmoid(a) of a's sign, for e = 2^(exponent - 127 + fraction / 2^16).
    static Lanes at(const Words &exponent, const Words &fraction, const Lanes &a) {
        const Signed behind = power(fraction);
        const Sums e(scaled(exponent, behind).template to_vector<int32>(0).template cast_to<float>());
        const auto one = aie::broadcast<bfloat16, N>(1.0F);
        const auto bits = aie::mac(e, one, one).template to_vector<float>().template cast_to<int32>();
        const auto cut = aie::bit_and(bits, aie::broadcast<int32, N>(0x7fffff00));
        const Words whole = aie::accum<acc64, N>(cut).template to_vector<uint16>(8);  // 1 + e, 15 bits of fraction
        const Signed first = line(aie::broadcast<int16, N>(10592), whole, 16, 0x10000 - 23831);
        const Words guess = line(first, whole, 14, 17377 << 2).template cast_to<uint16>();
        const auto left = aie::msc(aie::zeros<acc64, N>(), guess, whole).template to_vector<uint16>(15);
        const Words inverse = product(guess, left).template to_vector<uint16>(14);
        const Words mantissa = aie::add(behind.template cast_to<uint16>(), words(0x8000));
        const auto quotient = product(mantissa, inverse);
        const Words below = quotient.template to_vector<uint16>(15), above = quotient.template to_vector<uint16>(16);
        const auto larger = aie::lt(above.template cast_to<int16>(), static_cast<int16>(0));
        const Words less = aie::sub(exponent, words(1));
        const auto negative = aie::lt(a.template cast_to<int16>(), static_cast<int16>(0));
        const Words found = aie::select(inverse, aie::select(below, above, larger), negative);
        const Words by = aie::select(words(125), aie::select(aie::sub(less, words(1)), less, larger), negative);
        return scaled(by, found).template to_vector<uint16>(16).template cast_to<bfloat16>();
    }
};
