#pragma once
// What Layers hold, and texts use.

#include <chrono>
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

/// What the last layer leaves of a token: states, and a product with its scale, which is still to be added to them.
struct Carried {
    std::vector<float> states, product, scale;
};

/// A composition of a model's end, and the head that is packed for it.
struct PackedHead {
    /// ArgumentError for a design that is no end of the model.
    PackedHead(const Design& loaded, const LayerModel& model);

    /// The final norm, the head's rows of `width` floats, and the scale of the last layer's product.
    void pack(const LayerTensor& norm, std::size_t width, float down, std::size_t rows, const RowSource& row);
    Sizes sizes() const { return {{"tokens", 1}, {"vocabulary", vocabulary}}; }
    /// Whether it runs on the array of a layer's design.
    bool on_array_of(const PackedLayers& layers) const;
    /// A job of these sizes where one of a layer on that array leaves what is carried.
    Job beside(const Job& layer, const LayerRoles& of) const;
    /// Logits by a job of these sizes, or those that it has made.
    void run(Job& job, const Carried& carried, float* logits, std::chrono::milliseconds timeout) const;
    void read(const Job& job, float* logits) const;

    Design design;
    LayerRoles roles;
    std::size_t vocabulary = 0;
    std::optional<Resident> weights = {};
};

/// Writes floats as an operand has them.
void place_floats(Resident& resident, const std::string& type, const std::string& tensor,
                  const std::vector<float>& values);

class LayersState {
public:
    LayerModel model;
    std::optional<PackedLayers> several, single;
    std::optional<PackedHead> head;
    std::size_t count = 0, width = 0;
    std::map<std::string, float> scales;  // of the last layer's matrices
    bool used = false;                    // by a text: no layer comes any more
    std::mutex guard;                     // of layers that come, and of texts that begin

    /// A composition of a layer. ArgumentError for a second one of its kind, and for another width.
    void take(PackedLayers made);
    std::size_t vocabulary() const { return head ? head->vocabulary : 0; }
    std::size_t key_elements() const { return model.key_heads * model.head_size; }
};

}  // namespace bdforge
