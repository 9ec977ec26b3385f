#pragma once
// What Layers hold, and texts use.

#include <cstddef>
#include <map>
#include <mutex>
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
    /// Those of a run of tokens behind `first` others; none where it is none of its runs.
    ///
    /// Rows of no token stand behind them where attention has a larger tile: it is causal, so no token sees them. Else a
    /// tile would reach behind them, where other tensors lay in runs of other sizes: any bits, read as floats.
    std::optional<Sizes> sizes(std::size_t tokens, std::size_t first) const;

    Design design;
    LayerRoles roles;
    bool several;  // tokens at once, else one
    AttentionTile tile;
    std::size_t width = 0;
    std::vector<Resident> layers = {};
};

class LayersState {
public:
    LayerModel model;
    std::optional<PackedLayers> several, single;
    std::size_t count = 0, width = 0;
    std::map<std::string, float> scales;  // of the last layer's matrices
    bool used = false;                    // by a text: no layer comes any more
    std::mutex guard;                     // of layers that come, and of texts that begin

    std::size_t key_elements() const { return model.key_heads * model.head_size; }
};

}  // namespace bdforge
