#pragma once
// Operands at random, C by the definition of a matrix product, and memory in whole pages.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

namespace unit {

struct Operands {
    std::size_t M, K, N;
    std::vector<std::int8_t> a, weights;
    std::vector<std::int32_t> c;
};

/// Makes C of A and B.
inline void multiply(Operands& given) {
    auto& [M, K, N, a, weights, c] = given;
    c.assign(M * N, 0);
    for (std::size_t i = 0; i < M * N; ++i)
        for (std::size_t k = 0; k < K; ++k) c[i] += a[i / N * K + k] * weights[k * N + i % N];
}

inline Operands operands(std::size_t M, std::size_t K, std::size_t N) {
    std::mt19937 random(static_cast<std::uint32_t>(M * 31 + K * 17 + N));
    Operands made{M, K, N, std::vector<std::int8_t>(M * K), std::vector<std::int8_t>(K * N), {}};
    for (auto& value : made.a) value = static_cast<std::int8_t>(random());
    for (auto& value : made.weights) value = static_cast<std::int8_t>(static_cast<int>(random() % 3) - 1);
    multiply(made);
    return made;
}

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};
template <class Element>
using Pages = std::unique_ptr<Element[], Free>;

/// Whole pages for `count` elements, filled with 7.
template <class Element>
Pages<Element> pages(std::size_t count) {
    const std::size_t bytes = (count * sizeof(Element) + 4095) / 4096 * 4096;
    auto* memory = static_cast<Element*>(std::aligned_alloc(4096, bytes));
    std::fill_n(memory, bytes / sizeof(Element), Element{7});
    return Pages<Element>(memory);
}

}  // namespace unit
