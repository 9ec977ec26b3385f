// Products in styles of others: blocks, vectors, convolutions, windows, shuffles and raw MAC intrinsics.
#include <stdint.h>

#include <aie_api/aie.hpp>

#include "aie_kernel_utils.h"

/// Tiles of C, two of them at a time; B column by column inside its tiles.
template <typename T_in, typename T_out, unsigned rowA, unsigned colA, unsigned colB, unsigned r, unsigned s,
          unsigned t>
static inline void block_product(const T_in *__restrict pA, const T_in *__restrict pB, T_out *__restrict pC) {
    using MMUL = aie::mmul<r, s, t, T_in, T_in, accauto>;
    for (unsigned z = 0; z < rowA; z += 2)
        chess_prepare_for_pipelining chess_loop_range(2, ) {
            T_out *__restrict pC1 = pC + z * colB * MMUL::size_C;
            T_out *__restrict pC2 = pC1 + colB * MMUL::size_C;
            for (unsigned j = 0; j < colB; j++) {
                const T_in *__restrict pA1 = pA + z * colA * MMUL::size_A;
                const T_in *__restrict pA2 = pA1 + colA * MMUL::size_A;
                aie::vector<T_out, MMUL::size_C> acc_C00 = aie::load_v<MMUL::size_C>(pC1);
                aie::vector<T_out, MMUL::size_C> acc_C10 = aie::load_v<MMUL::size_C>(pC2);
                MMUL C00(acc_C00);
                MMUL C10(acc_C10);
                for (unsigned i = 0; i < colA; i++)
                    chess_flatten_loop {
                        auto A0 = aie::load_v<MMUL::size_A>(pA1);
                        auto A1 = aie::load_v<MMUL::size_A>(pA2);
                        auto B0 = aie::transpose(aie::load_v<MMUL::size_B>(pB + (i * colB + j) * MMUL::size_B), t, s);
                        pA1 += MMUL::size_A;
                        pA2 += MMUL::size_A;
                        C00.mac(A0, B0);
                        C10.mac(A1, B0);
                    }
                aie::store_v(pC1, C00.template to_vector<T_out>());
                pC1 += MMUL::size_C;
                aie::store_v(pC2, C10.template to_vector<T_out>());
                pC2 += MMUL::size_C;
            }
        }
}

