// Element-wise and image kernels in styles of others: raw vector pointers, iterators, intrinsics, plain loops.
#define NOCPP
#define __AIENGINE__ 2
#include <stdint.h>
#include <stdlib.h>

#include <type_traits>

#include "aie_kernel_utils.h"
#include <aie_api/aie.hpp>

template <typename T_in, typename T_out, int N> void scalar_sum(const T_in *a, const T_in *b, T_out *c) {
    for (int i = 0; i < N; i++)
        c[i] = a[i] + b[i];
}

template <typename T, int N> void vector_product(T *restrict a, T *restrict b, T *restrict c) {
    constexpr int lanes = 16;
    event0();
    auto it_a = aie::begin_restrict_vector<lanes>(a);
    auto it_b = aie::begin_restrict_vector<lanes>(b);
    auto it_c = aie::begin_restrict_vector<lanes>(c);
    for (int i = 0; i < N / lanes; i++)
        chess_prepare_for_pipelining chess_loop_range(2, ) {
            aie::vector<T, lanes> x = *it_a++;
            aie::vector<T, lanes> y = *it_b++;
            auto product = aie::mul(x, y);
            *it_c++ = product.template to_vector<T>(0);
        }
    event1();
}

template <typename T>
__attribute__((noinline)) void blended(T *in1, T *in2, T *out, const int32_t n, const int16_t alpha,
                                       const int16_t beta, const T gamma) {
    set_sat();
    ::aie::set_rounding(aie::rounding_mode::positive_inf);
    aie::accum<acc32, 32> offset;
    offset.from_vector(aie::broadcast<int16_t, 32>(gamma), 6);
    for (int i = 0; i < n; i += 32) {
        aie::vector<int16_t, 32> x = aie::load_v<32>(in1 + i).unpack().template cast_to<int16_t>();
        aie::vector<int16_t, 32> y = aie::load_v<32>(in2 + i).unpack().template cast_to<int16_t>();
        auto acc = aie::mac(aie::mac(offset, x, alpha), y, beta);
        aie::store_v(out + i, acc.template to_vector<T>(6));
    }
    clr_sat();
}

