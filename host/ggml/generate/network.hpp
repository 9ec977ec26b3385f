#pragma once
/// What BitNet b1.58 computes, as a graph of ggml for its scheduler.

#include <cstddef>
#include <vector>

#include "model.hpp"

namespace bdforge::generate {

/// Where ternary products ran, counted by node.
struct Places {
    std::size_t ours = 0, others = 0;
};

/// A model at work: its cache, and a scheduler over our device, where it is loaded, and the CPU.
class Network {
public:
    /// For so many tokens together, as many as the model has positions at most.
    Network(const Model& model, std::size_t tokens, int threads);

    /// Takes the next tokens; logits of the last one. ModelError for tokens that the vocabulary lacks and when computing
    /// fails.
    std::vector<float> logits(const std::vector<std::int32_t>& tokens);

    const Places& places() const { return places_; }
    /// Whether our device is there.
    bool accelerated() const { return backends_.size() > 1; }

private:
    void check(const std::vector<std::int32_t>& tokens) const;

    const Model& model_;
    std::int64_t room_, past_ = 0;
    ggml_context_ptr cached_;
    ggml_backend_buffer_ptr memory_;
    std::vector<ggml_tensor*> keys_, values_;  // of a layer: head size x positions x heads, and turned for the product
    std::vector<ggml_backend_ptr> backends_;
    ggml_backend_sched_ptr scheduler_;
    Places places_;
};

}  // namespace bdforge::generate
