// Products of int8 matrices, which most programs are made of, in the instructions that this machine has. They are chosen
// when it runs: compilers turn loops of their own into VPDPBUSD wrongly (`bdforge.common.compilers`), so flags leave it out.
#pragma once

#include "width.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace engine::bytes {

// rows x 8 x 8 of bytes.
inline void plain(int rows, const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, std::int32_t* p) {
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < 8; ++j) {
            std::int64_t sum = 0;
            for (int k = 0; k < 8; ++k)
                sum += width::lane_of(s1, 8, 8 * i + k, sign1) * width::lane_of(s2, 8, 8 * k + j, sign2);
            p[8 * i + j] = std::int32_t(sum);
        }
}

#ifdef __x86_64__
// rows x 8 x 8 of bytes, by pairs of depth.
[[gnu::target("avx2")]] inline void avx2(
    int rows, const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, std::int32_t* p) {
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

// VPDPBUSD by its name: flags may have left it out.
[[gnu::always_inline, gnu::target("avx512f")]] inline __m512i dot(__m512i sum, __m512i bytes, __m512i signs) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(signs));
    return sum;
}

// Sums that products are added to: the first as a mask says, 16 lanes at a time.
struct Sums {
    const std::uint8_t *first = nullptr, *second = nullptr;
    std::uint16_t mask = 0xFFFF;
};

// Rows x 8 x 8 of bytes, two rows at a time. The instruction multiplies unsigned by signed bytes: signed ones of A are
// taken 128 higher, unsigned ones of B 128 lower, and what that adds is the sum with which a lane starts.
template <int Rows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi")]] inline void vnni_rows(
    const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, std::int32_t* p,
    const Sums& sums = {}) {
    alignas(64) static constexpr auto kColumns = [] {  // byte of B for each byte: four of a column together
        std::array<std::uint8_t, 64> from{};
        for (int i = 0; i < 64; ++i) from[i] = std::uint8_t(i % 4 * 8 + i % 32 / 4);
        return from;
    }();
    const __m512i high = _mm512_set1_epi8(char(0x80)), columns = _mm512_load_si512(kColumns.data());
    const __m512i none = _mm512_setzero_si512(), ones = _mm512_set1_epi8(1);
    __m512i a = _mm512_maskz_loadu_epi8(Rows == 8 ? ~__mmask64(0) : ~__mmask64(0) >> 32, s1), b = _mm512_loadu_si512(s2);
    if (sign1) a = _mm512_xor_si512(a, high);
    if (!sign2) b = _mm512_xor_si512(b, high);
    const __m512i low = _mm512_permutexvar_epi8(columns, b);
    const __m512i top = _mm512_permutexvar_epi8(_mm512_add_epi8(columns, _mm512_set1_epi8(32)), b);
    __m512i start = none;
    if (sign1) {
        start = dot(dot(none, high, low), high, top);
        const __m512i both = _mm512_set1_epi32(sign2 ? 0 : 8 * 128 * 128);
        start = _mm512_sub_epi32(none, _mm512_add_epi32(start, both));
    }
    const __m512i pair = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2);
#pragma GCC unroll 4
    for (int i = 0; i < Rows; i += 2) {
        const __m512i at = _mm512_add_epi32(pair, _mm512_set1_epi32(2 * i));
        const __m512i first = _mm512_permutexvar_epi32(at, a);
        const __m512i second = _mm512_permutexvar_epi32(_mm512_add_epi32(at, _mm512_set1_epi32(1)), a);
        __m512i sum = start;
        if (!sign2) {  // what the bytes of A, as they were, add for B taken 128 lower
            const __m512i rows = dot(dot(none, first, ones), second, ones);
            sum = _mm512_add_epi32(sum, _mm512_slli_epi32(rows, 7));
        }
        if (sums.first) sum = _mm512_add_epi32(sum, _mm512_maskz_loadu_epi32(sums.mask, sums.first + 32 * i));
        if (sums.second) sum = _mm512_add_epi32(sum, _mm512_loadu_si512(sums.second + 32 * i));
        _mm512_storeu_si512(p + 8 * i, dot(dot(sum, first, low), second, top));
    }
}

[[gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi")]] inline void vnni(
    int rows, const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, std::int32_t* p) {
    rows == 8 ? vnni_rows<8>(s1, s2, sign1, sign2, p) : vnni_rows<4>(s1, s2, sign1, sign2, p);
}
#endif

using Product = void (*)(int, const std::uint8_t*, const std::uint8_t*, bool, bool, std::int32_t*);

// Those that this machine runs, the best one first.
inline std::vector<Product> all() {
    std::vector<Product> found;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi")) found.push_back(vnni);
    if (__builtin_cpu_supports("avx2")) found.push_back(avx2);
#endif
    found.push_back(plain);
    return found;
}

inline Product product = all().front();

// Whether this machine has VPDPBUSD.
inline bool has_dot() {
#ifdef __x86_64__
    return all().front() == vnni;
#else
    return false;
#endif
}

// A product of signed bytes that is added to sums, in the middle of compiled states.
template <int Rows>
BDFORGE_OFTEN void add_product(const std::uint8_t* s1, const std::uint8_t* s2, const Sums& sums, std::uint8_t* to) {
#if defined(BDFORGE_DOT) && defined(__AVX512VBMI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
    vnni_rows<Rows>(s1, s2, true, true, reinterpret_cast<std::int32_t*>(to), sums);
#else
    std::uint32_t made[8 * Rows];
    product(Rows, s1, s2, true, true, reinterpret_cast<std::int32_t*>(made));
    for (int i = 0; i < 8 * Rows; ++i) {
        if (sums.first && sums.mask) made[i] += load<std::uint32_t>(sums.first + 4 * i);
        if (sums.second) made[i] += load<std::uint32_t>(sums.second + 4 * i);
    }
    std::memcpy(to, made, sizeof made);
#endif
}

}  // namespace engine::bytes
