#include "cpu.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "bdforge/copies.hpp"
#include "widest.hpp"

namespace bdforge::cli {
namespace {

struct Shape {
    std::size_t M, K, N;
};

constexpr std::size_t lanes = 64;
constexpr std::size_t tile_rows = 8;  // of A, which stay in the first cache while W passes

/// Sums of products in lanes of a fixed number, which every compiler turns into vectors.
BDFORGE_WIDEST std::int32_t dot(const std::int8_t* a, const std::int8_t* w, std::size_t depth) {
    std::int32_t sums[lanes] = {};
    std::size_t k = 0;
    for (; k + lanes <= depth; k += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[k + lane] * w[k + lane];
    std::int32_t sum = 0;
    for (; k < depth; ++k) sum += a[k] * w[k];
    for (const std::int32_t lane : sums) sum += lane;
    return sum;
}

/// Columns [first, last) of C.
void multiply(const Shape& sizes, const std::int8_t* a, const std::int8_t* w, std::int32_t* c, std::size_t first,
              std::size_t last) {
    for (std::size_t top = 0; top < sizes.M; top += tile_rows) {
        const std::size_t bottom = std::min(top + tile_rows, sizes.M);
        for (std::size_t column = first; column < last; ++column) {
            for (std::size_t row = top; row < bottom; ++row)
                c[row * sizes.N + column] = dot(a + row * sizes.K, w + column * sizes.K, sizes.K);
        }
    }
}

}  // namespace

std::vector<double> cpu_runs(const Options& options, Energy& energy) {
    const Shape sizes{options.sizes.at("M"), options.sizes.at("K"), options.sizes.at("N")};
    std::vector<std::int8_t> a(sizes.M * sizes.K), w(sizes.N * sizes.K);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int8_t>(i * 37 % 251);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::int8_t>(i * 13 % 3 - 1);
    std::vector<std::int32_t> c(sizes.M * sizes.N);
    std::vector<double> times_ms;
    for (std::size_t i = 0; i < options.warmup + options.iterations; ++i) {
        if (i == options.warmup) energy.start();
        const auto start = std::chrono::steady_clock::now();
        in_parts(sizes.N, SIZE_MAX, [&](std::size_t first, std::size_t last) {
            multiply(sizes, a.data(), w.data(), c.data(), first, last);
        });
        const auto passed = std::chrono::steady_clock::now() - start;
        if (i >= options.warmup) times_ms.push_back(std::chrono::duration<double, std::milli>(passed).count());
    }
    energy.stop();
    return times_ms;
}

}  // namespace bdforge::cli
