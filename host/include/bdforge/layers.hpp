#pragma once
/// Layers of BitNet b1.58 on the array, by built compositions of a layer (docs/layer.md): tokens as one list of commands, over
/// caches that grow in the array's memory.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bdforge/job.hpp"

namespace bdforge {

class LayersState;
class TextState;

/// What the layers of a model have in common: heads of queries, of keys and of values, elements of a head; the epsilon of
/// norms, the base of rotary angles, and what gates the feed-forward, "relu2" or "silu".
struct LayerModel {
    std::size_t heads, key_heads, head_size;
    float epsilon, theta;
    std::string gate;
};

/// A tensor of a layer: a norm's floats, rows = 1; or a ternary matrix, int8 of -1, 0, 1, inputs x outputs without gaps,
/// and the scale that its products are multiplied with.
struct LayerTensor {
    const void* data;
    std::size_t rows, columns;
    float scale = 1;
};

/// Writes the floats of a matrix's row, one behind the other.
using RowSource = std::function<void(std::size_t row, float* values)>;

/// The layers of a model, packed for a composition of several tokens, for one of one token, or both; and its end, for a
/// composition of that, if there is one. Copies are the same.
/// Any number of texts may use them, in any threads.
class Layers {
public:
    /// ArgumentError for designs that are no layer of such a model, nor its end, or two of a kind; ManifestError for
    /// malformed ones.
    Layers(const std::vector<Design>& designs, const LayerModel& model);

    /// Packs the next layer. Its tensors by role: q, k, v, o, gate, up, down; attn_norm, attn_sub_norm, ffn_norm,
    /// ffn_sub_norm. ArgumentError for one that is missing or of another size, WeightError for values that are not ternary,
    /// StateError once there is a text.
    void add(const std::map<std::string, LayerTensor>& tensors);

    /// Packs the model's end behind its layers: the final norm, and the head, a row for each token of the vocabulary, width
    /// floats, of which it keeps int8 codes with a scale (its largest magnitude over 127). ArgumentError where no
    /// composition takes it, or none of this size; WeightError for numbers that are not finite; StateError without a layer
    /// and once there is a text.
    void end(const LayerTensor& final_norm, std::size_t vocabulary, const RowSource& row);
    /// Whether a composition of the model's end was given, which `end` has to be called for.
    bool ends() const;
    /// Rows of the head, 0: it is the caller's.
    std::size_t vocabulary() const;

    std::size_t count() const;
    /// Whether they run on an NPU.
    bool is_npu() const;
    /// Elements of a token's states.
    std::size_t width() const;

    const std::shared_ptr<LayersState>& state() const { return state_; }

private:
    std::shared_ptr<LayersState> state_;
};

/// A text under way: its tokens' keys and values, where the array reads them. Copies are the same text, for one thread at a
/// time.
class Text {
public:
    /// Memory is made for `room` tokens at first, and for twice as many whenever it is full. ArgumentError for no layers.
    explicit Text(const Layers& layers, std::size_t room = 1024);

    /// Tokens so far.
    std::size_t tokens() const;
    /// Whether `run` takes so many tokens next: any number, if there is a composition of several; else one, behind as many as
    /// attention's tile has keys, its own counted.
    bool takes(std::size_t tokens) const;

    /// Runs the next tokens through all layers, as one list of commands, one alone by the composition for one if that can: `x` are their states before the first layer, `y`
    /// those behind the last one, tokens x width; null: nobody wants them. ArgumentError for what `takes` says no to;
    /// TimeoutError and RunError as Batch: the text is what it was before. What timed out may still be at work in its
    /// memory: begin another text then.
    void run(const float* x, std::size_t tokens, float* y, std::chrono::milliseconds timeout = default_timeout);

    /// The same, and logits behind the last of the tokens, as many as the vocabulary has. Where one token's composition and that
    /// of the model's end are on one array, one list has both, so the host moves nothing between them: all designs of one
    /// image on one Device are. Faults of both.
    void run(const float* x, std::size_t tokens, float* y, float* logits,
             std::chrono::milliseconds timeout = default_timeout);

    /// Logits, as many as the vocabulary has tokens, behind the last token that `run` took; or of `x`, states behind the
    /// last layer of one that ran elsewhere, width of them. ArgumentError where the model's end was not packed, and for no
    /// `x` where the last token ran elsewhere; TimeoutError and RunError as Job::run.
    void logits(float* logits, const float* x = nullptr, std::chrono::milliseconds timeout = default_timeout);

    /// Keys, turned, and values of tokens from `first` on, of one layer: tokens x key heads x head size. ArgumentError for
    /// tokens and layers that there are none of.
    void read(std::size_t layer, std::size_t first, std::size_t tokens, float* keys, float* values) const;
    /// Takes those of the next tokens, which ran elsewhere, of each layer; they are rounded to bf16.
    void extend(std::size_t tokens, const std::vector<const float*>& keys, const std::vector<const float*>& values);

private:
    std::shared_ptr<TextState> state_;
};

}  // namespace bdforge
