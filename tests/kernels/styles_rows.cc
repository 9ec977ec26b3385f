// Kernels of rows in styles of others: tables and the core's functions, iterators, sums of accumulators.
#include <stdint.h>

#include <aie_api/aie.hpp>

#include "aie_kernel_utils.h"
#include "lut_based_ops.h"

using namespace aie;

template <typename T, int N>
void rotated(const T *restrict input, const T *restrict angles, T *restrict output, int32_t dims) {
    for (int v = 0; v < dims; v += N) {
        ::aie::vector<T, N> x = ::aie::load_v<N>(input + v);
        ::aie::vector<T, N> cache = ::aie::load_v<N>(angles + v);
        auto even = ::aie::filter_even(x, 1), odd = ::aie::filter_odd(x, 1);
        auto cosine = ::aie::filter_even(cache, 1), sine = ::aie::filter_odd(cache, 1);
        ::aie::vector<T, N / 2> first = ::aie::sub(::aie::mul(even, cosine), ::aie::mul(odd, sine));
        ::aie::vector<T, N / 2> second = ::aie::mac(::aie::mul(even, sine), odd, cosine);
        auto [low, high] = ::aie::interleave_zip(first, second, 1);
        ::aie::store_v(output + v, ::aie::concat(low, high));
    }
}

