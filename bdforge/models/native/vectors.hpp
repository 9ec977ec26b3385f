#pragma once
#include <cstring>

#include "ternary.hpp"

namespace ternary {

// What every compiler turns into the vectors that each processor of its kind has.
namespace plain {

template <std::size_t M>
void sums_of(const std::uint8_t* block, const std::int8_t* const* rows, std::size_t depth, std::int32_t* sums) {
    std::memset(sums, 0, M * columns * sizeof *sums);
    for (std::size_t at = 0; at < depth; ++at)
        for (std::size_t n = 0; n < columns; ++n, block += step_bytes)
            for (std::size_t m = 0; m < M; ++m) {
                const std::int8_t* const row = rows[m] + at * step;
                std::int32_t sum = 0;
                for (std::size_t j = 0; j < step_bytes; ++j) {
                    std::int16_t four = 0;
                    for (std::size_t field = 0; field < 4; ++field)
                        four = static_cast<std::int16_t>(
                            four + static_cast<std::int16_t>(block[j] >> 2 * field & 3) * row[field * step_bytes + j]);
                    sum += four;
                }
                sums[m * columns + n] += sum;
            }
}

inline float of_bits(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline float widened(float value) { return value; }

struct Bf16 {
    std::uint16_t bits;
};
inline float widened(Bf16 value) { return of_bits(std::uint32_t{value.bits} << 16); }

struct F16 {
    std::uint16_t bits;
};
inline float widened(F16 value) {
    const std::uint32_t sign = (value.bits & 0x8000U) << 16, rest = value.bits & 0x7fffU;
    if (rest >= 0x7c00U) return of_bits(sign | 0x7f800000U | rest << 13);
    if (rest >= 0x0400U) return of_bits(sign | ((rest << 13) + 0x38000000U));
    const float tiny = static_cast<float>(rest) * 0x1p-24F;
    return sign != 0 ? -tiny : tiny;
}

template <typename T>
void dots(const void* table, std::size_t rows, std::size_t size, const float* x, float* out) {
    constexpr std::size_t lanes = 16;
    const T* line = static_cast<const T*>(table);
    for (std::size_t row = 0; row < rows; ++row, line += size) {
        float parts[lanes] = {}, sum = 0;
        std::size_t at = 0;
        for (; at + lanes <= size; at += lanes)
            for (std::size_t lane = 0; lane < lanes; ++lane) parts[lane] += widened(line[at + lane]) * x[at + lane];
        for (; at < size; ++at) sum += widened(line[at]) * x[at];
        for (const float part : parts) sum += part;
        out[row] = sum;
    }
}

/// ggml's Q8_0: 32 elements, each d * code.
struct Q8 {
    F16 scale;
    std::int8_t codes[32];
};
static_assert(sizeof(Q8) == 34);

inline void dots_q8(const void* table, std::size_t rows, std::size_t size, const float* x, float* out) {
    const Q8* block = static_cast<const Q8*>(table);
    for (std::size_t row = 0; row < rows; ++row) {
        float sum = 0;
        for (std::size_t at = 0; at < size; at += 32, ++block) {
            float part = 0;
            for (std::size_t i = 0; i < 32; ++i) part += static_cast<float>(block->codes[i]) * x[at + i];
            sum += widened(block->scale) * part;
        }
        out[row] = sum;
    }
}

constexpr Kernels kernels{"plain", {sums_of<1>, sums_of<2>, sums_of<3>, sums_of<4>}};
constexpr FloatKernels floats{dots<float>, dots<F16>, dots<Bf16>, dots_q8};

}  // namespace plain
}  // namespace ternary

#ifdef __x86_64__
#include <immintrin.h>

namespace ternary {

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
namespace avx2 {

inline std::int32_t total(__m256i v) {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

/// Products of codes up to 2 and bytes are summed in 16 bits: 8 pairs of at most 512 a step.
template <std::size_t M>
void sums_of(const std::uint8_t* block, const std::int8_t* const* rows, std::size_t depth, std::int32_t* sums) {
    const __m256i mask = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
    __m256i wide[M][columns] = {};
    for (std::size_t at = 0; at < depth; ++at)
        for (std::size_t n = 0; n < columns; ++n, block += step_bytes) {
            __m256i narrow[M] = {};
            for (std::size_t half = 0; half < step_bytes; half += 32) {
                const __m256i packed = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + half));
                for (int field = 0; field < 4; ++field) {
                    const __m256i codes = _mm256_and_si256(_mm256_srli_epi16(packed, 2 * field), mask);
                    for (std::size_t m = 0; m < M; ++m) {
                        const auto* const row = rows[m] + at * step + field * step_bytes + half;
                        const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
                        narrow[m] = _mm256_add_epi16(narrow[m], _mm256_maddubs_epi16(codes, values));
                    }
                }
            }
            for (std::size_t m = 0; m < M; ++m)
                wide[m][n] = _mm256_add_epi32(wide[m][n], _mm256_madd_epi16(narrow[m], ones));
        }
    for (std::size_t m = 0; m < M; ++m)
        for (std::size_t n = 0; n < columns; ++n) sums[m * columns + n] = total(wide[m][n]);
}

inline __m256 eight(const float* at) { return _mm256_loadu_ps(at); }
inline __m256 eight(const plain::F16* at) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))); }
inline __m256 eight(const plain::Bf16* at) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

