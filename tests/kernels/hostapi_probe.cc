// Single operations of the stand-in, for the tests to compare with numpy and plain Python.
#include <aie_api/aie.hpp>

namespace {

template <class T> constexpr unsigned native = aie::native_vector_length_v<T>;

template <class Tag, class To> void shift_round_saturate(const int32 *in, To *out, int up, int down) {
    aie::accum<Tag, 16> acc;
    acc.from_vector(aie::load_v<16>(in), up);
    aie::store_v(out, acc.template to_vector<To>(down));
}

template <unsigned N> uint64 bits_of(const aie::mask<N> &m) {
    uint64 bits = 0;
    for (unsigned i = 0; i < N; ++i)
        bits |= uint64{m.test(i)} << i;
    return bits;
}

}  // namespace

extern "C" {

#define SRS(tag, type)                                                      \
    void srs_##tag##_##type(const int32 *in, type *out, int up, int down) { \
        shift_round_saturate<tag>(in, out, up, down);                       \
    }
SRS(acc64, int8)
SRS(acc64, uint8)
SRS(acc64, int16)
SRS(acc64, uint16)
SRS(acc64, int32)
SRS(acc64, uint32)
SRS(acc32, int8)
SRS(acc32, uint8)
SRS(acc32, int16)
SRS(acc32, int32)
SRS(acc32, uint32)

void ups_int16_acc32(const int16 *in, int32 *out, int shift) {
    aie::store_v(out, aie::from_vector<acc32>(aie::load_v<16>(in), shift).to_vector<int32>());
}

void unpack_int4(const int4 *in, int8 *out) { aie::store_v(out, aie::load_v<128>(in).unpack()); }
void unpack_uint4(const uint4 *in, uint8 *out) { aie::store_v(out, aie::unpack(aie::load_v<128>(in))); }
void unpack_bytes_as_int4(const uint8 *in, int8 *out) {
    aie::store_v(out, aie::load_v<64>(in).cast_to<int4>().unpack());
}
void unpack_int8(const int8 *in, int16 *out) { aie::store_v(out, aie::load_v<64>(in).unpack()); }
void unpack_uint16(const uint16 *in, uint32 *out) { aie::store_v(out, aie::load_v<32>(in).unpack()); }
void pack_int8(const int8 *in, uint8 *out) { aie::store_v(out, aie::load_v<64>(in).pack().cast_to<uint8>()); }
void pack_int16(const int16 *in, int8 *out) { aie::store_v(out, aie::pack(aie::load_v<32>(in))); }
void pack_uint32(const uint32 *in, uint16 *out) { aie::store_v(out, aie::load_v<16>(in).pack()); }
void cast_int32_to_uint8(const int32 *in, uint8 *out) { aie::store_v(out, aie::vector_cast<uint8>(aie::load_v(in))); }

/// The 64 bytes that lie `elements` 4-bit pointer steps after `in`.
void step_int4(const int4 *in, int4 *out, int steps) { aie::store_v(out, aie::load_v<128>(in + steps)); }
void get_and_set_int4(const int4 *in, int4 *out, int32 *lanes) {
    const auto v = aie::load_v<32>(in);
    auto reversed = aie::zeros<int4, 32>();
    for (unsigned i = 0; i < 32; ++i) {
        lanes[i] = v.get(i);
        reversed[31 - i] = v[i];
    }
    aie::store_v(out, reversed);
}
void copy_with_iterators(const int4 *in, int4 *out, int count) {
    auto source = aie::cbegin_restrict_vector<64>(in);
    auto target = aie::begin_restrict_vector<64>(out);
    for (int i = 0; i < count; ++i)
        *target++ = *source++;
}
void last_vector(const int16 *in, int16 *out, int count) {
    auto it = aie::cbegin_vector<32>(in);
    it += count - 1;
    aie::store_v(out, *it);
}

void bitwise(const uint8 *a, const uint8 *b, uint8 *out) {
    const auto x = aie::load_v<64>(a), y = aie::load_v<64>(b);
    aie::store_v(out, aie::bit_and(x, y));
    aie::store_v(out + 64, aie::bit_or(x, y));
    aie::store_v(out + 128, aie::bit_xor(x, y));
    aie::store_v(out + 192, aie::bit_and(uint8(0x30), x));
    aie::store_v(out + 256, aie::bit_not(x));
}
#define ARITHMETIC(type)                                                           \
    void arithmetic_##type(const type *a, const type *b, type *out) {              \
        constexpr unsigned lanes = native<type>;                                   \
        const auto x = aie::load_v<lanes>(a), y = aie::load_v<lanes>(b);           \
        auto it = aie::begin_vector<lanes>(out);                                   \
        *it++ = aie::add(x, y);                                                    \
        *it++ = aie::sub(x, y);                                                    \
        *it++ = aie::sub(x, type(1));                                              \
        *it++ = aie::max(x, y);                                                    \
        *it++ = aie::min(x, y);                                                    \
        *it++ = aie::select(x, y, aie::lt(x, y) & ~aie::eq(x, type(3)));           \
        *it++ = aie::upshift(x, 3);                                                \
        *it++ = aie::downshift(x, 3);                                              \
        *it++ = aie::logical_downshift(x, 3);                                      \
        *it++ = aie::broadcast<type, lanes>(aie::reduce_add(x));                   \
        *it++ = aie::broadcast<type, lanes>(aie::reduce_max(x));                   \
        *it++ = aie::broadcast<type, lanes>(aie::reduce_min(x));                   \
        *it++ = aie::neg(x);                                                       \
        *it++ = aie::abs(x);                                                       \
    }
