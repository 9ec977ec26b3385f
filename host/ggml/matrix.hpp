#pragma once
/// ggml's ternary matrices as the array takes them.

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bdforge/bdforge.hpp"
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

/// Some of a matrix's blocks along K, in which each of the N columns of K x N has one scale: a product of its own.
struct Part {
    std::size_t first, depth;
    std::vector<float> scales;
    Resident b;
    std::optional<Resident> column_scales;  // of designs that scale on the array
};

/// A matrix, packed and resident: one part where the scale is the same all along K, as in BitNet, up to one a block.
class Matrix {
public:
    /// WeightError for values that are not ternary; errors as of Resident.
    Matrix(const Design& design, bool scaled, const Plane& plane, const Workers& workers);
    Matrix(const Matrix&) = delete;
    Matrix& operator=(const Matrix&) = delete;

    std::size_t N() const { return N_; }
    const std::vector<Part>& parts() const { return parts_; }

private:
    std::size_t N_;
    std::vector<Part> parts_;
};

}  // namespace bdforge::ggml
