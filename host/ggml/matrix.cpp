#include "matrix.hpp"

#include <cmath>
#include <string>

#include "messages.hpp"

namespace bdforge::ggml {
namespace {

constexpr std::size_t strip = 32;  // of ggml's rows that are turned into columns together

[[noreturn]] void not_ternary(const Plane& plane, std::size_t row, std::size_t block) {
    throw WeightError(concat(ggml_type_name(plane.type), " weights: row ", row, ", block ", block,
                           " holds other values than -d, 0 and d; quantise the model again"));
}

/// Elements as -1, 0, 1, K x N, and scales, blocks x N; a block of zeros has scale 0.
struct Decoded {
    std::vector<std::int8_t> codes;
    std::vector<float> scales;
};

/// Decodes rows `first` to `last` by ggml's own function.
void decode(const Plane& plane, std::size_t first, std::size_t last, Decoded& made) {
    const std::size_t size = plane.K / plane.blocks();
    const ggml_to_float_t to_float = ggml_get_type_traits(plane.type)->to_float;
    std::vector<float> values(plane.K);
    std::vector<std::int8_t> codes(plane.K * strip);  // of a strip, K x strip
    for (std::size_t row = first; row < last; ++row) {
        to_float(plane.data + row * plane.stride, values.data(), static_cast<std::int64_t>(plane.K));
        const std::size_t within = (row - first) % strip;
        for (std::size_t block = 0; block < plane.blocks(); ++block) {
            float largest = 0;
            for (std::size_t k = block * size; k < (block + 1) * size; ++k)
                largest = std::max(largest, std::fabs(values[k]));
            made.scales[block * plane.N + row] = largest;
            for (std::size_t k = block * size; k < (block + 1) * size; ++k) {
                const bool zero = values[k] == 0;
                if (!zero && !(std::fabs(values[k]) == largest && largest <= 3.4e38F)) not_ternary(plane, row, block);
                codes[k * strip + within] = static_cast<std::int8_t>(zero ? 0 : values[k] < 0 ? -1 : 1);
            }
        }
        if (within + 1 < strip && row + 1 < last) continue;
        for (std::size_t k = 0; k < plane.K; ++k)
            std::copy_n(&codes[k * strip], within + 1, &made.codes[k * plane.N + row - within]);
    }
}

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
    Decoded decoded{std::vector<std::int8_t>(plane.K * N_), std::vector<float>(plane.blocks() * N_)};
    workers.each(N_, strip, [&](std::size_t first, std::size_t last) { decode(plane, first, last, decoded); });
    const std::size_t size = plane.K / plane.blocks();
    std::size_t first = 0;
    std::vector<float> scales(N_, 0);
    for (std::size_t block = 0; block < plane.blocks(); ++block) {
        if (joins(scales, &decoded.scales[block * N_])) continue;
        parts_.push_back(packed(design, scaled, decoded, first * size, (block - first) * size, std::move(scales)));
        first = block;
        scales.assign(&decoded.scales[block * N_], &decoded.scales[block * N_] + N_);
    }
    parts_.push_back(packed(design, scaled, decoded, first * size, plane.K - first * size, std::move(scales)));
}

}  // namespace bdforge::ggml