extern "C" {

#define PRODUCTS(X) X(bfloat16, bf16, float, f32, 4, 8, 4) X(int16, i16, int32, i32, 4, 4, 8)
#define PRODUCT_OF(in, name_in, out, name_out, r, s, t) \
    void blocks_##name_in##_##name_out(in *a, in *b, out *c) { block_product<in, out, 2, 3, 3, r, s, t>(a, b, c); }
PRODUCTS(PRODUCT_OF)

/// c += a transposed, by groups of 8 columns, times b.
void matrix_vector(bfloat16 *restrict a, bfloat16 *restrict b, float *restrict c, int32_t m, int32_t k) {
    for (int row = 0; row < m; row += 16) {
        aie::accum<accfloat, 16> sum;
        sum.from_vector(aie::load_v<16>(c + row));
        bfloat16 *restrict column = a + row;
        for (int col = 0; col < k; col += 4) {
            const aie::vector<bfloat16, 8> factors = aie::load_v<8>(b + 2 * col);
            const auto a0 = aie::load_v<16>(column), a1 = aie::load_v<16>(column + m);
            const auto a2 = aie::load_v<16>(column + 2 * m), a3 = aie::load_v<16>(column + 3 * m);
            sum = aie::accumulate<16>(sum, factors, 2, a0, a1, a2, a3);
            column += 4 * m;
        }
        aie::store_v(c + row, sum.to_vector<float>());
    }
}

void pointwise(int8_t *input, int8_t *kernels, uint8_t *output, const int32_t channels, const int scale) {
    using MMUL4x8x8 = aie::mmul<4, 8, 8, int8, int8>;
    ::aie::set_saturation(aie::saturation_mode::saturate);
    ::aie::set_rounding(aie::rounding_mode::symmetric_inf);
    constexpr unsigned NUM_ACC = 2;
    MMUL4x8x8 acc_tmp[NUM_ACC];
    for (unsigned x = 0; x < NUM_ACC; x++)
        acc_tmp[x] = aie::zeros<acc32, 32>();
    for (int ic = 0; ic < channels / 8; ic++) {
        aie::vector<int8, 64> in_b = aie::load_v<64>(kernels);
        kernels += 64;
        for (unsigned x8 = 0; x8 < NUM_ACC; x8++) {
            aie::vector<int8, 32> in_a = aie::load_v<32>(input);
            input += 32;
            acc_tmp[x8].mac(in_a, in_b);
        }
    }
    for (unsigned x = 0; x < NUM_ACC; x++) {
        aie::vector<uint8, 32> o1 = acc_tmp[x].to_vector<uint8>(scale);
        aie::store_v(output + 32 * x, o1);
    }
}
/// The same sum plus what skips it, in accumulators.
void skipped(uint8_t *x, int8_t *skip, uint8_t *out, int32_t shift) {
    ::aie::set_saturation(aie::saturation_mode::saturate);
    aie::accum<acc32, 32> a, b;
    a.from_vector(aie::load_v<32>(x), 0);
    b.from_vector(aie::load_v<32>(skip), 0);
    aie::store_v(out, aie::add(a, b).to_vector<uint8>(shift));
}

/// Three lines, three taps of each, four pixels of eight channels at the left border.
void three_by_three(uint8_t *line0, uint8_t *line1, uint8_t *line2, int8_t *wts, uint8_t *output, const int32_t width,
                    const int32_t channels, const int32_t out_channels, const int32_t kernel_width,
                    const int32_t kernel_height, const int32_t check, const int scale, const int channel_offset) {
    (void)kernel_width;
    uint8_t *restrict line[3] = {line0, line1, line2};
    ::aie::set_saturation(aie::saturation_mode::saturate);
    const aie::vector<uint8, 32> border = aie::zeros<uint8, 32>();
    for (int oc = 0; oc < out_channels / 8; oc++) {
        aie::mmul<4, 8, 8, uint8, int8> acc(aie::zeros<acc32, 32>());
        for (int i = check; i < kernel_height; i++)
            for (int ic = 0; ic < channels / 8; ic++) {
                uint8_t *in = line[i] + ic * width * 8;
                auto here = aie::load_v<32>(in), after = aie::load_v<32>(in + 32);
                acc.mac(aie::shuffle_up_fill(here, border, 8), aie::load_v<64>(wts));
                acc.mac(here, aie::load_v<64>(wts + 64));
                acc.mac(aie::shuffle_down_fill(here, after, 8), aie::load_v<64>(wts + 128));
                wts += 192;
            }
        aie::store_v(output + channel_offset + 32 * oc, acc.to_vector<uint8>(scale));
    }
}

#if __AIE_ARCH__ >= 21
/// a * b^T, of bfloat16 and blocks, as blocks, and the same of blocks alone, from a conversion in the kernel.
void blocks_mixed(bfloat16 *a, bfp16ebs8 *b, bfp16ebs8 *c) {
    ::aie::set_rounding(aie::rounding_mode::conv_even);
    aie::block_vector_input_buffer_stream<bfp16ebs8, 64> pB(b);
    aie::block_vector_output_buffer_stream<bfp16ebs8, 64> pC(c);
    const v64bfp16ebs8 columns = pB.pop();
    aie::vector<bfloat16, 64> rows = aie::load_v<64>(a);
    aie::mmul<8, 8, 8, bfloat16, bfp16ebs8> product;
    product.mul(rows, aie::op_transpose(columns));
    product.mac(rows, aie::op_transpose(columns));
    pC.push(product.to_accum().to_vector<bfp16ebs8>());
    v64accfloat wide = aie::accum<accfloat, 64>(rows).to_native();
    v64accfloat sum = mul_8x8_8x8T(to_v64bfp16ebs8(wide), columns);
    pC << to_v64bfp16ebs8(mac_8x8_8x8T(to_v64bfp16ebs8(wide), columns, sum));
}
#endif

/// Three taps of int16 by windows, twice with coefficients four apart, and sums of every second element.
void windows(int16_t *data, int16_t *taps, int32_t *out) {
    const auto x = aie::load_v<32>(data);
    const auto c = aie::load_v<16>(taps);
    auto acc = aie::sliding_mul<16, 3>(c, 0, x, 5);
    acc = aie::sliding_mac<16, 3>(acc, c, 4, x, 8);
    aie::store_v(out, acc.to_vector<int32>());
    using Downsampled = aie::sliding_mul_ops<8, 4, 1, 1, 2, int16, int16, acc64>;
    aie::accum<acc64, 8> half = Downsampled::mul(c, 2, x, 0);
    aie::store_v(out + 16, Downsampled::mac(half, c, 0, x, 4).to_vector<int32>());
    aie::store_v(out + 24, aie::sliding_mul_x_ops<8, 2, 1, 3, int16, int16>::mul(c, 15, x, 30).to_vector<int32>());
}
void raw_windows(uint8_t *data, int8_t *taps, int32_t *out) {
    v64uint8 x = *(v64uint8 *)data;
    v16int8 c = *(v16int8 *)taps;
    v32acc32 acc = mul_conv_32x8(x, c);
    acc = mac_conv_32x8(shift_bytes(x, x, 1), c, acc);
    *(v32int32 *)out = srs_to_v32int32(acc, 0);
}

/// Three rows of an image, borders repeated, times three taps of a row each.
void depthwise(uint8_t *row, int8_t *taps, int16_t *out) {
    ::aie::set_saturation(aie::saturation_mode::saturate);
    const aie::vector<uint8, 32> middle = aie::load_v<32>(row), next = aie::load_v<32>(row + 32);
    const aie::vector<uint8, 32> left = aie::shuffle_up_replicate(middle, 1);
    const aie::vector<uint8, 32> right = aie::shuffle_down_fill(middle, next, 1);
    const aie::vector<int8, 16> w = aie::load_v<16>(taps);
    auto acc = aie::mul(left, w[0]);
    acc = aie::mac(acc, middle, w[1]);
    acc = aie::mac(acc, right, w[2]);
    aie::store_v(out, acc.to_vector<int16>(1));
    aie::store_v(out + 32, aie::load_unaligned_v<16>(row + 3).unpack().cast_to<int16>());
    aie::store_unaligned_v(out + 49, aie::load_floor_v<16>(row + 21, 16).unpack().cast_to<int16>());
}

/// Pairs of bfloat16 halves, with 64 products for 32 lanes' sums.
void raw_dot(bfloat16 *a, bfloat16 *b, float *sum, int32_t n) {
    v16accfloat acc = broadcast_zero_to_v16accfloat();
    for (int i = 0; i < n; i += 32)
        acc = mac_elem_16_2(*(v32bfloat16 *)(a + i), *(v32bfloat16 *)(b + i), acc);
    v16bfloat16 x = *(v16bfloat16 *)a;
    v32bfloat16 twos = concat(broadcast_to_v16bfloat16(2.0f), undef_v16bfloat16());
    acc = msc_elem_16_2(concat(x, undef_v16bfloat16()), twos, acc);
    *(v16float *)sum = v16float(acc);
    *(v16float *)(sum + 16) = v16float(mul_elem_16(x, extract_v16bfloat16(*(v32bfloat16 *)b, 1)));
}
void raw_integers(int8_t *a, int8_t *b, int32_t *out, int16_t *narrow) {
    v64int8 x = *(v64int8 *)a, y = *(v64int8 *)b;
    v32acc32 pairs = mul_elem_32_2(x, y);
    *(v32int32 *)out = v32int32(pairs);
    set_rnd(rnd_pos_inf);
    set_sat();
    *(v32int16 *)narrow = srs_to_v32int16(pairs, 3);
    v16acc64 wide = ups_to_v16acc64(extract_v16int16(*(v32int16 *)narrow, 1), 4);
    *(v16int32 *)(out + 32) = srs_to_v16int32(neg(wide), 1);
}
void raw_blocks(int8_t *a, int8_t *b, int32_t *out, bfloat16 *fa, bfloat16 *fb, float *fout) {
    v32acc32 acc = mul_4x8_8x8(*(v32int8 *)a, *(v64int8 *)b);
    acc = mac_4x8_8x8(*(v32int8 *)(a + 32), *(v64int8 *)b, acc);
    *(v32int32 *)out = v32int32(acc);
    v16accfloat facc = mul_4x8_8x4(*(v32bfloat16 *)fa, *(v32bfloat16 *)fb);
    *(v16float *)fout = v16float(facc);
}

void raw_lanes(int16_t *a, int16_t *b, int16_t *out) {
    v32int16 x = *(v32int16 *)a, y = *(v32int16 *)b;
    v32int16 *to = (v32int16 *)out;
    *to++ = shuffle(x, y, T16_2x32_lo);
    *to++ = shuffle(x, y, T16_32x2_hi);
    *to++ = shuffle(x, T16_4x8);
    *to++ = shift_bytes(x, y, 6);
    *to++ = upd_elem(insert(x, 1, extract_v16int16(y, 0)), 2, ext_elem(y, 31));
    *to++ = concat(extract_v16int16(x, 1), extract_v16int16(x, 0));
    *to++ = broadcast_elem(x, 7);
    *to++ = set_v32int16(1, *(v16int16 *)b);
}

void put_only(int32_t *a) { put_mcd(upd_elem(undef_v16int32(), 0, a[0])); }
void get_only(int32_t *c) {
    v16int32 v16 = get_scd_v16int32();
    c[0] += ext_elem(v16, 0);
}
void word_out(int32_t *a) { put_ms(a[0]); }

}  // extern "C"
