#pragma once
// Matrices of small whole numbers, whose products are exact in bf16 with sums in f32, and their products by definition.

#include <cstddef>
#include <vector>

#include "bdforge/floats.hpp"
#include "unit.hpp"

namespace unit {

inline std::vector<float> whole_numbers(std::size_t count, std::uint32_t seed) {
    std::vector<float> made(count);
    std::uint32_t state = seed * 2654435761U + 1;
    for (float& value : made) value = static_cast<float>(static_cast<int>((state = state * 1664525U + 1013904223U) >> 28) - 8);
    return made;
}

inline float element(const bdforge::Factor& factor, std::size_t rows, std::size_t columns, std::size_t row, std::size_t column) {
    return factor.data[factor.turned ? column * rows + row : row * columns + column];
}

/// What the product makes of what its c holds now.
inline std::vector<float> by_definition(const bdforge::FloatProduct& product) {
    const auto& [M, K, N, a, b, c, add, bias] = product;
    std::vector<float> made(M * N);
    for (std::size_t i = 0; i < M; ++i) {
        for (std::size_t j = 0; j < N; ++j) {
            float& sum = made[i * N + j];
            sum = (add ? c[i * N + j] : 0) + (bias == nullptr ? 0 : bias[j]);
            for (std::size_t k = 0; k < K; ++k) sum += element(a, M, K, i, k) * element(b, K, N, k, j);
        }
    }
    return made;
}

}  // namespace unit
