// The multiplier, of integers.
#pragma once

#include "width.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace engine::multiply {

using I = std::int64_t;

struct Shape {
    int amode, bmode, variant, rows, depth, columns, bits1, bits2, lane;
};

constexpr Shape kAie2p[] = {
    {0, 1, 0, 8, 8, 8, 8, 8, 32},   {0, 1, 1, 64, 0, 1, 8, 8, 32},  {0, 2, 0, 8, 4, 8, 16, 8, 32},
    {0, 3, 0, 8, 2, 8, 16, 16, 32}, {1, 0, 0, 4, 2, 8, 32, 16, 64}, {1, 2, 0, 4, 8, 8, 16, 8, 64},
    {1, 3, 0, 4, 4, 8, 16, 16, 64}, {1, 3, 2, 32, 0, 1, 16, 16, 64},
};
constexpr Shape kAie2[] = {
    {0, 1, 0, 4, 8, 8, 8, 8, 32},  {0, 2, 0, 4, 4, 8, 16, 8, 32},  {0, 3, 0, 4, 2, 8, 16, 16, 32},
    {1, 2, 0, 2, 8, 8, 16, 8, 64}, {1, 3, 0, 2, 4, 8, 16, 16, 64},
};

template <std::size_t N>
const Shape* find(const Shape (&shapes)[N], std::uint32_t conf) {
    const int amode = conf >> 1 & 3, bmode = conf >> 3 & 3, variant = conf >> 5 & 7;
    for (const Shape& s : shapes)
        if (s.amode == amode && s.bmode == bmode && s.variant == variant) return &s;
    return nullptr;
}

inline const Shape* shape_of(Core& core, bool aie2, std::uint32_t conf) {
    const Shape* shape = aie2 ? find(kAie2, conf) : find(kAie2p, conf);
    if (!shape)
        core.fail(kOpen, "amode %d, bmode %d, variant %d of a multiplication are open", conf >> 1 & 3, conf >> 3 & 3,
                  conf >> 5 & 7);
    else if (conf >> 16)
        core.fail(kOpen, "sub_mask %#x of a multiplication is open", conf >> 16);
    return core.fault ? nullptr : shape;
}

template <class L>
void product(const Shape& s, const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, L* p) {
    using width::lane_of;
    if (!s.depth) {
        for (int i = 0; i < s.rows; ++i) p[i] = L(lane_of(s1, s.bits1, i, sign1) * lane_of(s2, s.bits2, i, sign2));
        return;
    }
    for (int i = 0; i < s.rows; ++i)
        for (int j = 0; j < s.columns; ++j) {
            I sum = 0;
            for (int k = 0; k < s.depth; ++k)
                sum += lane_of(s1, s.bits1, i * s.depth + k, sign1) * lane_of(s2, s.bits2, k * s.columns + j, sign2);
            p[i * s.columns + j] = L(sum);
        }
}

#ifdef __AVX2__
// rows x 8 x 8 of bytes, by pairs of depth.
inline void product_bytes(int rows, const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, std::int32_t* p) {
    const __m128i mix = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    __m256i b[4];
    for (int k = 0; k < 4; ++k) {
        const __m128i two = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(s2 + 16 * k)), mix);
        b[k] = sign2 ? _mm256_cvtepi8_epi16(two) : _mm256_cvtepu8_epi16(two);
    }
    for (int i = 0; i < rows; ++i) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(s1 + 8 * i));
        const __m128i a = sign1 ? _mm_cvtepi8_epi16(bytes) : _mm_cvtepu8_epi16(bytes);
        const __m256i both = _mm256_broadcastsi128_si256(a);
        const __m256i even = _mm256_add_epi32(_mm256_madd_epi16(_mm256_shuffle_epi32(both, 0x00), b[0]),
                                              _mm256_madd_epi16(_mm256_shuffle_epi32(both, 0x55), b[1]));
        const __m256i odd = _mm256_add_epi32(_mm256_madd_epi16(_mm256_shuffle_epi32(both, 0xAA), b[2]),
                                             _mm256_madd_epi16(_mm256_shuffle_epi32(both, 0xFF), b[3]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8 * i), _mm256_add_epi32(even, odd));
    }
}
#else
inline void product_bytes(int rows, const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, std::int32_t* p) {
    product(Shape{0, 1, 0, rows, 8, 8, 8, 8, 32}, s1, s2, sign1, sign2, p);
}
#endif

