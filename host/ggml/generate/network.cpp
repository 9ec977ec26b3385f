#include "network.hpp"

namespace bdforge::generate {
namespace {

constexpr std::chrono::hours emulated_patience{24};

/// A stream of a device; none where there is no device.
void add(std::vector<ggml_backend_ptr>& streams, ggml_backend_dev_t device, int threads) {
    if (device == nullptr) return;
    streams.emplace_back(ggml_backend_dev_init(device, nullptr));
    ggml_backend_reg_t const reg = ggml_backend_dev_backend_reg(device);
    void* const found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    if (found != nullptr) reinterpret_cast<ggml_backend_set_n_threads_t>(found)(streams.back().get(), threads);
}

}  // namespace

Network::Network(const Model& model, std::size_t tokens, int threads, std::optional<Layers> layers)
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
    scheduler_.reset(ggml_backend_sched_new(streams.data(), nullptr, static_cast<int>(streams.size()), nodes_of(config),
                                            false, false));
    if (!layers) return;
    text_.emplace(*layers);
    vocabulary_ = layers->vocabulary();
    patience_ = layers->is_npu() ? default_timeout * layers->count() : emulated_patience;
}

void Network::check(const std::vector<std::int32_t>& tokens) const {
    for (const std::int32_t token : tokens)
        if (token < 0 || token >= model_.config.vocabulary)
            throw ModelError("the vocabulary has tokens 0 to " + std::to_string(model_.config.vocabulary - 1) +
                             ", not " + std::to_string(token));
    if (tokens.empty()) throw ModelError("a prompt needs a token at least");
}

std::vector<float> Network::logits(const std::vector<std::int32_t>& tokens) {
    check(tokens);
    return text_ && text_->takes(tokens.size()) ? by_layers(tokens) : by_products(tokens);
}

/// The host embeds, and makes logits of the last token's states where the array does not.
std::vector<float> Network::by_layers(const std::vector<std::int32_t>& tokens) {
    const auto count = static_cast<std::int64_t>(tokens.size()), hidden = model_.config.hidden;
    const std::vector<float> x = computed(
        count, [&](Graph& graph) { return graph.embedded(model_, graph.given(GGML_TYPE_I32, tokens.data(), count)); });
    std::vector<float> y(vocabulary_ == 0 ? x.size() : 0), found(vocabulary_);
    ++(past_ == 0 ? places_.prompts : places_.tokens), places_.heads += !found.empty();
    text_->run(x.data(), tokens.size(), y.empty() ? nullptr : y.data(), found.empty() ? nullptr : found.data(), patience_);
    past_ += count;
    if (!found.empty()) return found;
    const float* const last = y.data() + (count - 1) * hidden;
    return computed(1, [&](Graph& graph) { return graph.logits(model_, graph.given(GGML_TYPE_F32, last, hidden)); });
}

std::vector<float> Network::by_products(const std::vector<std::int32_t>& tokens) {
    const auto count = static_cast<std::int64_t>(tokens.size()), first = past_;
    fetch_rows();
    std::vector<std::int32_t> places;
    for (std::int64_t i = 0; i < count; ++i) places.push_back(static_cast<std::int32_t>(first + i));
    std::vector<float> found = computed(count, [&](Graph& graph) {
        ggml_tensor* x = graph.embedded(model_, graph.given(GGML_TYPE_I32, tokens.data(), count));
        ggml_tensor* const positions = graph.given(GGML_TYPE_I32, places.data(), count);
        for (std::size_t layer = 0; layer < model_.layers.size(); ++layer)
            x = graph.layer(model_.layers[layer], positions, keys_[layer], values_[layer], x);
        return vocabulary_ == 0 ? graph.logits(model_, x) : graph.last(x);
    });
    past_ += count, held_ = past_;
    give_rows(first);
    return vocabulary_ == 0 ? found : by_head(found.data());
}

/// By the array, of states that were made here.
std::vector<float> Network::by_head(const float* x) {
    std::vector<float> found(vocabulary_);
    text_->logits(found.data(), x, patience_);
    ++places_.heads;
    return found;
}

std::vector<float> Network::computed(std::int64_t count, const Build& build) {
    Graph graph(model_.config, past_, count);
    ggml_tensor* const made = build(graph);
    ggml_set_output(made);
    ggml_build_forward_expand(graph.graph(), made);
    ggml_backend_sched_reset(scheduler_.get());
    if (!ggml_backend_sched_alloc_graph(scheduler_.get(), graph.graph())) throw ModelError("no memory for computing");
    graph.fill();
    if (ggml_backend_sched_graph_compute(scheduler_.get(), graph.graph()) != GGML_STATUS_SUCCESS)
        throw ModelError("computing failed; the backend said why");
    count_products(graph.graph());
    std::vector<float> found(static_cast<std::size_t>(ggml_nelements(made)));
    ggml_backend_tensor_get(made, found.data(), 0, found.size() * sizeof(float));
    return found;
}

void Network::count_products(ggml_cgraph* graph) {
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        ggml_tensor* const node = ggml_graph_node(graph, i);
        if (!ternary(*node)) continue;
        const bool ours =
            accelerated() && ggml_backend_sched_get_tensor_backend(scheduler_.get(), node) == backends_[0].get();
        ++(ours ? places_.ours : places_.others);
    }
}

/// Calls `act(key, value, element)` for each of a layer's tokens from `first` on, as a text has them: tokens x heads x size.
template <class Act>
void Network::each_element(std::int64_t first, std::int64_t layer, Act act) {
    const Config& config = model_.config;
    auto* const keys = static_cast<float*>(keys_[static_cast<std::size_t>(layer)]->data);
    auto* const values = static_cast<float*>(values_[static_cast<std::size_t>(layer)]->data);
    std::size_t element = 0;
    for (std::int64_t token = first; token < past_; ++token)
        for (std::int64_t head = 0; head < config.key_heads; ++head)
            for (std::int64_t i = 0; i < config.head_size; ++i, ++element)
                act(keys[(head * room_ + token) * config.head_size + i],
                    values[(head * config.head_size + i) * room_ + token], element);
}

/// Keys and values of tokens that compositions ran.
void Network::fetch_rows() {
    if (!text_ || held_ == past_) return;
    const auto first = static_cast<std::size_t>(held_), count = static_cast<std::size_t>(past_ - held_);
    std::vector<float> keys(count * static_cast<std::size_t>(model_.config.key_size())), values(keys.size());
    for (std::int64_t layer = 0; layer < model_.config.layers; ++layer) {
        text_->read(static_cast<std::size_t>(layer), first, count, keys.data(), values.data());
        each_element(held_, layer, [&](float& key, float& value, std::size_t i) { key = keys[i], value = values[i]; });
    }
    held_ = past_;
}

/// Those of the last tokens, which ran here, to the text.
void Network::give_rows(std::int64_t first) {
    if (!text_) return;
    const auto layers = static_cast<std::size_t>(model_.config.layers), count = static_cast<std::size_t>(past_ - first);
    const std::size_t elements = count * static_cast<std::size_t>(model_.config.key_size());
    std::vector<std::vector<float>> made(2 * layers, std::vector<float>(elements));
    std::vector<const float*> keys, values;
    for (std::size_t layer = 0; layer < layers; ++layer) {
        std::vector<float>&k = made[2 * layer], &v = made[2 * layer + 1];
        each_element(first, static_cast<std::int64_t>(layer),
                     [&](float& key, float& value, std::size_t i) { k[i] = key, v[i] = value; });
        keys.push_back(k.data()), values.push_back(v.data());
    }
    text_->extend(count, keys, values);
}

}  // namespace bdforge::generate
