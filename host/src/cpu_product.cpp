#include "cpu_product.hpp"

#include <algorithm>
#include <vector>

#include "bdforge/copies.hpp"
#include "widest.hpp"

namespace bdforge {
namespace {

constexpr std::size_t tile_rows = 8;  // of C and A, for each pass over B
constexpr std::size_t lanes = 32;     // of sums, a fixed number, which every compiler turns into vectors

float element(const Factor& factor, std::size_t rows, std::size_t columns, std::size_t row, std::size_t column) {
    return factor.turned ? factor.data[column * rows + row] : factor.data[row * columns + column];
}

/// c += a * b, element by element.
inline void add_scaled(const float* __restrict b, float a, float* __restrict c, std::size_t count) {
    std::size_t at = 0;
    for (; at + lanes <= count; at += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) c[at + lane] += a * b[at + lane];
    for (; at < count; ++at) c[at] += a * b[at];
}

inline float dot(const float* a, const float* b, std::size_t count) {
    float sums[lanes] = {}, sum = 0;
    std::size_t at = 0;
    for (; at + lanes <= count; at += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[at + lane] * b[at + lane];
    for (; at < count; ++at) sum += a[at] * b[at];
    for (const float lane : sums) sum += lane;
    return sum;
}

/// Rows [first, last) of C.
BDFORGE_WIDEST void rows_of(const FloatProduct& product, std::size_t first, std::size_t last) {
    const auto& [M, K, N, a, b, c, add, bias] = product;
    std::vector<float> lines(tile_rows * K);
    for (std::size_t top = first; top < last; top += tile_rows) {
        const std::size_t rows = std::min(tile_rows, last - top);
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t k = 0; k < K; ++k) lines[row * K + k] = element(a, M, K, top + row, k);
            float* const sums = c + (top + row) * N;
            if (!add) std::fill_n(sums, N, 0.0F);
            for (std::size_t column = 0; bias != nullptr && column < N; ++column) sums[column] += bias[column];
        }
        for (std::size_t k = 0; !b.turned && k < K; ++k)
            for (std::size_t row = 0; row < rows; ++row)
                add_scaled(b.data + k * N, lines[row * K + k], c + (top + row) * N, N);
        for (std::size_t column = 0; b.turned && column < N; ++column)
            for (std::size_t row = 0; row < rows; ++row)
                c[(top + row) * N + column] += dot(lines.data() + row * K, b.data + column * K, K);
    }
}

}  // namespace

void compute_on_cpu(const FloatProduct& product) {
    const std::size_t bytes = product.M * product.N * product.K;  // each worth a multiplication, as long as a byte's copy
    in_parts(product.M, bytes, [&](std::size_t first, std::size_t last) { rows_of(product, first, last); });
}

}  // namespace bdforge
