#pragma once
/// ggml's ternary blocks as codes and scales.

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows.hpp"

namespace bdforge::ggml {

/// A matrix where ggml has it: N rows of K elements, `stride` bytes apart, in blocks along K that have a scale each.
struct Plane {
    const std::byte* data;
    ggml_type type;
    std::size_t K, N, stride;

    std::size_t blocks() const { return K / static_cast<std::size_t>(ggml_blck_size(type)); }
    const std::byte* block(std::size_t row, std::size_t index) const {
        return data + row * stride + index * ggml_type_size(type);
    }
};

/// Elements as -1, 0, 1, K x N, and scales, blocks x N; a block of zeros has scale 0.
struct Decoded {
    std::vector<std::int8_t> codes;
    std::vector<float> scales;
};

/// A matrix, decoded by ggml's own function. WeightError for values that are not ternary.
Decoded decoded(const Plane& plane, const Workers& workers);

}  // namespace bdforge::ggml
