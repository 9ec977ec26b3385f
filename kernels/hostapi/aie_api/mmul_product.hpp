// The product behind aie::mmul on the host: C += A * B on row-major blocks, wrapping in the accumulator's width.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "config.hpp"

namespace hostapi {

/// The meaning: plain loops.
template <unsigned M, unsigned K, unsigned N, class Acc, class A, class B>
HOSTAPI_INLINE void mac_plain(Acc *c, const A *a, const B *b) {
    using Unsigned = std::make_unsigned_t<Acc>;
    alignas(64) Unsigned right[K * N];
    for (unsigned i = 0; i < K * N; ++i)
        right[i] = static_cast<Unsigned>(b[i]);
    for (unsigned m = 0; m < M; ++m) {
        alignas(64) Unsigned sums[N];
        std::memcpy(sums, c + m * N, sizeof sums);
        for (unsigned k = 0; k < K; ++k) {
            const auto left = static_cast<Unsigned>(a[m * K + k]);
            for (unsigned n = 0; n < N; ++n)
                sums[n] += left * right[k * N + n];
        }
        std::memcpy(c + m * N, sums, sizeof sums);
    }
}

#if defined(__SSE2__) && !defined(HOSTAPI_PLAIN)
#define HOSTAPI_PAIRS 1

#if defined(__AVX2__)
inline constexpr unsigned pair_lanes = 8;
#else
inline constexpr unsigned pair_lanes = 4;
#endif
typedef int16_t Pairs __attribute__((vector_size(4 * pair_lanes)));
typedef int32_t PairSums __attribute__((vector_size(4 * pair_lanes)));
typedef uint32_t Sums __attribute__((vector_size(4 * pair_lanes)));

HOSTAPI_INLINE Sums multiply_pairs(Pairs x, Pairs y) {
#if defined(__AVX2__)
    return (Sums)__builtin_ia32_pmaddwd256(x, y);
#else
    return (Sums)__builtin_ia32_pmaddwd128(x, y);
#endif
}

/// 8-bit operands: pmaddwd takes two steps of K at once, exact because |a * b| <= 255 * 255.
template <unsigned M, unsigned K, unsigned N, class A, class B>
HOSTAPI_INLINE void mac_pairs(int32_t *c, const A *a, const B *b) {
    static_assert(sizeof(A) == 1 && sizeof(B) == 1 && K % 2 == 0 && N % pair_lanes == 0);
    alignas(64) int16_t left[M * K];
    alignas(64) int16_t right[K / 2][N][2];
    for (unsigned i = 0; i < M * K; ++i)
        left[i] = a[i];
    for (unsigned p = 0; p < K / 2; ++p)
        for (unsigned n = 0; n < N; ++n) {
            right[p][n][0] = b[2 * p * N + n];
            right[p][n][1] = b[(2 * p + 1) * N + n];
        }
    for (unsigned n = 0; n < N; n += pair_lanes)
        for (unsigned m = 0; m < M; ++m) {
            Sums sums;
            std::memcpy(&sums, c + m * N + n, sizeof sums);
            for (unsigned p = 0; p < K / 2; ++p) {
                int32_t pair;
                Pairs columns;
                std::memcpy(&pair, left + m * K + 2 * p, sizeof pair);
                std::memcpy(&columns, right[p][n], sizeof columns);
                sums += multiply_pairs((Pairs)(pair - PairSums{}), columns);
            }
            std::memcpy(c + m * N + n, &sums, sizeof sums);
        }
}
#endif

template <unsigned M, unsigned K, unsigned N, class Acc, class A, class B>
HOSTAPI_INLINE void mac_block(Acc *c, const A *a, const B *b) {
#if defined(HOSTAPI_PAIRS)
    if constexpr (sizeof(Acc) == 4 && sizeof(A) == 1 && sizeof(B) == 1 && K % 2 == 0 && N % pair_lanes == 0)
        mac_pairs<M, K, N>(c, a, b);
    else
        mac_plain<M, K, N>(c, a, b);
#else
    mac_plain<M, K, N>(c, a, b);
#endif
}

}  // namespace hostapi
