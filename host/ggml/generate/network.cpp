#include "network.hpp"

#include <cmath>

namespace bdforge::generate {
namespace {

constexpr std::size_t nodes_of_layer = 80, nodes_beside = 40;  // more than there are

/// Builds the graph of some tokens behind `past` others.
class Builder {
public:
    Builder(ggml_context* context, ggml_cgraph* graph, const Config& config, std::int64_t past, std::int64_t count)
        : at_(context), graph_(graph), config_(config), past_(past), count_(count) {
        tokens = ggml_new_tensor_1d(at_, GGML_TYPE_I32, count);
        positions = ggml_new_tensor_1d(at_, GGML_TYPE_I32, count);
        ggml_set_input(tokens);
        ggml_set_input(positions);
    }

    /// weight * x / sqrt(mean(x^2) + eps)
    ggml_tensor* norm(ggml_tensor* x, ggml_tensor* weight) { return ggml_mul(at_, ggml_rms_norm(at_, x, config_.eps), weight); }

    ggml_tensor* linear(const Linear& linear, ggml_tensor* x) {
        ggml_tensor* const y = ggml_mul_mat(at_, linear.weights, x);
        return linear.scale == nullptr ? y : ggml_mul(at_, y, linear.scale);
    }

    ggml_tensor* layer(const Layer& layer, ggml_tensor* keys, ggml_tensor* values, ggml_tensor* x) {
        ggml_tensor* h = norm(x, layer.attn_norm);
        ggml_tensor* const y = attention(linear(layer.q, h), linear(layer.k, h), linear(layer.v, h), keys, values);
        x = ggml_add(at_, x, linear(layer.out, norm(y, layer.attn_sub_norm)));
        h = norm(x, layer.ffn_norm);
        ggml_tensor* const gate = ggml_sqr(at_, ggml_relu(at_, linear(layer.gate, h)));  // which stock llama.cpp has as SiLU
        ggml_tensor* const z = ggml_mul(at_, gate, linear(layer.up, h));
        return ggml_add(at_, x, linear(layer.down, norm(z, layer.ffn_sub_norm)));
    }

    /// Of the last token.
    ggml_tensor* logits(const Model& model, ggml_tensor* x) {
        x = ggml_view_1d(at_, x, config_.hidden, static_cast<std::size_t>(count_ - 1) * x->nb[1]);
        return ggml_mul_mat(at_, model.head, norm(x, model.final_norm));
    }

    ggml_tensor* embedded(const Model& model) { return ggml_get_rows(at_, model.embedding, tokens); }

    ggml_tensor *tokens, *positions;

private:
    /// Head size x heads x tokens, turned by position: pairs (i, i + size / 2).
    ggml_tensor* turned(ggml_tensor* x, std::int64_t heads) {
        x = ggml_reshape_3d(at_, x, config_.head_size, heads, count_);
        return ggml_rope_ext(at_, x, positions, nullptr, static_cast<int>(config_.head_size), GGML_ROPE_TYPE_NEOX,
                             static_cast<int>(config_.positions), config_.theta, 1, 0, 1, 32, 1);
    }

    /// The part of a cache that holds `length` positions from `first` on, along axis `axis`.
    ggml_tensor* part(ggml_tensor* cache, int axis, std::int64_t first, std::int64_t length) {
        std::int64_t ne[] = {cache->ne[0], cache->ne[1], cache->ne[2]};
        ne[axis] = length;
        return ggml_view_3d(at_, cache, ne[0], ne[1], ne[2], cache->nb[1], cache->nb[2],
                            static_cast<std::size_t>(first) * cache->nb[axis]);
    }

    void store(ggml_tensor* x, ggml_tensor* place) { ggml_build_forward_expand(graph_, ggml_cpy(at_, x, place)); }

    /// softmax(q k^T / sqrt(size)) v, causal; heads of queries share those of keys and values in order.
    ggml_tensor* attention(ggml_tensor* q, ggml_tensor* k, ggml_tensor* v, ggml_tensor* keys, ggml_tensor* values) {
        const std::int64_t all = past_ + count_;
        q = ggml_permute(at_, turned(q, config_.heads), 0, 2, 1, 3);
        store(ggml_permute(at_, turned(k, config_.key_heads), 0, 2, 1, 3), part(keys, 1, past_, count_));
        v = ggml_reshape_3d(at_, v, config_.head_size, config_.key_heads, count_);
        store(ggml_permute(at_, v, 1, 2, 0, 3), part(values, 0, past_, count_));
        ggml_tensor* scores = ggml_mul_mat(at_, part(keys, 1, 0, all), q);  // positions x tokens x heads
        scores = ggml_diag_mask_inf(at_, scores, static_cast<int>(past_));
        const float scale = 1 / std::sqrt(static_cast<float>(config_.head_size));
        ggml_tensor* const shares = ggml_soft_max_ext(at_, scores, nullptr, scale, 0);
        ggml_tensor* const y = ggml_mul_mat(at_, part(values, 0, 0, all), shares);  // size x tokens x heads
        return ggml_cont_2d(at_, ggml_permute(at_, y, 0, 2, 1, 3), config_.query_size(), count_);
    }

