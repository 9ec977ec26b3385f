// A model's end: the head quantised and packed for a composition, and a token's logits by it. The same as
// bdforge/models/bitnet/composed_head.py.

#include <algorithm>
#include <array>
#include <cmath>

#include "bdforge/error.hpp"
#include "layer_elements.hpp"
#include "layers_state.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

constexpr float least = 1e-5F, int8_max = 127;  // a row of zeros is divided by `least`
constexpr std::size_t block_rows = 64;          // that are turned at a time: a line of a host's cache

/// int8 codes of a matrix's rows, inputs x rows, and a scale for each.
struct Codes {
    std::vector<std::int8_t> columns;
    std::vector<float> scales;
};

/// int8 codes of a row; its scale. As bdforge/models/functions.py, `quantised`.
float coded(const std::vector<float>& values, std::int8_t* codes) {
    float largest = least;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    const float steps = 1 / largest * int8_max;
    std::transform(values.begin(), values.end(), codes, [&](float value) {
        return static_cast<std::int8_t>(std::clamp(std::nearbyint(value * steps), -int8_max - 1, int8_max));
    });
    return 1 / steps;
}

Codes quantised(std::size_t rows, std::size_t inputs, const RowSource& row) {
    Codes made{std::vector<std::int8_t>(inputs * rows), std::vector<float>(rows)};
    std::vector<float> values(inputs);
    std::vector<std::int8_t> block(block_rows * inputs);
    for (std::size_t first = 0; first < rows; first += block_rows) {
        const std::size_t count = std::min(block_rows, rows - first);
        for (std::size_t i = 0; i < count; ++i) {
            row(first + i, values.data());
            if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
                throw WeightError(concat("head: row ", first + i, " has numbers that are not finite; get it again"));
            made.scales[first + i] = coded(values, &block[i * inputs]);
        }
        for (std::size_t k = 0; k < inputs; ++k)
            for (std::size_t i = 0; i < count; ++i) made.columns[k * rows + first + i] = block[i * inputs + k];
    }
    return made;
}

}  // namespace

PackedHead::PackedHead(const Design& loaded, const LayerModel& model)
    : design(loaded), roles(head_roles(loaded.state()->manifest)) {
    check_model(loaded.state()->manifest, model);
}

void PackedHead::pack(const LayerTensor& norm, std::size_t width, float down, std::size_t rows, const RowSource& row) {
    Resident made(design, roles.given.at("head"), {{"vocabulary", rows}});
    const auto floats = [&](const char* role, const std::vector<float>& values) {
        const std::string& tensor = roles.given.at(role);
        place_floats(made, design.state()->operand(tensor).type, tensor, values);
    };
    const auto* const first = static_cast<const float*>(norm.data);
    floats("final_norm", {first, first + norm.rows * norm.columns});
    floats("down scales before", {down});
    const Codes codes = quantised(rows, width, row);
    made.place(roles.given.at("head"), {codes.columns.data(), codes.columns.size()});
    floats("head scales", codes.scales);
    weights.emplace(std::move(made)), vocabulary = rows;
}

bool PackedHead::on_array_of(const PackedLayers& layers) const {
    return design.state()->context == layers.design.state()->context;
}

Job PackedHead::beside(const Job& layer, const LayerRoles& of) const {
    std::map<std::string, std::string> operands;
    for (const char* role : {"states", "product", "product_scales"}) operands[roles.given.at(role)] = of.made.at(role);
    return layer.beside(design, sizes(), operands, {*weights});
}

void PackedHead::run(Job& job, const Carried& carried, float* logits, std::chrono::milliseconds timeout) const {
    const auto give = [&](const char* role, const std::vector<float>& values) {
        Elements(job, roles.given.at(role)).write(0, values.data(), values.size());
    };
    give("states", carried.states), give("product", carried.product), give("product_scales", carried.scale);
    job.run(timeout);
    read(job, logits);
}

void PackedHead::read(const Job& job, float* logits) const {
    Elements(job, roles.made.at("logits")).read(0, logits, vocabulary);
}

void Layers::end(const LayerTensor& final_norm, std::size_t vocabulary, const RowSource& row) {
    const std::scoped_lock lock(state_->guard);
    if (!state_->head)
        throw ArgumentError(
            "no composition of a model's end was given; bdforge compose examples/layer/bitnet_head.toml builds one");
    if (state_->used) throw StateError("a text uses these layers; pack the model's end before the first text");
    if (state_->count == 0) throw StateError("there is no layer yet; add all of them before the model's end");
    if (final_norm.data == nullptr || !row)
        throw ArgumentError("the final norm or the head's rows are missing; give both");
    state_->head->pack(final_norm, state_->width, state_->scales.at("down"), vocabulary, row);
}

}  // namespace bdforge
