#include "matrix.hpp"

#include <utility>

namespace bdforge::ggml {
namespace {

/// Takes the scales of one more block: false when a column has another one already. Zeros go with any.
bool joins(std::vector<float>& scales, const float* more) {
    for (std::size_t n = 0; n < scales.size(); ++n)
        if (scales[n] != 0 && more[n] != 0 && scales[n] != more[n]) return false;
    for (std::size_t n = 0; n < scales.size(); ++n)
        if (more[n] != 0) scales[n] = more[n];
    return true;
}

Part packed(const Design& design, bool scaled, const Decoded& decoded, std::size_t first, std::size_t depth,
            std::vector<float> scales) {
    const std::size_t N = scales.size();
    Part made{first, depth, std::move(scales), Resident(design, "B", {{"K", depth}, {"N", N}}), std::nullopt};
    made.b.place("B", {decoded.codes.data() + first * N, depth * N});
    if (!scaled) return made;
    made.column_scales.emplace(design, "column_scales", Sizes{{"N", N}});
    made.column_scales->place("column_scales", {made.scales.data(), N * sizeof(float)});
    return made;
}

}  // namespace

Matrix::Matrix(const Design& design, bool scaled, const Plane& plane, const Workers& workers) : N_(plane.N) {
    const Decoded matrix = decoded(plane, workers);
    const std::size_t size = plane.K / plane.blocks();
    std::size_t first = 0;
    std::vector<float> scales(N_, 0);
    for (std::size_t block = 0; block < plane.blocks(); ++block) {
        if (joins(scales, &matrix.scales[block * N_])) continue;
        parts_.push_back(packed(design, scaled, matrix, first * size, (block - first) * size, std::move(scales)));
        first = block;
        scales.assign(&matrix.scales[block * N_], &matrix.scales[block * N_] + N_);
    }
    parts_.push_back(packed(design, scaled, matrix, first * size, plane.K - first * size, std::move(scales)));
}

}  // namespace bdforge::ggml
