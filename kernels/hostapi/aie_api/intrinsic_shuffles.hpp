// shuffle(a, b, mode): a register's lanes, or those of a pair, as a matrix that is turned.
//
// A mode T<bits>_<rows>x<columns> reads rows x columns elements row by row and gives them column by column: in groups
// of one register, or of the pair a, b where _lo and _hi name the half that is asked for. The device numbers them.
#pragma once

#include "intrinsics.hpp"

struct ShuffleMode {
    unsigned bits, rows, columns;
    int half;  // of a pair, -1 for groups of one register
};

#define HOSTAPI_PAIR(bits, rows, columns)                                                                 \
    inline constexpr ShuffleMode T##bits##_##rows##x##columns##_lo{bits, rows, columns, 0};               \
    inline constexpr ShuffleMode T##bits##_##rows##x##columns##_hi{bits, rows, columns, 1};
HOSTAPI_PAIR(8, 64, 2) HOSTAPI_PAIR(16, 32, 2) HOSTAPI_PAIR(32, 16, 2) HOSTAPI_PAIR(64, 8, 2) HOSTAPI_PAIR(128, 4, 2)
HOSTAPI_PAIR(256, 2, 2) HOSTAPI_PAIR(128, 2, 4) HOSTAPI_PAIR(64, 2, 8) HOSTAPI_PAIR(32, 2, 16) HOSTAPI_PAIR(16, 2, 32)
HOSTAPI_PAIR(8, 2, 64) HOSTAPI_PAIR(512, 1, 2) HOSTAPI_PAIR(16, 16, 4) HOSTAPI_PAIR(16, 4, 16)
HOSTAPI_PAIR(32, 8, 4) HOSTAPI_PAIR(32, 4, 8)
#if __AIE_ARCH__ >= 21
HOSTAPI_PAIR(16, 8, 8)
#endif
#undef HOSTAPI_PAIR

#define HOSTAPI_GROUP(bits, rows, columns) \
    inline constexpr ShuffleMode T##bits##_##rows##x##columns{bits, rows, columns, -1};
HOSTAPI_GROUP(16, 8, 4) HOSTAPI_GROUP(16, 4, 8) HOSTAPI_GROUP(32, 4, 4) HOSTAPI_GROUP(8, 8, 8) HOSTAPI_GROUP(8, 16, 4)
HOSTAPI_GROUP(8, 4, 16) HOSTAPI_GROUP(16, 4, 4) HOSTAPI_GROUP(16, 4, 2) HOSTAPI_GROUP(16, 2, 4) HOSTAPI_GROUP(16, 8, 2)
HOSTAPI_GROUP(16, 2, 8) HOSTAPI_GROUP(16, 16, 2) HOSTAPI_GROUP(16, 2, 16) HOSTAPI_GROUP(8, 8, 4) HOSTAPI_GROUP(8, 4, 8)
#if __AIE_ARCH__ >= 21
HOSTAPI_GROUP(32, 8, 2) HOSTAPI_GROUP(32, 2, 8)
#endif
#undef HOSTAPI_GROUP

namespace hostapi {

/// Elements of `bytes` bytes: one by one, `source(i)` of `in` becomes element i of `out`.
template <class F> void move_elements(const uint8_t *in, uint8_t *out, unsigned bytes, unsigned count, F source) {
    for (unsigned i = 0; i < count; ++i)
        std::memcpy(out + i * bytes, in + source(i) * bytes, bytes);
}

}  // namespace hostapi

template <hostapi::lanes A>
    requires(hostapi::api_t<A>::bits() == 512)
auto shuffle(const A &a, const hostapi::Native<hostapi::api_t<A>> &b, ShuffleMode mode) {
    alignas(64) uint8_t pair[128];
    std::memcpy(pair, hostapi::native(hostapi::api(a)).bytes, 64);
    std::memcpy(pair + 64, b.bytes, 64);
    const unsigned elements = mode.rows * mode.columns, bytes = mode.bits / 8, count = 64 / bytes;
    const unsigned first = mode.half > 0 ? count : 0;
    hostapi::Native<hostapi::api_t<A>> out;
    hostapi::move_elements(pair, out.bytes, bytes, count, [&](unsigned i) {
        const unsigned at = (first + i) % elements, group = (first + i) / elements;
        return group * elements + at % mode.rows * mode.columns + at / mode.rows;
    });
    return out;
}
template <hostapi::lanes A> auto shuffle(const A &a, ShuffleMode mode) { return shuffle(a, a, mode); }
