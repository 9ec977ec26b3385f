#pragma once
// What Layers hold, and texts use.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layer_roles.hpp"
#include "state.hpp"

namespace bdforge {

/// A composition, and the layers that are packed for it.
struct PackedLayers {
    /// ArgumentError for a design that is no layer of the model.
    PackedLayers(const Design& loaded, const LayerModel& model);

    /// A layer's weights; `before` are the scales of the layer before.
    Resident packed(const std::map<std::string, LayerTensor>& tensors,
                    const std::map<std::string, float>& before) const;

    Design design;
    LayerRoles roles;
    std::string size;   // its parameter: tokens of a prompt, or keys of a token
    std::size_t least;  // that it takes of them
    std::size_t width;
    std::vector<Resident> layers = {};
};

class LayersState {
public:
    LayerModel model;
    std::optional<PackedLayers> prompt, token;
    std::size_t count = 0, width = 0;
    std::map<std::string, float> scales;  // of the last layer's matrices
    bool used = false;                    // by a text: no layer comes any more

    std::size_t key_elements() const { return model.key_heads * model.head_size; }
};

}  // namespace bdforge
