#pragma once
/// A BitNet b1.58 at work: by compositions of a layer on the array, as far as they take its tokens, else by a graph of ggml
/// for its scheduler.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "bdforge/bdforge.hpp"
#include "graph.hpp"

namespace bdforge::generate {

/// Where work ran: ternary products, counted by node, and prompts, tokens and heads by compositions.
struct Places {
    std::size_t ours = 0, others = 0, prompts = 0, tokens = 0, heads = 0;
};

/// Its cache, its layers on the array if there are, and a scheduler over our device, where it is loaded, and the CPU.
class Network {
public:
    /// For so many tokens together, as many as the model has positions at most.
    Network(const Model& model, std::size_t tokens, int threads, std::optional<Layers> layers = std::nullopt);

    /// Takes the next tokens; logits of the last one. ModelError for tokens that the vocabulary lacks and when computing
    /// fails; RunError and TimeoutError when the array does.
    std::vector<float> logits(const std::vector<std::int32_t>& tokens);

    const Places& places() const { return places_; }
    /// Whether our device is there.
    bool accelerated() const { return backends_.size() > 1; }

private:
    using Build = std::function<ggml_tensor*(Graph&)>;

    void check(const std::vector<std::int32_t>& tokens) const;
    std::vector<float> by_layers(const std::vector<std::int32_t>& tokens);
    std::vector<float> by_products(const std::vector<std::int32_t>& tokens);
    std::vector<float> by_head(const float* x);
    std::vector<float> computed(std::int64_t count, const Build& build);
    void count_products(ggml_cgraph* graph);
    void fetch_rows();
    void give_rows(std::int64_t first);
    template <class Act>
    void each_element(std::int64_t first, std::int64_t layer, Act act);

    const Model& model_;
    std::int64_t room_, past_ = 0,
                        held_ = 0;  // tokens that there is room for, that came, and that the cache here holds
    ggml_context_ptr cached_;
    ggml_backend_buffer_ptr memory_;
    std::vector<ggml_tensor*> keys_, values_;  // of a layer: head size x positions x heads, and turned for the product
    std::vector<ggml_backend_ptr> backends_;
    ggml_backend_sched_ptr scheduler_;
    std::optional<Text> text_;
    std::size_t vocabulary_ = 0;  // of the array's head, 0: it has none
    std::chrono::milliseconds patience_{};  // with a list of all layers
    Places places_;
};

}  // namespace bdforge::generate
