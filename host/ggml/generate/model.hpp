#pragma once
/// BitNet b1.58 from a GGUF file into ggml's memory.

#include <ggml-backend.h>
#include <ggml-cpp.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace bdforge::generate {

/// A file that is no BitNet, or a prompt that this one cannot take.
class ModelError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Sizes and constants, as in the file's metadata.
struct Config {
    std::int64_t hidden, inner, layers, heads, key_heads, head_size, vocabulary, positions;
    float eps, theta;
    std::int64_t end;  // the token that ends a text, -1: none

    std::int64_t query_size() const { return heads * head_size; }
    std::int64_t key_size() const { return key_heads * head_size; }
};

/// A ternary matrix; `scale`, of one element, multiplies its products, null: 1.
struct Linear {
    ggml_tensor* weights;
    ggml_tensor* scale;
};

struct Layer {
    Linear q, k, v, out, gate, up, down;
    ggml_tensor *attn_norm, *attn_sub_norm, *ffn_norm, *ffn_sub_norm;
};

/// A model in memory that is marked as weights, which all host backends share.
class Model {
public:
    /// ModelError says what of the file is missing or of another kind.
    explicit Model(const std::string& path);

    Config config;
    ggml_tensor *embedding, *final_norm, *head;
    std::vector<Layer> layers;

private:
    ggml_context_ptr tensors_;
    ggml_backend_buffer_ptr memory_;
};

}  // namespace bdforge::generate