extern "C" {

void raw_relu(bfloat16 *restrict a, bfloat16 *restrict c, int32_t n) {
    v32bfloat16 zeroes = broadcast_zero_bfloat16();
    for (int i = 0; i < n; i += 32)
        chess_prepare_for_pipelining chess_loop_range(3, 3) {
            v32bfloat16 input = *(v32bfloat16 *)(a + i);
            v32bfloat16 output = max(input, zeroes);
            *(v32bfloat16 *)(c + i) = output;
        }
}

void pass_through(uint8_t *restrict in, uint8_t *restrict out, const int32_t height, const int32_t width) {
    v64uint8 *restrict to = (v64uint8 *)out;
    v64uint8 *restrict from = (v64uint8 *)in;
    AIE_PREPARE_FOR_PIPELINING
    AIE_LOOP_MIN_ITERATION_COUNT(2)
    for (int j = 0; j < height * width; j += 64) // a register at a time
        *to++ = *from++;
}

void scalar_bf16(bfloat16 *a, bfloat16 *b, bfloat16 *c) {
    scalar_sum<bfloat16, bfloat16, 32>(a, b, c);
    constexpr bfloat16 half = 0.5f;
    for (int i = 0; i < 32; i++) {
        float x = c[i];
        if (x < 0)
            c[i] *= half;
    }
}
void product_bf16(bfloat16 *a, bfloat16 *b, bfloat16 *c) { vector_product<bfloat16, 64>(a, b, c); }
void product_i16(int16_t *a, int16_t *b, int16_t *c) { vector_product<int16_t, 64>(a, b, c); }

void scaled_i32(int32_t *restrict a, int32_t *restrict c, int32_t *factor, const int32_t n) {
    for (int i = 0; i < n; i += 16) {
        aie::vector<int32, 16> x = aie::load_v<16>(a + i);
        aie::accum<acc64, 16> y = aie::mul(x, *factor);
        aie::store_v(c + i, y.to_vector<int32>(0));
    }
}

void blend(uint8_t *in1, uint8_t *in2, uint8_t *out, int32_t n, int16_t alpha, int16_t beta) {
    blended<uint8_t>(in1, in2, out, n, alpha, beta, 9);
}

void bits_raw(uint8_t *a, uint8_t *b, uint8_t *out) {
    v64uint8 x = *(v64uint8 *)a, y = *(v64uint8 *)b;
    *(v64uint8 *)out = bor(x, y);
    *(v64uint8 *)(out + 64) = band(x, y);
    *(v64uint8 *)(out + 128) = bxor(bneg(x), y);
}

void truncated_above(uint8_t *in, uint8_t *out, int32_t n, uint8_t threshold, uint8_t most) {
    const aie::vector<uint8_t, 64> limit = aie::broadcast<uint8_t, 64>(threshold);
    for (int i = 0; i < n; i += 64) {
        aie::vector<uint8_t, 64> x = aie::load_v<64>(in + i);
        aie::mask<64> above = aie::gt(x, limit);
        aie::store_v(out + i, aie::select(aie::zeros<uint8_t, 64>(), aie::broadcast<uint8_t, 64>(most), above));
    }
}

void gray_to_rgba(uint8_t *restrict in, uint8_t *restrict out, const int32_t width) {
    aie::vector<uint8_t, 32> alpha = aie::broadcast<uint8_t, 32>(255);
    for (int i = 0; i < width; i += 32) {
        aie::vector<uint8_t, 32> x = aie::load_v<32>(in);
        in += 32;
        auto [rg_low, rg_high] = aie::interleave_zip(x, x, 1);
        auto [ba_low, ba_high] = aie::interleave_zip(x, alpha, 1);
        auto low = aie::interleave_zip(rg_low, ba_low, 2);
        auto high = aie::interleave_zip(rg_high, ba_high, 2);
        aie::store_v(out, aie::concat(low.first, low.second));
        aie::store_v(out + 64, aie::concat(high.first, high.second));
        out += 128;
    }
}

/// The largest of three channels less the smallest, and which of them is the largest.
void chroma(uint8_t *rgba, uint8_t *out, uint8_t *which) {
    aie::vector<uint8_t, 64> p0 = aie::load_v<64>(rgba), p1 = aie::load_v<64>(rgba + 64);
    aie::vector<uint8_t, 64> rb = aie::concat(aie::filter_even(p0), aie::filter_even(p1));
    aie::vector<uint8_t, 64> ga = aie::concat(aie::filter_odd(p0), aie::filter_odd(p1));
    v32uint8 r = aie::filter_even(rb), g = aie::filter_even(ga), b = aie::filter_odd(rb);
    unsigned int g_above_r, b_above;
    v32uint8 most = max_lt(r, g, g_above_r);
    most = max_lt(most, b, b_above);
    v32uint8 least = min(min(r, g), b);
    *(v32uint8 *)out = maxdiff(most, least);
    v32uint8 first = sel(broadcast_zero_to_v32uint8(), broadcast_one_to_v32uint8(), g_above_r);
    *(v32uint8 *)which = sel(first, broadcast_to_v32uint8(2), b_above);
}

/// Intrinsics of the API's own vectors: a table's values of the larger lanes, and which lanes were larger.
void inverted(uint8_t *in, uint16_t *table, uint16_t *out, uint32_t *larger) {
    const ::aie::vector<uint8_t, 32> a = ::aie::load_v<32>(in), b = ::aie::load_v<32>(in + 32);
    const ::aie::vector<uint8_t, 32> most = ::max(a, b);
    larger[0] = ::lt(a, b);
    ::aie::mask<32> same = lt(b, max(a, b));
    larger[1] = same.to_uint32();
    ::aie::vector<uint16_t, 32> values;
    for (int lane = 0; lane < 32; lane++) {
        uint8_t input = ::ext_elem(most, lane);
        values[lane] = table[input];
    }
    ::aie::store_v(out, values);
    ::aie::store_v(out + 32, ::aie::vector<uint16_t, 32>(::shift_bytes(values, values, 4)));
}

void by_operators(int16_t *a, int16_t *b, int16_t *out) {
    using namespace aie::operators;
    const auto x = aie::load_v<32>(a), y = aie::load_v<32>(b);
    auto sum = x + y;
    sum -= int16_t(3);
    aie::store_v(out, aie::select(-sum, sum & int16_t(0xff), x < y));
    aie::store_v(out + 32, (~x ^ y) << 1);
    auto acc = x * y;
    acc += x;
    aie::store_v(out + 64, (acc - y).to_vector<int16>(2));
}

}  // extern "C"
