#include "graph.hpp"

#include <cmath>

namespace bdforge::generate {
namespace {

constexpr std::size_t nodes_of_layer = 80, nodes_beside = 40;  // more than there are

}  // namespace

std::size_t nodes_of(const Config& config) {
    return nodes_of_layer * static_cast<std::size_t>(config.layers) + nodes_beside;
}

bool ternary(const ggml_tensor& node) {
    return node.op == GGML_OP_MUL_MAT && (node.src[0]->type == GGML_TYPE_TQ2_0 || node.src[0]->type == GGML_TYPE_TQ1_0);
}

Graph::Graph(const Config& config, std::int64_t past, std::int64_t count)
    : config_(config), past_(past), count_(count) {
    const std::size_t nodes = nodes_of(config);
    context_.reset(
        ggml_init({ggml_tensor_overhead() * nodes + ggml_graph_overhead_custom(nodes, false), nullptr, true}));
    at_ = context_.get();
    graph_ = ggml_new_graph_custom(at_, nodes, false);
}

ggml_tensor* Graph::given(ggml_type type, const void* data, std::int64_t columns, std::int64_t rows) {
    ggml_tensor* const made = ggml_new_tensor_2d(at_, type, columns, rows);
    ggml_set_input(made);
    given_.push_back({made, data});
    return made;
}

void Graph::fill() const {
    for (const auto& [tensor, data] : given_) ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
}

ggml_tensor* Graph::norm(ggml_tensor* x, ggml_tensor* weight) {
    return ggml_mul(at_, ggml_rms_norm(at_, x, config_.eps), weight);
}

ggml_tensor* Graph::linear(const Linear& linear, ggml_tensor* x) {
    ggml_tensor* const y = ggml_mul_mat(at_, linear.weights, x);
    return linear.scale == nullptr ? y : ggml_mul(at_, y, linear.scale);
}

ggml_tensor* Graph::layer(const Layer& layer, ggml_tensor* positions, ggml_tensor* keys, ggml_tensor* values,
                          ggml_tensor* x) {
    ggml_tensor* h = norm(x, layer.attn_norm);
    ggml_tensor* const y = attention(layer, h, positions, keys, values);
    x = ggml_add(at_, x, linear(layer.out, norm(y, layer.attn_sub_norm)));
    h = norm(x, layer.ffn_norm);
    ggml_tensor* const gate =
        ggml_sqr(at_, ggml_relu(at_, linear(layer.gate, h)));  // which stock llama.cpp has as SiLU
    ggml_tensor* const z = ggml_mul(at_, gate, linear(layer.up, h));
    return ggml_add(at_, x, linear(layer.down, norm(z, layer.ffn_sub_norm)));
}

ggml_tensor* Graph::last(ggml_tensor* x) {
    return ggml_cont(at_, ggml_view_1d(at_, x, config_.hidden, static_cast<std::size_t>(count_ - 1) * x->nb[1]));
}

ggml_tensor* Graph::logits(const Model& model, ggml_tensor* x) {
    return ggml_mul_mat(at_, model.head, norm(last(x), model.final_norm));
}

/// Head size x heads x tokens, turned by position: pairs (i, i + size / 2).
ggml_tensor* Graph::turned(ggml_tensor* x, ggml_tensor* positions, std::int64_t heads) {
    x = ggml_reshape_3d(at_, x, config_.head_size, heads, count_);
    return ggml_rope_ext(at_, x, positions, nullptr, static_cast<int>(config_.head_size), GGML_ROPE_TYPE_NEOX,
                         static_cast<int>(config_.positions), config_.theta, 1, 0, 1, 32, 1);
}

/// The part of a cache that holds `length` positions from `first` on, along axis `axis`.
ggml_tensor* Graph::part(ggml_tensor* cache, int axis, std::int64_t first, std::int64_t length) {
    std::int64_t ne[] = {cache->ne[0], cache->ne[1], cache->ne[2]};
    ne[axis] = length;
    return ggml_view_3d(at_, cache, ne[0], ne[1], ne[2], cache->nb[1], cache->nb[2],
                        static_cast<std::size_t>(first) * cache->nb[axis]);
}

/// softmax(q k^T / sqrt(size)) v, causal; heads of queries share those of keys and values in order.
ggml_tensor* Graph::attention(const Layer& layer, ggml_tensor* h, ggml_tensor* positions, ggml_tensor* keys,
                              ggml_tensor* values) {
    const std::int64_t all = past_ + count_;
    ggml_tensor* const q = ggml_permute(at_, turned(linear(layer.q, h), positions, config_.heads), 0, 2, 1, 3);
    ggml_tensor* const k = turned(linear(layer.k, h), positions, config_.key_heads);
    store(ggml_permute(at_, k, 0, 2, 1, 3), part(keys, 1, past_, count_));
    ggml_tensor* const v = ggml_reshape_3d(at_, linear(layer.v, h), config_.head_size, config_.key_heads, count_);
    store(ggml_permute(at_, v, 1, 2, 0, 3), part(values, 0, past_, count_));
    ggml_tensor* scores = ggml_mul_mat(at_, part(keys, 1, 0, all), q);  // positions x tokens x heads
    scores = ggml_diag_mask_inf(at_, scores, static_cast<int>(past_));
    const float scale = 1 / std::sqrt(static_cast<float>(config_.head_size));
    ggml_tensor* const shares = ggml_soft_max_ext(at_, scores, nullptr, scale, 0);
    ggml_tensor* const y = ggml_mul_mat(at_, part(values, 0, 0, all), shares);  // size x tokens x heads
    return ggml_cont_2d(at_, ggml_permute(at_, y, 0, 2, 1, 3), config_.query_size(), count_);
}

}  // namespace bdforge::generate