template <class L>
void add(L* total, const std::uint8_t* accumulator, int count, int shift, bool minus) {
    const L* from = reinterpret_cast<const L*>(accumulator);
    if (minus)
        for (int i = 0; i < count; ++i) total[i] -= from[i] << shift;
    else if (shift)
        for (int i = 0; i < count; ++i) total[i] += from[i] << shift;
    else
        for (int i = 0; i < count; ++i) total[i] += from[i];
}

// U is unsigned: lanes wrap.
template <class U>
void accumulated(Core& core, const Event& event, std::uint8_t* buffer, U* total, int count, std::uint32_t conf) {
    const int accumulators = event.o[1];
    const bool minus = (event.o[2] != 0) != ((conf >> 11 & 1) != 0);
    if (minus)
        for (int i = 0; i < count; ++i) total[i] = U(0) - total[i];
    if (accumulators > 0 && !(conf & 1))
        add(total, core.at(event.a[0], buffer), count, conf >> 10 & 1 ? 16 : 0, conf >> 12 & 1);
    if (accumulators > 1) add(total, core.at(event.a[1], buffer), count, 0, conf >> 13 & 1);
}

// a: accumulators, s1, s2, conf, dst; o: whether AIE2, accumulators, minus.
inline void multiply(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[1];
    const std::uint32_t conf = word(core, event, buffer, n + 2);
    const bool aie2 = event.o[0] != 0;
    const bool usual = (conf & ~0x3F01u) == 0x8;  // int8 matrices
    const Shape* shape = usual ? (aie2 ? kAie2 : kAie2p) : shape_of(core, aie2, conf);
    if (!shape) return;
    const std::uint8_t* s1 = core.at(event.a[n], buffer);
    const std::uint8_t* s2 = core.at(event.a[n + 1], buffer);
    const bool sign1 = conf >> 9 & 1, sign2 = conf >> 8 & 1;
    const int count = shape->rows * shape->columns;
    if (shape->lane == 32) {
        auto* total = reinterpret_cast<std::uint32_t*>(core.at(event.a[n + 3], buffer));
        auto* p = reinterpret_cast<std::int32_t*>(total);
        if (usual) product_bytes(shape->rows, s1, s2, sign1, sign2, p);
        else product(*shape, s1, s2, sign1, sign2, total);
        accumulated(core, event, buffer, total, count, conf);
    } else {
        auto* total = reinterpret_cast<std::uint64_t*>(core.at(event.a[n + 3], buffer));
        product(*shape, s1, s2, sign1, sign2, total);
        accumulated(core, event, buffer, total, count, conf);
    }
}

// a: accumulators, conf, dst; o: bits, minus acc1, minus acc2, accumulators.
inline void accumulate(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[3];
    const std::uint32_t conf = word(core, event, buffer, n), amode = conf >> 1 & 3;
    if (amode > 1) return core.fail(kOpen, "amode %u of an addition of accumulators is open", amode);
    if (conf & 0x3C01 || conf >> 16) return core.fail(kOpen, "conf %#x of an addition of accumulators is open", conf);
    const auto run = [&](auto zero) {
        using U = decltype(zero);
        U total[64] = {};
        const int count = event.o[0] / (8 * int(sizeof(U)));
        for (int i = 0; i < n; ++i) add(total, core.at(event.a[i], buffer), count, 0, event.o[1 + i] != 0);
        std::memcpy(core.at(event.a[n + 1], buffer), total, sizeof(U) * count);
    };
    if (amode) run(std::uint64_t{});
    else run(std::uint32_t{});
}

inline const Named kTable[] = {{"multiply", multiply}, {"accumulate", accumulate}};

}  // namespace engine::multiply
