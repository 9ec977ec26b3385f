#include "ternary.hpp"

#include <algorithm>
#include <cmath>

#include "bdforge/error.hpp"
#include "messages.hpp"

namespace bdforge::ggml {
namespace {

constexpr std::size_t strip = 32;  // of ggml's rows that are turned into columns together

[[noreturn]] void not_ternary(const Plane& plane, std::size_t row, std::size_t block) {
    throw WeightError(concat(ggml_type_name(plane.type), " weights: row ", row, ", block ", block,
                             " holds other values than -d, 0 and d; quantise the model again"));
}

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

}  // namespace

Decoded decoded(const Plane& plane, const Workers& workers) {
    Decoded made{std::vector<std::int8_t>(plane.K * plane.N), std::vector<float>(plane.blocks() * plane.N)};
    workers.each(plane.N, strip, [&](std::size_t first, std::size_t last) { decode(plane, first, last, made); });
    return made;
}

}  // namespace bdforge::ggml
