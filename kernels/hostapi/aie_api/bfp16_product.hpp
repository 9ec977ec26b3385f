// The 8 x 8 x 8 product of bfp16ebs8 on the host: C += A * B^T, C rounded once for each pair of blocks.
#pragma once

#include "bfp16.hpp"
#include "mmul_product.hpp"

namespace hostapi {

/// Any exponents. The product of mantissas is exact; its scale is applied in double, which rounds nothing away.
[[gnu::noinline]] inline void mac_blocks_wide(float *c, const Blocks<64> &a, const Blocks<64> &b) {
    for (unsigned m = 0; m < 8; ++m)
        for (unsigned n = 0; n < 8; ++n) {
            int dot = 0;
            for (unsigned k = 0; k < 8; ++k)
                dot += a.mantissas[m * 8 + k] * b.mantissas[n * 8 + k];
            c[m * 8 + n] += static_cast<float>(std::ldexp(dot, a.exponents[m] + b.exponents[n] - 2 * mantissa_bias));
        }
}

/// 2^(E - 133) for each block. False when a product of two might leave the normal floats, or a factor does.
HOSTAPI_INLINE bool block_scales(const uint8_t *exponents, float *scales) {
    // With 70 <= E <= 185 a product lies in 2^-126 ... 2^104, times a sum of at most 2^17. 0 is a block of zeros.
    bool normal = true;
    for (unsigned i = 0; i < 8; ++i) {
        const uint32_t exponent = exponents[i] == 0 ? 127u : exponents[i];
        normal &= exponent >= 70 && exponent <= 185;
        scales[i] = std::bit_cast<float>((exponent - 6) << 23);
    }
    return normal;
}

/// Blocks whose exponent is 0 hold zeros, unless they were not made by `encode`.
HOSTAPI_INLINE bool zero_where_exponent_is(const Blocks<64> &blocks) {
    uint64_t rest = 0;
    for (unsigned i = 0; i < 8; ++i) {
        uint64_t mantissas;
        std::memcpy(&mantissas, blocks.mantissas + 8 * i, 8);
        rest |= blocks.exponents[i] == 0 ? mantissas : 0;
    }
    return rest == 0;
}

#if defined(HOSTAPI_PAIRS)
/// Mantissas of B, 8 columns of 8, as pairs of steps of K: [K/2][column][2].
HOSTAPI_INLINE void pair_columns(const int8_t *columns, int16_t *pairs) {
    typedef uint16_t Words __attribute__((vector_size(16)));  // two columns
    typedef int8_t Bytes __attribute__((vector_size(16)));
    typedef int16_t Shorts __attribute__((vector_size(32)));
    Words w[4];
    std::memcpy(w, columns, sizeof w);
    const auto early = [](Words x, Words y) { return __builtin_shufflevector(x, y, 0, 4, 8, 12, 1, 5, 9, 13); };
    const auto late = [](Words x, Words y) { return __builtin_shufflevector(x, y, 2, 6, 10, 14, 3, 7, 11, 15); };
    const Words quads[4] = {early(w[0], w[1]), early(w[2], w[3]), late(w[0], w[1]), late(w[2], w[3])};
    for (unsigned p = 0; p < 4; ++p) {
        const Words low = quads[p / 2 * 2], high = quads[p / 2 * 2 + 1];
        const Words line = p % 2 == 0 ? __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11)
                                      : __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
        const Shorts wide = __builtin_convertvector((Bytes)line, Shorts);
        std::memcpy(pairs + 16 * p, &wide, sizeof wide);
    }
}

inline void add_products(float *c, const int8_t *a, const int8_t *b, const float *rows, const float *columns) {
    typedef float Floats __attribute__((vector_size(4 * pair_lanes)));
    alignas(64) int16_t left[64], right[4][16];
    for (unsigned i = 0; i < 64; ++i)
        left[i] = a[i];
    pair_columns(b, right[0]);
    for (unsigned n = 0; n < 8; n += pair_lanes) {
        Floats scales;
        std::memcpy(&scales, columns + n, sizeof scales);
        for (unsigned m = 0; m < 8; ++m) {
            Sums dots{};
            for (unsigned p = 0; p < 4; ++p) {
                int32_t pair;
                Pairs steps;
                std::memcpy(&pair, left + m * 8 + 2 * p, sizeof pair);
                std::memcpy(&steps, right[p] + 2 * n, sizeof steps);
                dots += multiply_pairs((Pairs)(pair - PairSums{}), steps);
            }
            Floats sums;
            std::memcpy(&sums, c + m * 8 + n, sizeof sums);
            sums += __builtin_convertvector((PairSums)dots, Floats) * (scales * rows[m]);
            std::memcpy(c + m * 8 + n, &sums, sizeof sums);
        }
    }
}
#else
inline void add_products(float *c, const int8_t *a, const int8_t *b, const float *rows, const float *columns) {
    for (unsigned m = 0; m < 8; ++m)
        for (unsigned n = 0; n < 8; ++n) {
            int32_t dot = 0;
            for (unsigned k = 0; k < 8; ++k)
                dot += a[m * 8 + k] * b[n * 8 + k];
            c[m * 8 + n] += static_cast<float>(dot) * (rows[m] * columns[n]);
        }
}
#endif

inline void mac_blocks(float *c, const Blocks<64> &a, const Blocks<64> &b) {
    alignas(64) float rows[8], columns[8];
    const bool normal_a = block_scales(a.exponents, rows), normal_b = block_scales(b.exponents, columns);
    if (!normal_a || !normal_b || !zero_where_exponent_is(a) || !zero_where_exponent_is(b)) [[unlikely]]
        return mac_blocks_wide(c, a, b);
    add_products(c, a.mantissas, b.mantissas, rows, columns);
}

/// 8 x 8 x 16: C has 16 columns, its two halves are products of 8 x 8 x 8.
inline void mac_wide_blocks(float *c, const Blocks<64> &a, const Blocks<128> &b) {
    for (unsigned half = 0; half < 2; ++half) {
        Blocks<64> columns;
        std::memcpy(columns.mantissas, b.mantissas + 64 * half, 64);
        std::memcpy(columns.exponents, b.exponents + 8 * half, 8);
        alignas(64) float sums[64];
        for (unsigned row = 0; row < 8; ++row)
            std::memcpy(sums + 8 * row, c + 16 * row + 8 * half, 32);
        mac_blocks(sums, a, columns);
        for (unsigned row = 0; row < 8; ++row)
            std::memcpy(c + 16 * row + 8 * half, sums + 8 * row, 32);
    }
}

/// Rows of eight bfloat16 as block floats; rows that are not there are 0.
template <unsigned Rows>
Blocks<64> blocks_of_rows(const char *call, const bfloat16 *rows, unsigned along, unsigned across) {
    alignas(64) float values[64] = {};
    for (unsigned row = 0; row < Rows; ++row)
        for (unsigned i = 0; i < 8; ++i)
            values[8 * row + i] = rows[row * across + i * along];
    Blocks<64> blocks;
    encode(call, values, blocks);
    return blocks;
}

/// c += a * b, M x 8 by 8 x 8, both as block floats along K.
template <unsigned M> void mac_as_blocks(const char *call, float *c, const bfloat16 *a, const bfloat16 *b) {
    alignas(64) float sums[64] = {};
    std::memcpy(sums, c, M * 8 * sizeof(float));
    mac_blocks(sums, blocks_of_rows<M>(call, a, 1, 8), blocks_of_rows<8>(call, b, 8, 1));
    std::memcpy(c, sums, M * 8 * sizeof(float));
}

}  // namespace hostapi