ARITHMETIC(int8)
ARITHMETIC(uint8)
ARITHMETIC(int16)
ARITHMETIC(int32)
ARITHMETIC(uint32)
void upshift_int8(const int8 *in, int8 *out, int shift) { aie::store_v(out, aie::upshift(aie::load_v<64>(in), shift)); }
void downshift_int8(const int8 *in, int8 *out, int shift) {
    aie::store_v(out, aie::downshift(aie::load_v<64>(in), shift));
}
void logical_downshift_int8(const int8 *in, int8 *out, int shift) {
    aie::store_v(out, aie::logical_downshift(aie::load_v<64>(in), shift));
}
void to_float_int8(const int8 *in, float *out, int shift) {
    aie::store_v(out, aie::to_float<float>(aie::load_v<16>(in), shift));
}
void shift_int4(const int4 *in, int4 *out, int shift) {
    const auto v = aie::load_v<128>(in);
    aie::store_v(out, aie::upshift(v, shift));
    aie::store_v(out + 64, aie::downshift(v, shift));
    aie::store_v(out + 128, aie::logical_downshift(v, shift));
}
void saturating_int8(const int8 *a, const int8 *b, int8 *out) {
    const auto x = aie::load_v<64>(a), y = aie::load_v<64>(b);
    aie::store_v(out, aie::saturating_add(x, y));
    aie::store_v(out + 64, aie::saturating_sub(x, y));
    aie::store_v(out + 128, aie::clamp(x, int8(-3), int8(100)));
}
void multiply_int8_int4(const int8 *a, const int4 *b, int32 *out) {
    aie::store_v(out, aie::mul(aie::load_v<64>(a), aie::load_v<64>(b)).to_vector<int32>());
}
void cast_accum(const int32 *in, int32 *wide, float *floats) {
    const aie::accum<acc32, 16> acc(aie::load_v<16>(in));
    const auto longs = acc.cast_to<acc64>();
    static_assert(longs.size() == 8);
    aie::store_v(wide, longs.cast_to<acc32>().to_vector<int32>());
    aie::store_v(floats, acc.cast_to<accfloat>().to_vector<float>());
}
void count_less(const int8 *a, const int8 *b, uint32 *out) {
    out[0] = aie::lt(aie::load_v<64>(a), aie::load_v<64>(b)).count();
    out[1] = (aie::ge(aie::load_v<64>(a), int8(0)) | aie::mask<64>::from_uint64(3)).count();
}

void comparisons(const int8 *a, const int8 *b, uint64 *out) {
    const auto x = aie::load_v<64>(a), y = aie::load_v<64>(b);
    const aie::mask<64> masks[] = {aie::lt(x, y), aie::le(x, y), aie::gt(x, y), aie::ge(x, y), aie::eq(x, y), aie::neq(x, y)};
    for (unsigned i = 0; i < 6; ++i)
        out[i] = bits_of(masks[i]);
    out[6] = bits_of(masks[0] & masks[5]), out[7] = bits_of(masks[0] | masks[4]), out[8] = bits_of(masks[1] ^ masks[3]);
    out[9] = bits_of(~masks[0]), out[10] = bits_of(aie::mask<32>::from_uint32(0x80000005));
}
void walked(const int16 *in, int16 *out, int64 *distance) {
    const auto first = aie::cbegin_vector<32>(in);
    auto it = first + 4;
    *distance = it - first;
    auto to = aie::begin_vector<32>(out);
    *to++ = *it--;  // 4
    *to++ = *it;    // 3
    it -= 2;
    *to++ = *it;       // 1
    *to++ = first[2];  // 2
    *to++ = *--it;     // 0
    *to++ = *(first + 4 - 1);
    ++it;
    *to = *it;  // 1
}
void reordered(const int16 *in, int16 *out) {
    const auto v = aie::load_v<32>(in);
    aie::store_v(out, aie::reverse(v));
    const auto parts = v.split<8>();
    aie::store_v(out + 32, aie::concat(parts[3], parts[2], parts[1], parts[0]));
    auto upper = v.extract<16>(0).grow<32>(1);
    aie::store_v(out + 64, upper.insert(0, v.extract<16>(1)));
}
void parts_of_accums(const int16 *in, int32 *out, float *floats) {
    const auto a = aie::from_vector<acc32>(aie::load_v<32>(in));
    auto swapped = a.extract<16>(0).grow<32>(1);
    aie::store_v(out, swapped.insert(0, a.extract<16>(1)).to_vector<int32>());
    aie::store_v(out + 32, aie::concat(a.extract<16>(1), a.extract<16>(0)).to_vector<int32>());
    const aie::accum<accfloat, 16> whole(aie::to_float<float>(aie::load_v<16>(in)));
    aie::accum<accfloat, 16> turned;
    turned.insert(0, whole.extract<8>(1)).insert(1, whole.extract<8>(0));
    aie::store_v(floats, turned.to_vector<float>());
}
void wide_products(const int32 *a, const int32 *b, int32 *out) {
    aie::store_v(out, aie::mul(aie::load_v<16>(a), aie::load_v<16>(b)).to_vector<int32>(31));
}