    ggml_context* const at_;
    ggml_cgraph* const graph_;
    const Config& config_;
    const std::int64_t past_, count_;
};

/// A stream of a device; none where there is no device.
void add(std::vector<ggml_backend_ptr>& streams, ggml_backend_dev_t device, int threads) {
    if (device == nullptr) return;
    streams.emplace_back(ggml_backend_dev_init(device, nullptr));
    ggml_backend_reg_t const reg = ggml_backend_dev_backend_reg(device);
    void* const found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    if (found != nullptr) reinterpret_cast<ggml_backend_set_n_threads_t>(found)(streams.back().get(), threads);
}

bool ternary(const ggml_tensor& node) {
    return node.op == GGML_OP_MUL_MAT && (node.src[0]->type == GGML_TYPE_TQ2_0 || node.src[0]->type == GGML_TYPE_TQ1_0);
}

}  // namespace

Network::Network(const Model& model, std::size_t tokens, int threads)
    : model_(model), room_(static_cast<std::int64_t>(tokens)) {
    const Config& config = model.config;
    add(backends_, ggml_backend_dev_by_name("bdforge"), threads);
    add(backends_, ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), threads);
    if (backends_.empty()) throw ModelError("ggml found no backend, not even the CPU's; install them all");
    cached_.reset(ggml_init({ggml_tensor_overhead() * 2 * static_cast<std::size_t>(config.layers), nullptr, true}));
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        keys_.push_back(ggml_new_tensor_3d(cached_.get(), GGML_TYPE_F32, config.head_size, room_, config.key_heads));
        values_.push_back(ggml_new_tensor_3d(cached_.get(), GGML_TYPE_F32, room_, config.head_size, config.key_heads));
    }
    memory_.reset(ggml_backend_alloc_ctx_tensors_from_buft(cached_.get(), ggml_backend_cpu_buffer_type()));
    if (!memory_) throw ModelError("no memory for keys and values of " + std::to_string(room_) + " tokens");
    std::vector<ggml_backend_t> streams;
    for (const ggml_backend_ptr& each : backends_) streams.push_back(each.get());
    const std::size_t nodes = nodes_of_layer * static_cast<std::size_t>(config.layers) + nodes_beside;
    scheduler_.reset(ggml_backend_sched_new(streams.data(), nullptr, static_cast<int>(streams.size()), nodes, false, false));
}

void Network::check(const std::vector<std::int32_t>& tokens) const {
    for (const std::int32_t token : tokens)
        if (token < 0 || token >= model_.config.vocabulary)
            throw ModelError("the vocabulary has tokens 0 to " + std::to_string(model_.config.vocabulary - 1) + ", not " +
                             std::to_string(token));
    if (tokens.empty()) throw ModelError("a prompt needs a token at least");
}

std::vector<float> Network::logits(const std::vector<std::int32_t>& tokens) {
    check(tokens);
    const std::size_t nodes = nodes_of_layer * model_.layers.size() + nodes_beside;
    ggml_context_ptr context(ggml_init({ggml_tensor_overhead() * nodes + ggml_graph_overhead_custom(nodes, false), nullptr, true}));
    ggml_cgraph* const graph = ggml_new_graph_custom(context.get(), nodes, false);
    const auto count = static_cast<std::int64_t>(tokens.size());
    Builder builder(context.get(), graph, model_.config, past_, count);
    ggml_tensor* x = builder.embedded(model_);
    for (std::size_t layer = 0; layer < model_.layers.size(); ++layer)
        x = builder.layer(model_.layers[layer], keys_[layer], values_[layer], x);
    ggml_tensor* const made = builder.logits(model_, x);
    ggml_set_output(made);
    ggml_build_forward_expand(graph, made);
    ggml_backend_sched_reset(scheduler_.get());
    if (!ggml_backend_sched_alloc_graph(scheduler_.get(), graph)) throw ModelError("no memory for computing");
    ggml_backend_tensor_set(builder.tokens, tokens.data(), 0, tokens.size() * sizeof(std::int32_t));
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < count; ++i) positions.push_back(static_cast<std::int32_t>(past_ + i));
    ggml_backend_tensor_set(builder.positions, positions.data(), 0, positions.size() * sizeof(std::int32_t));
    if (ggml_backend_sched_graph_compute(scheduler_.get(), graph) != GGML_STATUS_SUCCESS)
        throw ModelError("computing failed; the backend said why");
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        ggml_tensor* const node = ggml_graph_node(graph, i);
        if (!ternary(*node)) continue;
        const bool ours = accelerated() && ggml_backend_sched_get_tensor_backend(scheduler_.get(), node) == backends_[0].get();
        ++(ours ? places_.ours : places_.others);
    }
    past_ += count;
    std::vector<float> found(static_cast<std::size_t>(model_.config.vocabulary));
    ggml_backend_tensor_get(made, found.data(), 0, found.size() * sizeof(float));
    return found;
}

}  // namespace bdforge::generate
