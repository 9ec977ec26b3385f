// Conversions, products and streams of floats by the stand-in, one call each.
#include <aie_api/aie.hpp>

template <unsigned M, unsigned K, unsigned N, class T> static void product(const T *a, const T *b, float *c) {
    aie::mmul<M, K, N, T, T> tile;
    tile.mul(aie::load_v<M * K>(a), aie::load_v<K * N>(b));
    tile.mac(aie::load_v<M * K>(a), aie::load_v<K * N>(b));
    aie::store_v(c, tile.template to_vector<float>());
}

extern "C" {

void to_bfloat16(const float *in, bfloat16 *out) {
    aie::store_v(out, aie::accum<accfloat, 16>(aie::load_v<16>(in)).to_vector<bfloat16>());
}
void product_4x8x4(const bfloat16 *a, const bfloat16 *b, float *c) { product<4, 8, 4>(a, b, c); }
void product_4x8x8(const bfloat16 *a, const bfloat16 *b, float *c) { product<4, 8, 8>(a, b, c); }
void product_8x8x4(const bfloat16 *a, const bfloat16 *b, float *c) { product<8, 8, 4>(a, b, c); }
void product_8x8x8(const bfloat16 *a, const bfloat16 *b, float *c) { product<8, 8, 8>(a, b, c); }
void product_8x1x8(const bfloat16 *a, const bfloat16 *b, float *c) { product<8, 1, 8>(a, b, c); }
void product_of_floats_4x8x4(const float *a, const float *b, float *c) { product<4, 8, 4>(a, b, c); }
void product_of_floats_4x1x8(const float *a, const float *b, float *c) { product<4, 1, 8>(a, b, c); }
void arithmetic(const bfloat16 *a, const bfloat16 *b, bfloat16 *out) {
    const auto x = aie::load_v<16>(a), y = aie::load_v<16>(b);
    auto it = aie::begin_vector<16>(out);
    *it++ = aie::add(x, y);
    *it++ = aie::sub(x, y);
    *it++ = aie::neg(x);
    *it++ = aie::abs(x);
    *it++ = aie::clamp(x, y, bfloat16(1));
    *it++ = aie::msc(aie::mul(x, y), x, x).to_vector<bfloat16>();
    using Wide = aie::accum<accfloat, 16>;
    const Wide wide(x), other(y);
    *it++ = aie::sub(wide, other).to_vector<bfloat16>();
    const auto u = wide.to_vector<float>(), v = other.to_vector<float>();
    *it++ = Wide(aie::max(u, v)).to_vector<bfloat16>();
    *it++ = Wide(aie::min(u, v)).to_vector<bfloat16>();
}
void from_integers(const int32 *words, const int4 *nibbles, float *out, bfloat16 *halves) {
    aie::store_v(out, aie::to_float<float>(aie::load_v<32>(nibbles), 1));
    aie::store_v(halves, aie::to_float<bfloat16>(aie::load_v<16>(words), 3));
}
void undefined_product(float *c) {
    aie::mmul<4, 8, 4, bfloat16, bfloat16> tile;
    aie::store_v(c, tile.to_vector<float>());
}

#if __AIE_ARCH__ >= 21
using Blocks = aie::block_vector<bfp16ebs8, 64>;
using Input = aie::block_vector_input_buffer_stream<bfp16ebs8, 64>;
using Output = aie::block_vector_output_buffer_stream<bfp16ebs8, 64>;

void to_blocks(const float *in, bfp16ebs8 *out) {
    Output(out).push(aie::accum<accfloat, 64>(aie::load_v<64>(in)).to_vector<bfp16ebs8>());
}
void from_blocks(const bfp16ebs8 *in, float *out) {
    aie::store_v(out, aie::accum<accfloat, 64>(Input(in).pop()).to_vector<float>());
}
/// Tiles 0, 3, 2, 5 of `in` become tiles 1, 2, 4, 0 of `out`.
void walk_tiles(const bfp16ebs8 *in, bfp16ebs8 *out) {
    Input from(in);
    Output to(out);
    to.seek(1) << from.pop_seek(2);
    to.push_seek(from.pop_seek(-2), 1);
    Blocks tile;
    from >> tile;
    to.push_seek(tile, -5);
    to.push(from.seek(2).pop());
}
void product_8x8x16(const bfp16ebs8 *a, const bfp16ebs8 *b, float *c) {
    aie::mmul<8, 8, 16, bfp16ebs8, bfp16ebs8> tile;
    const auto columns = aie::block_vector_input_buffer_stream<bfp16ebs8, 128>(b).pop();
    tile.mul(Input(a).pop(), aie::op_transpose(columns));
    aie::store_v(c, tile.to_vector<float>());
}
void undefined_blocks(bfp16ebs8 *out) { Output(out).push(Blocks()); }
#endif

}  // extern "C"