template <typename T>
void dots(const void* table, std::size_t rows, std::size_t size, const float* x, float* out) {
    const T* line = static_cast<const T*>(table);
    for (std::size_t row = 0; row < rows; ++row, line += size) {
        __m256 parts[4] = {};
        std::size_t at = 0;
        for (; at + 32 <= size; at += 32)
            for (std::size_t i = 0; i < 4; ++i)
                parts[i] = _mm256_fmadd_ps(eight(line + at + 8 * i), _mm256_loadu_ps(x + at + 8 * i), parts[i]);
        float lanes[8], sum = 0;
        _mm256_storeu_ps(lanes, _mm256_add_ps(_mm256_add_ps(parts[0], parts[1]), _mm256_add_ps(parts[2], parts[3])));
        for (; at < size; ++at) sum += plain::widened(line[at]) * x[at];
        for (const float lane : lanes) sum += lane;
        out[row] = sum;
    }
}

inline void dots_q8(const void* table, std::size_t rows, std::size_t size, const float* x, float* out) {
    const auto* block = static_cast<const plain::Q8*>(table);
    for (std::size_t row = 0; row < rows; ++row) {
        __m256 sums = _mm256_setzero_ps();
        for (std::size_t at = 0; at < size; at += 32, ++block) {
            __m256 part = _mm256_setzero_ps();
            for (std::size_t i = 0; i < 32; i += 8) {
                const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block->codes + i));
                part = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), eight(x + at + i), part);
            }
            sums = _mm256_fmadd_ps(_mm256_set1_ps(_cvtsh_ss(block->scale.bits)), part, sums);
        }
        float lanes[8], sum = 0;
        _mm256_storeu_ps(lanes, sums);
        for (const float lane : lanes) sum += lane;
        out[row] = sum;
    }
}

constexpr Kernels kernels{"AVX2", {sums_of<1>, sums_of<2>, sums_of<3>, sums_of<4>}};
constexpr FloatKernels floats{dots<float>, dots<plain::F16>, dots<plain::Bf16>, dots_q8};

}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avxvnni")
namespace avx_vnni {

template <std::size_t M>
void sums_of(const std::uint8_t* block, const std::int8_t* const* rows, std::size_t depth, std::int32_t* sums) {
    const __m256i mask = _mm256_set1_epi8(3);
    __m256i wide[M][columns] = {};
    for (std::size_t at = 0; at < depth; ++at)
        for (std::size_t n = 0; n < columns; ++n, block += step_bytes)
            for (std::size_t half = 0; half < step_bytes; half += 32) {
                const __m256i packed = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + half));
                for (int field = 0; field < 4; ++field) {
                    const __m256i codes = _mm256_and_si256(_mm256_srli_epi16(packed, 2 * field), mask);
                    for (std::size_t m = 0; m < M; ++m) {
                        const auto* const row = rows[m] + at * step + field * step_bytes + half;
                        const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
                        wide[m][n] = _mm256_dpbusd_avx_epi32(wide[m][n], codes, values);
                    }
                }
            }
    for (std::size_t m = 0; m < M; ++m)
        for (std::size_t n = 0; n < columns; ++n) sums[m * columns + n] = avx2::total(wide[m][n]);
}

constexpr Kernels kernels{"AVX-VNNI", {sums_of<1>, sums_of<2>, sums_of<3>, sums_of<4>}};

}  // namespace avx_vnni
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vnni")
namespace avx512 {

template <std::size_t M>
void sums_of(const std::uint8_t* block, const std::int8_t* const* rows, std::size_t depth, std::int32_t* sums) {
    const __m512i mask = _mm512_set1_epi8(3);
    __m512i wide[M][columns] = {};
    for (std::size_t at = 0; at < depth; ++at)
        for (std::size_t n = 0; n < columns; ++n, block += step_bytes) {
            const __m512i packed = _mm512_loadu_si512(block);
            for (int field = 0; field < 4; ++field) {
                const __m512i codes = _mm512_and_si512(_mm512_srli_epi16(packed, 2 * field), mask);
                for (std::size_t m = 0; m < M; ++m)
                    wide[m][n] = _mm512_dpbusd_epi32(
                        wide[m][n], codes, _mm512_loadu_si512(rows[m] + at * step + field * step_bytes));
            }
        }
    for (std::size_t m = 0; m < M; ++m)
        for (std::size_t n = 0; n < columns; ++n) sums[m * columns + n] = _mm512_reduce_add_epi32(wide[m][n]);
}

constexpr Kernels kernels{"AVX512-VNNI", {sums_of<1>, sums_of<2>, sums_of<3>, sums_of<4>}};

}  // namespace avx512
#pragma GCC pop_options

}  // namespace ternary
#endif
