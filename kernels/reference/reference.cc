// Plain references of the integer kernels, with their contracts: operand layouts, parts, narrow and scaled C.
//
// MICRO_R, MICRO_S, MICRO_T give the micro-tile (default 8); what kernels take as macros counts here too.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "../include/dims.h"
#include "places.h"

#ifndef MICRO_R
#define MICRO_R 8
#endif
#ifndef MICRO_S
#define MICRO_S 8
#endif
#ifndef MICRO_T
#define MICRO_T 8
#endif
#ifndef SHIFT
#define SHIFT 0
#endif

namespace {

/// Place in A of one part.
unsigned place_a(unsigned row, unsigned depth) {
    return (row / MICRO_R * (DIM_K / MICRO_S) + depth / MICRO_S) * MICRO_R * MICRO_S
           + within(row, depth, MICRO_R, MICRO_S, a_transposed);
}

unsigned place_b(unsigned depth, unsigned column, bool transposed) {
    return (column / MICRO_T * (DIM_K / MICRO_S) + depth / MICRO_S) * MICRO_S * MICRO_T
           + within(depth, column, MICRO_S, MICRO_T, transposed);
}

unsigned place_c(unsigned row, unsigned column) {
    return (row / MICRO_R * (DIM_N / MICRO_T) + column / MICRO_T) * MICRO_R * MICRO_T
           + within(row, column, MICRO_R, MICRO_T, c_transposed);
}

unsigned field(unsigned column) { return column / MICRO_T % 4; }

int dense(const int8_t *b, unsigned depth, unsigned column) { return b[place_b(depth, column, b_transposed)]; }

int nibble(const uint8_t *b, unsigned depth, unsigned column) {
    const unsigned place = place_b(depth, column, false);
    const int code = b[place / 2] >> (4 * (place % 2)) & 15;
    return code < 8 ? code : code - 16;
}

/// Scaled by 4^field.
int ternary(const uint8_t *b, unsigned depth, unsigned column) {
    const unsigned quad = column / (4 * MICRO_T);
    const unsigned place = (quad * (DIM_K / MICRO_S) + depth / MICRO_S) * MICRO_S * MICRO_T
                           + depth % MICRO_S * MICRO_T + column % MICRO_T;
    return ((b[place] >> (2 * field(column)) & 3) - 1) << (2 * field(column));
}

/// sum / 2^shift, to the nearest, ties to even; then clamped to T.
template <class T> T narrowed(int64_t sum, unsigned shift) {
    const int64_t low = sum >> shift, rest = sum - (low << shift), half = (int64_t{1} << shift) / 2;
    const int64_t rounded = low + (shift > 0 && (rest > half || (rest == half && low % 2 != 0)));
    const int64_t highest = (int64_t{1} << (8 * sizeof(T) - 1)) - 1;
    return static_cast<T>(std::clamp(rounded, -highest - 1, highest));
}

template <class B, class C, class Weight>
void multiply(const int8_t *a, const B *b, C *c, int32_t part, Weight weight) {
    constexpr unsigned shift = sizeof(C) < 4 ? SHIFT : 0;
    for (unsigned row = 0; row < tile_rows; ++row)
        for (unsigned column = 0; column < DIM_N; ++column) {
            int64_t sum = 0;
            for (unsigned depth = 0; depth < DIM_K; ++depth)
                sum += a[place_a(row, depth)] * weight(b, depth, column);
            C &at = c[place_c(part * tile_rows + row, column)];
            if constexpr (sizeof(C) < 4)
                at = narrowed<C>((int64_t{at} << shift) + sum, shift);
            else
                at = static_cast<C>(static_cast<uint32_t>(at) + static_cast<uint32_t>(sum));  // wraps
        }
}

#ifdef FIELD_SCALED
constexpr bool field_scaled = true;
#else
constexpr bool field_scaled = false;
#endif
#ifdef RELU
constexpr bool relu = true;
#else
constexpr bool relu = false;
#endif
#ifdef BIAS
#define BIAS_PARAMETER const int32_t *bias,
constexpr bool biased = true;
#else
#define BIAS_PARAMETER
constexpr bool biased = false;
constexpr const int32_t *bias = nullptr;
#endif

/// In place: a result never lies behind the sum that it is made of.
template <class Out> void finish(const int32_t *bias, int32_t *c) {
    unsigned column_at[DIM_M * DIM_N];
    for (unsigned row = 0; row < DIM_M; ++row)
        for (unsigned column = 0; column < DIM_N; ++column)
            column_at[place_c(row, column)] = column;
    auto *bytes = reinterpret_cast<char *>(c);
    for (unsigned place = 0; place < DIM_M * DIM_N; ++place) {
        const unsigned column = column_at[place], scale = field_scaled ? 2 * field(column) : 0;
        const int64_t added = biased ? narrowed<int32_t>(int64_t{bias[column]} << scale, 0) : 0;
        const auto sum = static_cast<int32_t>(c[place] + added);  // wraps
        const Out result = narrowed<Out>(sum, SHIFT + scale);
        const Out shown = relu && result < 0 ? Out{0} : result;
        std::memcpy(bytes + place * sizeof(Out), &shown, sizeof shown);
    }
}

template <class C> void clear(C *c) {
    for (unsigned i = 0; i < DIM_M * DIM_N; ++i)
        c[i] = 0;
}

}  // namespace

extern "C" {

#define MULTIPLY(name, type_b, type_c, weight)                                    \
    void name##_ref(const int8_t *a, const type_b *b, type_c *c PART_PARAMETER) { \
        multiply(a, b, c, part, weight);                                          \
    }
MULTIPLY(mm_i8_i8_i8, int8_t, int8_t, dense)
MULTIPLY(mm_i8_i8_i16, int8_t, int16_t, dense)
MULTIPLY(mm_i8_i8_i32, int8_t, int32_t, dense)
MULTIPLY(mm_i8_i4_i16, uint8_t, int16_t, nibble)
MULTIPLY(mm_i8_i4_i32, uint8_t, int32_t, nibble)
MULTIPLY(mm_i8_i2_i32, uint8_t, int32_t, ternary)

void zero_i8_ref(int8_t *c) { clear(c); }
void zero_i16_ref(int16_t *c) { clear(c); }
void zero_i32_ref(int32_t *c) { clear(c); }

void finish_i32_i8_ref(BIAS_PARAMETER int32_t *c) { finish<int8_t>(bias, c); }
void finish_i32_i16_ref(BIAS_PARAMETER int32_t *c) { finish<int16_t>(bias, c); }
void finish_i32_i32_ref(BIAS_PARAMETER int32_t *c) { finish<int32_t>(bias, c); }

void unscale_i32_ref(int32_t *c) {
    for (unsigned row = 0; row < DIM_M; ++row)
        for (unsigned column = 0; column < DIM_N; ++column)
            c[place_c(row, column)] >>= 2 * field(column);
}

}  // extern "C"