extern "C" {

void table_exp(bfloat16 *restrict in, bfloat16 *restrict out, int32_t n) {
    auto it_in = aie::cbegin_restrict_vector<16>(in);
    auto it_out = aie::begin_restrict_vector<16>(out);
    AIE_LOOP_RANGE(1, 64)
    for (int i = 0; i < n; i += 16) {
        vector<bfloat16, 16> x = *it_in++;
        *it_out++ = to_v16bfloat16(getExpBf16(x));
    }
}

void table_softmax(bfloat16 *restrict in, bfloat16 *restrict out, const int32_t n) {
    accum<accfloat, 16> total = zeros<accfloat, 16>();
    for (int i = 0; i < n; i += 16) {
        vector<bfloat16, 16> e = to_v16bfloat16(getExpBf16(load_v<16>(in + i)));
        total = add(total, e);
        store_v(out + i, e);
    }
    vector<float, 16> parts = total.to_vector<float>();
    bfloat16 scale = getInvBf16(aie::reduce_add(parts));
    auto it = aie::begin_vector<16>(out);
    for (int i = 0; i < n / 16; i++, it++)
        *it = aie::mul(*it, scale).to_vector<bfloat16>();
}

void layer_norm(bfloat16 *restrict in, bfloat16 *restrict out, const int32_t n) {
    constexpr int lanes = 16;
    constexpr float epsilon = 1e-5f;
    auto sum = aie::zeros<accfloat, lanes>(), squares = aie::zeros<accfloat, lanes>();
    for (int i = 0; i < n; i += lanes) {
        auto x = aie::load_v<lanes>(in + i);
        sum = aie::add(sum, x);
        squares = aie::mac(squares, x, x);
    }
    float mean = aie::reduce_add(sum.to_vector<float>()) / n;
    float variance = aie::reduce_add(squares.to_vector<float>()) / n - mean * mean;
    aie::vector<bfloat16, lanes> means = aie::broadcast<bfloat16, lanes>(mean);
    aie::vector<bfloat16, lanes> scale = aie::broadcast<bfloat16, lanes>(aie::invsqrt(variance + epsilon));
    for (int i = 0; i < n; i += lanes) {
        aie::vector<bfloat16, lanes> centred = aie::sub(aie::load_v<lanes>(in + i), means);
        aie::store_v(out + i, aie::mul(centred, scale).to_vector<bfloat16>());
    }
}

void rope(bfloat16 *x, bfloat16 *angles, bfloat16 *out, int32_t dims) { rotated<bfloat16, 16>(x, angles, out, dims); }

void table_gelu(bfloat16 *restrict in, bfloat16 *restrict out, int32_t n) {
    const vector<bfloat16, 16> cubic = broadcast<bfloat16, 16>(0.044715f), one = broadcast<bfloat16, 16>(1.0f);
    const vector<bfloat16, 16> root = broadcast<bfloat16, 16>(0.79788456f), half = broadcast<bfloat16, 16>(0.5f);
    for (int i = 0; i < n; i += 16) {
        vector<bfloat16, 16> x = load_v<16>(in + i);
        vector<bfloat16, 16> cube = mul(x, mul(x, x).to_vector<bfloat16>()).to_vector<bfloat16>();
        auto inner = mac(accum<accfloat, 16>(x), cubic, cube).to_vector<bfloat16>();
        vector<bfloat16, 16> t = getTanhBf16(mul(root, inner).to_vector<bfloat16>());
        auto gate = mul(half, add(t, one)).to_vector<bfloat16>();
        store_v(out + i, mul(x, gate).to_vector<bfloat16>());
    }
}

#if __AIE_ARCH__ >= 21
void swiglu(bfloat16 *restrict in, bfloat16 *restrict w1, bfloat16 *restrict w2, bfloat16 *restrict out, int32_t n) {
    auto a = aie::begin_restrict_vector<16>((bfloat16 *)in), b = aie::begin_restrict_vector<16>((bfloat16 *)w1);
    auto c = aie::begin_restrict_vector<16>((bfloat16 *)w2), y = aie::begin_restrict_vector<16>((bfloat16 *)out);
    for (int i = 0; i < n / 16; i++) {
        vector<bfloat16, 16> x = *a++;
        auto gated = aie::mul(x, *b++), up = aie::mul(x, *c++);
        aie::vector<bfloat16, 16> v = gated.to_vector<bfloat16>();
        auto halved = aie::mul(v, bfloat16(0.5f));
        aie::vector<bfloat16, 16> t = aie::tanh<bfloat16>(halved.to_vector<float>());
        auto sigmoid = aie::mul(aie::add(t, bfloat16(1.0f)), bfloat16(0.5f)).to_vector<bfloat16>();
        auto silu = aie::mul(v, sigmoid).to_vector<bfloat16>();
        *y++ = aie::mul(silu, up.to_vector<bfloat16>()).to_vector<bfloat16>();
    }
}
void raw_exp2(bfloat16 *in, bfloat16 *out) { *(v16bfloat16 *)out = exp2(ups_to_v16accfloat(*(v16bfloat16 *)in)); }
#endif

void reductions(int32_t *restrict in, int32_t *restrict out, const int32_t n) {
    aie::vector<int32_t, 16> sum = aie::zeros<int32_t, 16>(), most = aie::broadcast<int32_t, 16>(INT32_MIN);
    aie::vector<int32_t, 16> least = aie::broadcast<int32_t, 16>(INT32_MAX);
    for (int i = 0; i < n; i += 16) {
        aie::vector<int32_t, 16> next = *(v16int32 *)(in + i);
        sum = aie::add(sum, next);
        most = aie::max(next, most);
        least = aie::min(next, least);
    }
    auto high = aie::max(most.extract<8>(0), most.extract<8>(1));
    out[0] = aie::reduce_add(sum);
    out[1] = aie::reduce_max(high);
    out[2] = aie::reduce_min(least);
}
void sums_at_once(float *in, float *out) {
    auto a = load_v<16>(in), b = load_v<16>(in + 16);
    auto sums = aie::reduce_add_v(a, b, aie::neg(a), aie::abs(b));
    store_v(out, sums.extract<4>(0));
}

/// Codes of x / step, to the nearest, through the table-free conversion; and back.
void codes(float *in, int8_t *out, float *back, int32_t shift) {
    set_saturation(saturation_mode::saturate);
    auto q = to_fixed<int8_t>(load_v<16>(in), shift);
    store_v(out, q);
    store_v(back, aie::to_float<float>(q, shift));
}
void floors(bfloat16 *in, int16_t *out, int32_t *raw, int32_t shift) {
    store_v(out, to_fixed<int16_t>(load_v<16>(in), shift));
    *(v16int32 *)raw = bfloat16_to_int(load_v<16>(in), shift);
}

void looked_up(int16_t *in, bfloat16 *ab, bfloat16 *cd, bfloat16 *out, int32_t elements, int32_t step) {
    using table = aie::lut<4, bfloat16, bfloat16>;
    table values(elements, ab, cd);
    aie::parallel_lookup<uint16, table, aie::lut_oor_policy::truncate> around(values, step);
    aie::parallel_lookup<int16, table> clamped(values, step, elements / 2);
    store_v(out, around.fetch(load_v<16>(in).cast_to<uint16>()));
    store_v(out + 16, clamped.fetch(load_v<16>(in)));
}

}  // extern "C"
