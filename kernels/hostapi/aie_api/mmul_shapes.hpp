// The dense integer shapes of aie::mmul that releases 2025.1 and 2026.1 of the AIE API share, per architecture.
#pragma once

#include "config.hpp"
#include "types.hpp"

namespace hostapi {

/// Operand widths and block sizes, and the width in bits of the accumulator behind them.
struct MmulShape {
    unsigned bits_a, bits_b, m, k, n, accumulator_bits;
};

inline constexpr MmulShape mmul_shapes_aie2p[] = {
    {8, 8, 8, 8, 8, 32},   {8, 8, 4, 8, 8, 32},   {8, 8, 2, 8, 8, 32},                           //
    {8, 4, 4, 16, 16, 32},                                                                       //
    {16, 8, 8, 4, 8, 32},  {16, 8, 4, 4, 8, 32},  {16, 8, 4, 8, 8, 64},                          //
    {8, 16, 8, 2, 8, 32},  {8, 16, 4, 4, 8, 64},                                                 //
    {16, 16, 4, 2, 8, 32}, {16, 16, 8, 2, 8, 32}, {16, 16, 8, 1, 8, 32}, {16, 16, 2, 4, 8, 64},  //
    {16, 16, 4, 4, 8, 64},                                                                       //
    {32, 32, 4, 2, 8, 64}, {32, 32, 4, 4, 8, 64}, {32, 32, 4, 4, 4, 64}, {32, 32, 8, 2, 8, 64},  //
    {32, 32, 4, 1, 8, 64},
};

inline constexpr MmulShape mmul_shapes_aie2[] = {
    {8, 8, 4, 8, 8, 32},   {8, 8, 8, 8, 8, 32},   {8, 8, 2, 8, 8, 32},   {8, 8, 1, 16, 8, 32},   //
    {8, 8, 2, 16, 8, 32},  {8, 8, 4, 16, 8, 32},  {8, 8, 4, 8, 4, 64},   {8, 8, 4, 16, 4, 64},   //
    {8, 8, 8, 8, 4, 64},                                                                         //
    {8, 4, 4, 16, 8, 32},  {8, 4, 8, 16, 8, 32},  {8, 4, 4, 32, 8, 32},                          //
    {16, 8, 4, 4, 8, 32},  {16, 8, 8, 4, 8, 32},  {16, 8, 8, 4, 4, 32},  {16, 8, 4, 4, 4, 32},   //
    {16, 8, 4, 8, 4, 64},  {16, 8, 2, 8, 8, 64},                                                 //
    {8, 16, 4, 4, 8, 64},  {8, 16, 4, 4, 4, 64},                                                 //
    {16, 16, 4, 2, 8, 32}, {16, 16, 8, 2, 8, 32}, {16, 16, 8, 1, 8, 32}, {16, 16, 2, 4, 8, 64},  //
    {16, 16, 4, 4, 8, 64}, {16, 16, 4, 4, 4, 64},                                                //
    {32, 32, 4, 2, 4, 64}, {32, 32, 4, 4, 4, 64}, {32, 32, 8, 2, 4, 64}, {32, 32, 4, 1, 8, 64},
};

constexpr bool matches(const MmulShape &s, unsigned bits_a, unsigned bits_b, unsigned m, unsigned k, unsigned n) {
    return s.bits_a == bits_a && s.bits_b == bits_b && s.m == m && s.k == k && s.n == n;
}

/// Width of the accumulator of a shape, 0 if the architecture has no such shape.
constexpr unsigned mmul_accumulator_bits(unsigned bits_a, unsigned bits_b, unsigned m, unsigned k, unsigned n) {
#if __AIE_ARCH__ >= 21
    constexpr auto &shapes = mmul_shapes_aie2p;
#else
    constexpr auto &shapes = mmul_shapes_aie2;
#endif
    for (const MmulShape &shape : shapes)
        if (matches(shape, bits_a, bits_b, m, k, n))
            return shape.accumulator_bits;
    return 0;
}

}  // namespace hostapi
