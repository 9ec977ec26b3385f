#include "array_layers.hpp"

#include <cstring>
#include <map>

#include "../settings.hpp"
#include "../ternary.hpp"

namespace bdforge::generate {
namespace {

/// The scale of all blocks that are not 0.
float one_scale(const ggml_tensor& weights, const std::vector<float>& scales) {
    float found = 0;
    for (const float scale : scales) {
        if (scale != 0 && found != 0 && scale != found)
            throw ModelError(std::string("tensor ") + weights.name +
                             ": its blocks have several scales; a matrix of BitNet "
                             "has one, leave out --design");
        if (scale != 0) found = scale;
    }
    return found;
}

/// A row of a matrix of floats.
void widen(const ggml_tensor& matrix, std::size_t row, float* values) {
    const void* const first = static_cast<const std::byte*>(matrix.data) + row * matrix.nb[1];
    const ggml_to_float_t to_float = ggml_get_type_traits(matrix.type)->to_float;
    if (to_float != nullptr)
        to_float(first, values, matrix.ne[0]);
    else  // they are float32
        std::memcpy(values, first, static_cast<std::size_t>(matrix.ne[0]) * sizeof *values);
}

/// The tensors of a layer, while they are packed.
class LayerTensors {
public:
    LayerTensors(const Layer& layer, std::size_t threads) : workers_{threads} {
        const std::map<std::string, const Linear*> matrices{
            {"q", &layer.q},       {"k", &layer.k},   {"v", &layer.v},      {"o", &layer.out},
            {"gate", &layer.gate}, {"up", &layer.up}, {"down", &layer.down}};
        for (const auto& [role, matrix] : matrices) add(role, *matrix);
        const std::map<std::string, const ggml_tensor*> norms{{"attn_norm", layer.attn_norm},
                                                              {"attn_sub_norm", layer.attn_sub_norm},
                                                              {"ffn_norm", layer.ffn_norm},
                                                              {"ffn_sub_norm", layer.ffn_sub_norm}};
        for (const auto& [role, norm] : norms) by_role[role] = {norm->data, 1, static_cast<std::size_t>(norm->ne[0])};
    }

    std::map<std::string, LayerTensor> by_role;

private:
    void add(const std::string& role, const Linear& matrix) {
        const ggml_tensor& weights = *matrix.weights;
        const auto K = static_cast<std::size_t>(weights.ne[0]), N = static_cast<std::size_t>(weights.ne[1]);
        ggml::Decoded& made = decoded_[role] =
            ggml::decoded({static_cast<const std::byte*>(weights.data), weights.type, K, N, weights.nb[1]}, workers_);
        const double beside =
            matrix.scale == nullptr ? 1 : static_cast<double>(*static_cast<const float*>(matrix.scale->data));
        const double scale = static_cast<double>(one_scale(weights, made.scales)) * beside;
        by_role[role] = {made.codes.data(), K, N, static_cast<float>(scale)};
    }

    ggml::Workers workers_;
    std::map<std::string, ggml::Decoded> decoded_;
};

}  // namespace

Layers array_layers(const Model& model, const std::vector<std::string>& designs, std::size_t threads) {
    const Device device = Device::open(ggml::device_name());
    std::vector<Design> loaded;
    for (const std::string& design : designs) loaded.push_back(Design::load(device, design));
    const Config& config = model.config;
    Layers made(loaded, {static_cast<std::size_t>(config.heads), static_cast<std::size_t>(config.key_heads),
                         static_cast<std::size_t>(config.head_size), config.eps, config.theta, "relu2"});
    for (const Layer& layer : model.layers) made.add(LayerTensors(layer, threads).by_role);
    const LayerTensor norm{model.final_norm->data, 1, static_cast<std::size_t>(config.hidden)};
    const auto row = [&](std::size_t number, float* values) { widen(*model.head, number, values); };
    if (made.ends()) made.end(norm, static_cast<std::size_t>(config.vocabulary), row);
    return made;
}

}  // namespace bdforge::generate
