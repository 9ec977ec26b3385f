// Products on processors, for Python (`bdforge.models.processor` has the same signatures).
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "threads.hpp"
#include "vectors.hpp"

using namespace ternary;

namespace {

constexpr std::size_t panel_bytes = 64 << 10;  // of weights, which a second level of cache holds for all rows
constexpr std::size_t line = 64;

/// All that this processor has, best first; the last is for every one.
const Kernels* const* available() {
    static const Kernels* found[5] = {};
    static const bool once = [] {
        const Kernels** next = found;
#ifdef __x86_64__
        __builtin_cpu_init();
        const bool vectors = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni")) *next++ = &avx512::kernels;
        if (vectors && __builtin_cpu_supports("avxvnni")) *next++ = &avx_vnni::kernels;
        if (vectors) *next++ = &avx2::kernels;
#endif
        *next = &plain::kernels;
        return true;
    }();
    (void)once;
    return found;
}

const FloatKernels& float_kernels() {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) return avx2::floats;
#endif
    return plain::floats;
}

float to_bf16(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return plain::of_bits((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);
}

/// Rows of int8, filled up with zeros to whole steps, and their sums.
class Rows {
public:
    Rows(const std::int8_t* codes, std::size_t M, std::size_t K)
        : size_(steps(K) * step), memory_(static_cast<std::int8_t*>(std::aligned_alloc(line, std::max(line, M * size_)))),
          sums_(new std::int32_t[M + 1]) {
        if (memory_ == nullptr) throw std::bad_alloc();
        for (std::size_t m = 0; m < M; ++m) {
            std::int8_t* const row = memory_.get() + m * size_;
            std::memcpy(row, codes + m * K, K);
            std::memset(row + K, 0, size_ - K);
            std::int32_t sum = 0;
            for (std::size_t k = 0; k < size_; ++k) sum += row[k];
            sums_[m] = sum;
        }
    }

    const std::int8_t* row(std::size_t m) const { return memory_.get() + m * size_; }
    std::int32_t sum(std::size_t m) const { return sums_[m]; }

private:
    struct Free {
        void operator()(std::int8_t* memory) const { std::free(memory); }
    };
    std::size_t size_;
    std::unique_ptr<std::int8_t, Free> memory_;
    std::unique_ptr<std::int32_t[]> sums_;
};

/// Calls take(m, n, sum) for all of M x N, a panel of columns after the other on all threads.
template <typename Take>
void multiply(const Kernels& kernels, const std::uint8_t* packed, const std::int8_t* codes, std::size_t M, std::size_t K,
              std::size_t N, const Take& take) {
    const Rows rows(codes, M, K);
    const std::size_t depth = steps(K), block_bytes = depth * step_bytes * columns, all = blocks(N);
    const std::size_t panel = std::max<std::size_t>(1, panel_bytes / block_bytes);
    threads().run((all + panel - 1) / panel, [&](std::size_t part) {
        for (std::size_t m = 0; m < M; m += block_rows) {
            const std::size_t count = std::min(block_rows, M - m);
            const std::int8_t* few[block_rows];
            for (std::size_t i = 0; i < count; ++i) few[i] = rows.row(m + i);
            for (std::size_t block = part * panel; block < std::min(all, (part + 1) * panel); ++block) {
                std::int32_t sums[block_rows * columns];
                kernels.of[count - 1](packed + block * block_bytes, few, depth, sums);
                for (std::size_t i = 0; i < count; ++i)
                    for (std::size_t n = 0; n < columns && block * columns + n < N; ++n)
                        take(m + i, block * columns + n, sums[i * columns + n] - rows.sum(m + i));
            }
        }
    });
}

}  // namespace

extern "C" {

/// Names of what this processor has, the best first.
const char* products_kernel(int which) {
    const Kernels* const found = available()[which];
    return found == nullptr ? nullptr : found->name;
}

std::size_t products_packed_bytes(std::size_t K, std::size_t N) { return blocks(N) * columns * steps(K) * step_bytes; }

/// Packs weights (K x N, row-major, -1 to 1).
void products_pack(const std::int8_t* weights, std::size_t K, std::size_t N, std::uint8_t* packed) {
    threads().run(blocks(N), [&](std::size_t block) {
        std::uint8_t* out = packed + block * steps(K) * columns * step_bytes;
        for (std::size_t first = 0; first < K; first += step, out += columns * step_bytes) {
            std::memset(out, 0x55, columns * step_bytes);
            for (std::size_t k = first; k < std::min(K, first + step); ++k)
                for (std::size_t n = 0; n < columns && block * columns + n < N; ++n) {
                    const std::size_t field = (k - first) / step_bytes, j = (k - first) % step_bytes;
                    std::uint8_t& byte = out[n * step_bytes + j];
                    const int change = weights[k * N + block * columns + n] << 2 * field;
                    byte = static_cast<std::uint8_t>(byte + change);
                }
        }
    });
}

/// codes (M x K) @ weights, times the scale of each row and of each column: float32 of M x N, which hold bf16 where
/// `narrow`; false without memory.
bool products_scaled(int which, const std::uint8_t* packed, const std::int8_t* codes, std::size_t M, std::size_t K,
                     std::size_t N, const float* row_scales, const float* column_scales, bool narrow, float* out) {
    try {
        multiply(*available()[which], packed, codes, M, K, N, [&](std::size_t m, std::size_t n, std::int32_t sum) {
            const float value = static_cast<float>(sum) * row_scales[m] * column_scales[n];
            out[m * N + n] = narrow ? to_bf16(value) : value;
        });
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

/// x (M x K, float32) @ table^T, of N rows of K elements: `kind` 0 float32, 1 float16, 2 bfloat16, 3 Q8_0.
/// Out: M x N.
void products_floats(int kind, const void* table, const float* x, std::size_t M, std::size_t K, std::size_t N, float* out) {
    const FloatKernels& found = float_kernels();
    const Dots dots = kind == 0 ? found.f32 : kind == 1 ? found.f16 : kind == 2 ? found.bf16 : found.q8;
    const std::size_t bytes = kind == 3 ? K / 32 * sizeof(plain::Q8) : K * (kind == 0 ? 4 : 2);
    const std::size_t panel = std::max<std::size_t>(1, panel_bytes / bytes);
    threads().run((N + panel - 1) / panel, [&](std::size_t part) {
        const std::size_t first = part * panel, rows = std::min(panel, N - first);
        for (std::size_t m = 0; m < M; ++m)
            dots(static_cast<const char*>(table) + first * bytes, rows, K, x + m * K, out + m * N + first);
    });
}
}
