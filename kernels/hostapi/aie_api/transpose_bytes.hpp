// The transpose that kernels make in their inner loops, 8 x 8 bytes, in 12 shuffles of 16 bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include "config.hpp"

namespace hostapi {

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
typedef uint16_t Words8 __attribute__((vector_size(16)));
typedef uint32_t Longs4 __attribute__((vector_size(16)));

HOSTAPI_INLINE Words8 interleaved_rows(Bytes16 two) {
    return (Words8)__builtin_shufflevector(two, two, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
}
HOSTAPI_INLINE Longs4 low(Words8 a, Words8 b) {
    return (Longs4)__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
HOSTAPI_INLINE Longs4 high(Words8 a, Words8 b) {
    return (Longs4)__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
HOSTAPI_INLINE Longs4 low(Longs4 a, Longs4 b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
HOSTAPI_INLINE Longs4 high(Longs4 a, Longs4 b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

/// out[c][r] = in[r][c]
HOSTAPI_INLINE void transpose_8x8_bytes(const void *in, void *out) {
    Bytes16 rows[4];
    std::memcpy(rows, in, sizeof rows);
    const Words8 pair0 = interleaved_rows(rows[0]), pair1 = interleaved_rows(rows[1]);
    const Words8 pair2 = interleaved_rows(rows[2]), pair3 = interleaved_rows(rows[3]);
    const Longs4 upper_left = low(pair0, pair1), upper_right = high(pair0, pair1);
    const Longs4 lower_left = low(pair2, pair3), lower_right = high(pair2, pair3);
    const Longs4 columns[4] = {low(upper_left, lower_left), high(upper_left, lower_left),
                               low(upper_right, lower_right), high(upper_right, lower_right)};
    std::memcpy(out, columns, sizeof columns);
}

}  // namespace hostapi
