#include "bdforge/layers.hpp"

#include <algorithm>
#include <cstring>

#include "bdforge/error.hpp"
#include "layers_state.hpp"
#include "messages.hpp"
#include "number_formats.hpp"

namespace bdforge {
namespace {

const LayerTensor& tensor_of(const std::map<std::string, LayerTensor>& tensors, const std::string& role) {
    const auto found = tensors.find(role);
    if (found == tensors.end() || found->second.data == nullptr)
        throw ArgumentError("the layer has no tensor " + role + "; give all seven matrices and four norms");
    return found->second;
}

/// Matrices side by side.
std::vector<std::int8_t> joined(const std::vector<LayerTensor>& parts, std::size_t columns) {
    std::vector<std::int8_t> made(parts.front().rows * columns);
    std::size_t first = 0;
    for (const LayerTensor& part : parts) {
        for (std::size_t row = 0; row < part.rows; ++row)
            std::memcpy(&made[row * columns + first], static_cast<const std::int8_t*>(part.data) + row * part.columns,
                        part.columns);
        first += part.columns;
    }
    return made;
}

void place_matrices(Resident& resident, const LayerRoles::Weight& weight,
                    const std::map<std::string, LayerTensor>& tensors) {
    std::vector<LayerTensor> parts;
    std::size_t columns = 0;
    for (const std::string& role : weight.matrices) {
        parts.push_back(tensor_of(tensors, role));
        columns += parts.back().columns;
        if (parts.back().rows != parts.front().rows)
            throw ArgumentError(concat(role, " has ", parts.back().rows, " rows, ", weight.matrices.front(),
                                       " beside it ", parts.front().rows, "; give matrices of one model"));
    }
    const auto& layouts = resident.state()->layouts;
    const auto named = [&](const auto& layout) { return layout.operand().name == weight.tensor; };
    const auto found = std::find_if(layouts.begin(), layouts.end(), named);
    const std::size_t rows = parts.front().rows;
    if (found != layouts.end() &&
        (found->rows() != static_cast<std::int64_t>(rows) || found->columns() != static_cast<std::int64_t>(columns)))
        throw ArgumentError(concat(listed(weight.matrices, "+"), ": ", rows, " x ", columns, " elements, where ",
                                   weight.tensor, " has ", found->rows(), " x ", found->columns(),
                                   "; take a composition for this model"));
    if (parts.size() == 1) return resident.place(weight.tensor, {parts.front().data, rows * columns});
    const std::vector<std::int8_t> all = joined(parts, columns);
    resident.place(weight.tensor, {all.data(), all.size()});
}

[[noreturn]] void refuse_second(const Design& one, const Design& other, const char* what) {
    throw ArgumentError(concat(one.manifest().design, ", ", other.manifest().design, " are compositions of ", what,
                               "; give one"));
}

}  // namespace

void place_floats(Resident& resident, const std::string& type, const std::string& tensor,
                  const std::vector<float>& values) {
    if (type == "f32") return resident.place(tensor, {values.data(), values.size() * sizeof(float)});
    std::vector<Bf16> narrow(values.size());
    std::transform(values.begin(), values.end(), narrow.begin(), narrowed);
    resident.place(tensor, {narrow.data(), narrow.size() * sizeof(Bf16)});
}

PackedLayers::PackedLayers(const Design& loaded, const LayerModel& model)
    : design(loaded),
      roles(layer_roles(loaded.state()->manifest)),
      several(loaded.state()->program().parameters.size() > 1),
      tile(attention_tile(loaded.state()->manifest)) {
    const DesignState& state = *loaded.state();
    check_model(state.manifest, model);
    const Sizes smallest = *sizes(1, tile.keys - 1);
    const Layouts made = layouts(state, state.streams.values(all_parameters(state, smallest)));
    for (const sequence::Layout& layout : made.operands)
        if (layout.operand().name == roles.given.at("states")) width = static_cast<std::size_t>(layout.columns());
}

std::optional<Sizes> PackedLayers::sizes(std::size_t tokens, std::size_t first) const {
    if (!several)
        return tokens == 1 && first + 1 >= tile.keys ? std::optional<Sizes>({{"keys", first + 1}}) : std::nullopt;
    const std::size_t rows = std::max({tokens, tile.queries, tile.keys - std::min(first, tile.keys)});
    return Sizes{{"tokens", rows}, {"keys", first + rows}};
}

Resident PackedLayers::packed(const std::map<std::string, LayerTensor>& tensors,
                              const std::map<std::string, float>& before) const {
    const auto type = [&](const std::string& tensor) { return design.state()->operand(tensor).type; };
    Resident made(design, roles.given.at(norm_roles[0]), {});
    for (const LayerRoles::Weight& weight : roles.weights) {
        if (!weight.scales) {
            place_matrices(made, weight, tensors);
            continue;
        }
        std::vector<float> scales;
        for (const std::string& role : weight.matrices)
            scales.push_back(!weight.before ? tensor_of(tensors, role).scale : before.empty() ? 0 : before.at(role));
        place_floats(made, type(weight.tensor), weight.tensor, scales);
    }
    for (const std::string role : norm_roles) {
        const LayerTensor& norm = tensor_of(tensors, role);
        const auto* const first = static_cast<const float*>(norm.data);
        place_floats(made, type(roles.given.at(role)), roles.given.at(role), {first, first + norm.rows * norm.columns});
    }
    return made;
}

void LayersState::take(PackedLayers made) {
    auto& place = made.several ? several : single;
    if (place) refuse_second(place->design, made.design, "a layer");
    if (width != 0 && made.width != width)
        throw ArgumentError(concat(made.design.manifest().design, " has states of ", made.width,
                                   " elements, the other composition of ", width, "; give two of one model"));
    width = made.width;
    place.emplace(std::move(made));
}

Layers::Layers(const std::vector<Design>& designs, const LayerModel& model) : state_(std::make_shared<LayersState>()) {
    state_->model = model;
    for (const Design& design : designs) {
        if (!is_head(design.state()->manifest)) {
            state_->take({design, model});
            continue;
        }
        if (state_->head) refuse_second(state_->head->design, design, "a head");
        state_->head.emplace(design, model);
    }
    if (!state_->several && !state_->single)
        throw ArgumentError("no composition of a layer was given; bdforge compose builds one");
}

void Layers::add(const std::map<std::string, LayerTensor>& tensors) {
    const std::scoped_lock lock(state_->guard);
    if (state_->used) throw StateError("a text uses these layers; add all of them before the first text");
    if (state_->vocabulary() != 0) throw StateError("the model's end is there already; add all layers before it");
    std::map<std::string, float> scales;
    for (const char* role : matrix_roles) scales[role] = tensor_of(tensors, role).scale;
    std::vector<std::pair<PackedLayers*, Resident>> made;
    for (auto* place : {&state_->several, &state_->single})
        if (*place) made.emplace_back(&**place, (*place)->packed(tensors, state_->scales));
    for (auto& [place, packed] : made) place->layers.push_back(packed);
    state_->scales = std::move(scales);
    ++state_->count;
}

std::size_t Layers::count() const { return state_->count; }
bool Layers::is_npu() const { return (state_->several ? state_->several : state_->single)->design.device().is_npu(); }
std::size_t Layers::width() const { return state_->width; }
bool Layers::ends() const { return state_->head.has_value(); }
std::size_t Layers::vocabulary() const { return state_->vocabulary(); }

}  // namespace bdforge
