// Plain references of the floating-point products, with their contracts: layouts, parts, every rounding in its place.
//
// MICRO_R, MICRO_S, MICRO_T give the micro-tile; on AIE2P (8 x 8 x 8) products run in blocks of 8 along K.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../include/dims.h"
#include "places.h"

namespace {

constexpr bool in_blocks = MICRO_R == 8;
constexpr unsigned block = 8;

/// Bytes of one operand type; a distinct type for each, so that templates can choose.
struct Bfloat16 {
    uint16_t bits;
};
struct BlockByte {
    uint8_t byte;
};

float read(const Bfloat16 *p, unsigned place) {
    const uint32_t bits = uint32_t{p[place].bits} << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
float read(const float *p, unsigned place) { return p[place]; }
/// place counts values; a block is 9 bytes.
float read(const BlockByte *p, unsigned place) {
    const BlockByte *first = p + place / block * 9;
    return static_cast<float>(std::ldexp(static_cast<int8_t>(first[1 + place % block].byte), first[0].byte - 133));
}

/// To a multiple of 2^power, ties to even.
double nearest(double value, int power) { return std::ldexp(std::nearbyint(std::ldexp(value, -power)), power); }

bool flushed(float value) { return std::fabs(value) < 0x1p-126f; }

/// The biased exponent that eight values share, and their mantissas.
int shared_exponent(const float *values, int8_t *mantissas) {
    int shared = 0;
    for (unsigned i = 0; i < block; ++i)
        if (!flushed(values[i]))
            shared = std::max(shared, std::ilogb(values[i]) + 127);
    for (;; ++shared) {
        double highest = 0;
        for (unsigned i = 0; i < block; ++i) {
            const double value = flushed(values[i]) ? 0 : values[i];
            const double mantissa = std::nearbyint(std::ldexp(value, 133 - shared));
            highest = std::fmax(highest, mantissa);
            mantissas[i] = static_cast<int8_t>(std::clamp(mantissa, shared < 254 ? -128.0 : -127.0, 127.0));
        }
        if (highest <= 127 || shared == 254)
            return shared;
    }
}

void as_block(float *values) {
    int8_t mantissas[block];
    const int shared = shared_exponent(values, mantissas);
    for (unsigned i = 0; i < block; ++i)
        values[i] = static_cast<float>(std::ldexp(mantissas[i], shared - 133));
}

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

template <class C> void write(C *c, unsigned row, const float *values);
template <> void write(float *c, unsigned row, const float *values) {
    for (unsigned column = 0; column < DIM_N; ++column)
        c[place_c(row, column)] = values[column];
}
template <> void write(Bfloat16 *c, unsigned row, const float *values) {
    for (unsigned column = 0; column < DIM_N; ++column) {
        int exponent = 0;
        std::frexp(values[column], &exponent);
        const auto rounded = static_cast<float>(nearest(values[column], std::max(exponent - 8, -133)));
        uint32_t bits;
        std::memcpy(&bits, &rounded, sizeof bits);
        c[place_c(row, column)].bits = static_cast<uint16_t>(bits >> 16);
    }
}
template <> void write(BlockByte *c, unsigned row, const float *values) {
    for (unsigned column = 0; column < DIM_N; column += block) {
        int8_t mantissas[block];
        BlockByte *first = c + place_c(row, column) / block * 9;
        first[0].byte = static_cast<uint8_t>(shared_exponent(values + column, mantissas));
        for (unsigned i = 0; i < block; ++i)
            first[1 + i].byte = static_cast<uint8_t>(mantissas[i]);
    }
}

/// The line of A or column of B that begins at `depth`: one block, or one value.
template <class A> void line_of_a(const A *a, unsigned row, unsigned depth, float *values) {
    for (unsigned i = 0; i < (in_blocks ? block : 1); ++i)
        values[i] = read(a, place_a(row, depth + i));
    if (in_blocks)
        as_block(values);
}
/// Block tiles of B are stored column by column.
template <class B> void line_of_b(const B *b, unsigned depth, unsigned column, float *values) {
    const bool transposed = sizeof(B) == 1 || b_transposed;
    for (unsigned i = 0; i < (in_blocks ? block : 1); ++i)
        values[i] = read(b, place_b(depth + i, column, transposed));
    if (in_blocks)
        as_block(values);
}

template <class A, class B, class C> void multiply(const A *a, const B *b, C *c, int32_t part) {
    constexpr unsigned step = in_blocks ? block : 1;
    for (unsigned row = 0; row < tile_rows; ++row) {
        float sums[DIM_N];
        for (unsigned column = 0; column < DIM_N; ++column) {
            sums[column] = read(c, place_c(part * tile_rows + row, column));
            for (unsigned depth = 0; depth < DIM_K; depth += step) {
                float left[block], right[block];
                line_of_a(a, row, depth, left);
                line_of_b(b, depth, column, right);
                double dot = 0;
                for (unsigned i = 0; i < step; ++i)
                    dot += double{left[i]} * right[i];
                sums[column] += static_cast<float>(dot);
            }
        }
        write(c, part * tile_rows + row, sums);
    }
}

}  // namespace

extern "C" {

#define MULTIPLY(name, type_a, type_b, type_c)                                             \
    void name##_ref(const type_a *a, const type_b *b, type_c *c PART_PARAMETER) { \
        multiply(a, b, c, part);                                                           \
    }
MULTIPLY(mm_bf16_bf16_f32, Bfloat16, Bfloat16, float)
MULTIPLY(mm_bf16_bf16_bf16, Bfloat16, Bfloat16, Bfloat16)
MULTIPLY(mm_bfp16_bfp16_f32, BlockByte, BlockByte, float)
MULTIPLY(mm_bfp16_bfp16_bf16, BlockByte, BlockByte, Bfloat16)
MULTIPLY(mm_bfp16_bfp16_bfp16, BlockByte, BlockByte, BlockByte)
MULTIPLY(mm_bf16_bfp16_f32, Bfloat16, BlockByte, float)
MULTIPLY(mm_bf16_bfp16_bf16, Bfloat16, BlockByte, Bfloat16)
MULTIPLY(mm_bf16_bfp16_bfp16, Bfloat16, BlockByte, BlockByte)

}  // extern "C"
