#pragma once
/// What BitNet b1.58 computes, as a graph of ggml.

#include <cstdint>
#include <vector>

#include "model.hpp"

namespace bdforge::generate {

/// Builds a graph for `count` tokens behind `past` others.
class Graph {
public:
    Graph(const Config& config, std::int64_t past, std::int64_t count);

    ggml_cgraph* graph() const { return graph_; }
    /// An input, columns x rows, of memory that is copied by `fill`.
    ggml_tensor* given(ggml_type type, const void* data, std::int64_t columns, std::int64_t rows = 1);
    /// Copies what was given; the graph has its memory then.
    void fill() const;

    /// weight * x / sqrt(mean(x^2) + eps)
    ggml_tensor* norm(ggml_tensor* x, ggml_tensor* weight);
    ggml_tensor* linear(const Linear& linear, ggml_tensor* x);
    /// A layer; `positions` are the tokens', `keys` and `values` its cache.
    ggml_tensor* layer(const Layer& layer, ggml_tensor* positions, ggml_tensor* keys, ggml_tensor* values,
                       ggml_tensor* x);
    /// States of the last token, and its logits.
    ggml_tensor* last(ggml_tensor* x);
    ggml_tensor* logits(const Model& model, ggml_tensor* x);
    ggml_tensor* embedded(const Model& model, ggml_tensor* tokens) {
        return ggml_get_rows(at_, model.embedding, tokens);
    }

private:
    struct Given {
        ggml_tensor* tensor;
        const void* data;
    };

    ggml_tensor* turned(ggml_tensor* x, ggml_tensor* positions, std::int64_t heads);
    ggml_tensor* part(ggml_tensor* cache, int axis, std::int64_t first, std::int64_t length);
    void store(ggml_tensor* x, ggml_tensor* place) { ggml_build_forward_expand(graph_, ggml_cpy(at_, x, place)); }
    ggml_tensor* attention(const Layer& layer, ggml_tensor* h, ggml_tensor* positions, ggml_tensor* keys,
                           ggml_tensor* values);

    const Config& config_;
    const std::int64_t past_, count_;
    ggml_context_ptr context_;
    ggml_context* at_;
    ggml_cgraph* graph_;
    std::vector<Given> given_;
};

/// Nodes that a graph may have.
std::size_t nodes_of(const Config& config);

/// Whether a node is a product with ternary weights.
bool ternary(const ggml_tensor& node);

}  // namespace bdforge::generate
