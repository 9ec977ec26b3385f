// Kernels as others write them: a row's norm, softmax and SiLU by the core's own functions, and a filter.
#include <aie_api/aie.hpp>

template <unsigned N> using Bf16 = aie::vector<bfloat16, N>;

extern "C" void norm(const bfloat16 *x, bfloat16 *y, int n) {
    aie::set_rounding(aie::rounding_mode::conv_even);
    auto squares = aie::zeros<accfloat, 16>();
    for (int i = 0; i < n; i += 16)
        squares = aie::add(squares, aie::mul_square(aie::load_v<16>(x + i)));
    const float mean = aie::reduce_add(squares.to_vector<float>()) / static_cast<float>(n);
    const bfloat16 scale = aie::invsqrt(mean + 1e-5F);
    for (int i = 0; i < n; i += 16)
        aie::store_v(y + i, aie::mul(aie::load_v<16>(x + i), scale).to_vector<bfloat16>());
}

extern "C" void softmax(const bfloat16 *x, bfloat16 *y, int n) {
    aie::set_rounding(aie::rounding_mode::conv_even);
    float highest = -3e38F, sum = 0;
    for (int i = 0; i < n; i += 32) {
        const float part = aie::reduce_max(aie::load_v<32>(x + i));
        highest = part > highest ? part : highest;
    }
    for (int i = 0; i < n; i += 32) {
        const auto less = aie::sub(aie::load_v<32>(x + i), bfloat16(highest));
        const Bf16<32> e = aie::exp2<bfloat16>(aie::mul(less, bfloat16(1.4453125F)).to_vector<float>());
        sum += aie::reduce_add(aie::accum<accfloat, 32>(e).to_vector<float>());
        aie::store_v(y + i, e);
    }
    const bfloat16 scale = aie::inv(sum);
    for (int i = 0; i < n; i += 32)
        aie::store_v(y + i, aie::mul(scale, aie::load_v<32>(y + i)).to_vector<bfloat16>());
}

extern "C" void silu(const bfloat16 *x, bfloat16 *y, int n) {
    aie::set_rounding(aie::rounding_mode::conv_even);
    for (int i = 0; i < n; i += 16) {
        const Bf16<16> v = aie::load_v<16>(x + i), half = aie::mul(v, bfloat16(0.5F)).to_vector<bfloat16>();
        const Bf16<16> t = aie::tanh<bfloat16>(aie::mul(v, bfloat16(0.5F)).to_vector<float>());
        aie::store_v(y + i, aie::mac(aie::accum<accfloat, 16>(half), half, t).to_vector<bfloat16>());
    }
}

extern "C" void filter(const int16 *x, const int16 *c, int32 *y) {
    const auto a = aie::load_v<16>(x), b = aie::load_v<16>(x + 16), d = aie::load_v<16>(x + 32);
    auto sum = aie::accumulate<16>(aie::load_v<16>(c), 3, a, b, d);
    sum = aie::mac(sum, a, int16(-7));
    sum = aie::msc(sum, int16(5), b);
    aie::store_v(y, aie::mac_square(sum, d).to_vector<int32>());
}

extern "C" float sums(const float *x) { return aie::reduce_add(aie::load_v<16>(x)); }
extern "C" float least(const float *x) { return aie::reduce_min(aie::load_v<16>(x)); }
extern "C" void roots(const float *x, float *y) {
    aie::store_v(y, aie::sqrt(aie::load_v<16>(x)));
    aie::store_v(y + 16, aie::invsqrt(aie::load_v<16>(x)));
    aie::store_v(y + 32, aie::inv(aie::load_v<16>(x)));
}