#define MOVEMENT(type)                                                                                     \
    void transpose_##type(const type *in, type *out, int rows, int columns) {                              \
        aie::store_v(out, aie::transpose(aie::load_v<native<type>>(in), rows, columns));                   \
    }                                                                                                      \
    void zip_##type(const type *a, const type *b, type *out, int step) {                                   \
        const auto [low, high] = aie::interleave_zip(aie::load_v(a), aie::load_v(b), step);                \
        aie::store_v(out, aie::concat(low, high));                                                         \
    }                                                                                                      \
    void unzip_##type(const type *a, const type *b, type *out, int step) {                                 \
        const auto [even, odd] = aie::interleave_unzip(aie::load_v(a), aie::load_v(b), step);              \
        aie::store_v(out, aie::concat(even, odd));                                                         \
    }                                                                                                      \
    void filter_##type(const type *in, type *out, int step) {                                              \
        const auto v = aie::load_v(in);                                                                    \
        aie::store_v(out, aie::concat(aie::filter_even(v, step), aie::filter_odd(v, step)));               \
    }
MOVEMENT(int8)
MOVEMENT(int16)
MOVEMENT(int4)

void swap_halves(const int16 *in, int16 *out) {
    const auto v = aie::load_v<32>(in);
    aie::vector<int16, 32> swapped;
    swapped.insert(0, v.extract<16>(1));
    swapped.insert(1, v.extract<16>(0));
    aie::store_v(out, swapped.grow<64>().extract<32>(0));
}
void multiply_add(const int16 *a, const int16 *b, int32 *out) {
    const auto x = aie::load_v<32>(a), y = aie::load_v<32>(b);
    const auto acc = aie::msc(aie::mac(aie::mac(aie::mul(x, y), x, x), x, y), y, y);  // 2xy + xx - yy
    aie::store_v(out, aie::sub(aie::add(acc, acc), aie::neg(acc)).to_vector<int32>());
}

void scalars(int32 a, uint32 b, int64 c, int64 *out) { out[0] = a, out[1] = b, out[2] = c; }

void fault_undefined_vector(uint8 *p) { aie::store_v(p, aie::add(aie::vector<uint8, 64>(), aie::load_v<64>(p))); }
void fault_undefined_half(uint8 *p) { aie::store_v(p, aie::load_v<32>(p).grow<64>()); }
void fault_undefined_lane(uint8 *p) { p[0] = aie::vector<uint8, 64>().get(5); }
void fault_undefined_accum(int32 *p) { aie::store_v(p, aie::accum<acc32, 16>().to_vector<int32>()); }
void fault_undefined_mmul(int32 *p) { aie::store_v(p, aie::mmul<8, 8, 8, int8>().to_vector<int32>()); }
void fault_undefined_initial(int32 *p) {
    aie::mmul<8, 8, 8, int8> c = aie::accum<acc32, 64>();
    aie::store_v(p, c.to_vector<int32>());
}
void fault_undefined_operand(int8 *p) {
    aie::mmul<8, 8, 8, int8> c;
    c.mul(aie::load_v<64>(p), aie::vector<int8, 64>());
}
void load_128(const uint8 *p, uint8 *out) { aie::store_v(out, aie::load_v<16>(p)); }
void load_256(const uint8 *p, uint8 *out) { aie::store_v(out, aie::load_v<32>(p)); }
void load_512(const uint8 *p, uint8 *out) { aie::store_v(out, aie::load_v<64>(p)); }
void fault_get_beyond(const uint8 *p) { (void)aie::load_v<64>(p).get(64); }
void fault_extract_beyond(const uint8 *p) { (void)aie::load_v<64>(p).extract<32>(2); }

}  // extern "C"
