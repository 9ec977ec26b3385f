#pragma once
// Which tensor of a composition of a layer, or of the model's end, is what to a BitNet: the table `roles` of its document.
// The same as bdforge/models/bitnet/layer_roles.py.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "bdforge/layers.hpp"
#include "manifest.hpp"

namespace bdforge {

inline constexpr std::array norm_roles{"attn_norm", "attn_sub_norm", "ffn_norm", "ffn_sub_norm"};
inline constexpr std::array matrix_roles{"q", "k", "v", "o", "gate", "up", "down"};

/// Tensors by role: those that a layer is given, and those that it has made.
struct LayerRoles {
    /// Matrices side by side, or with `scales` their scales, with `before` those of the layer before.
    struct Weight {
        std::string tensor;
        std::vector<std::string> matrices;
        bool scales, before;
    };
    std::map<std::string, std::string> given, made;
    std::vector<Weight> weights;
};

/// ArgumentError for a tensor without a role that is known, for a role that no tensor has, for other parameters than a
/// layer's, and where a cache lies with what all layers share.
LayerRoles layer_roles(const LoadedManifest& manifest);

/// Whether a composition is of a model's end: it makes logits. Its roles; ArgumentError as of a layer's.
bool is_head(const LoadedManifest& manifest);
LayerRoles head_roles(const LoadedManifest& manifest);

/// ArgumentError where a composition's designs are of another model: other norms, heads or, of a layer, gate.
void check_model(const LoadedManifest& manifest, const LayerModel& model);

/// Queries and keys of attention's tiles: of those of its designs the largest.
struct AttentionTile {
    std::size_t queries = 1, keys = 1;
};
AttentionTile attention_tile(const LoadedManifest& manifest);

}  // namespace bdforge
