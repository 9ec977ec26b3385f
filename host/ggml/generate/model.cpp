#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace bdforge::generate {
namespace {

constexpr std::int64_t largest = std::int64_t{1} << 24;  // of sizes; layers are bounded by the file's tensors

/// A file's metadata and what its tensors are.
class File {
public:
    explicit File(const std::string& path) : path_(path) {
        ggml_context* tensors = nullptr;
        gguf_.reset(gguf_init_from_file(path.c_str(), {true, &tensors}));
        tensors_.reset(tensors);
        if (!gguf_) refuse("is no GGUF file that ggml reads; matrices of I2_S have to be written anew as TQ2_0");
    }

    [[noreturn]] void refuse(const std::string& why) const { throw ModelError(path_ + ": " + why); }

    std::string text(const std::string& key) const {
        const std::int64_t id = gguf_find_key(gguf_.get(), key.c_str());
        return id >= 0 && gguf_get_kv_type(gguf_.get(), id) == GGUF_TYPE_STRING ? gguf_get_val_str(gguf_.get(), id) : "";
    }

    /// A number; `otherwise` where it is missing.
    double number(const std::string& key, double otherwise) const {
        const std::int64_t id = gguf_find_key(gguf_.get(), key.c_str());
        if (id < 0) return otherwise;
        switch (gguf_get_kv_type(gguf_.get(), id)) {
            case GGUF_TYPE_UINT32: return gguf_get_val_u32(gguf_.get(), id);
            case GGUF_TYPE_INT32: return gguf_get_val_i32(gguf_.get(), id);
            case GGUF_TYPE_UINT64: return static_cast<double>(gguf_get_val_u64(gguf_.get(), id));
            case GGUF_TYPE_FLOAT32: return static_cast<double>(gguf_get_val_f32(gguf_.get(), id));
            case GGUF_TYPE_FLOAT64: return gguf_get_val_f64(gguf_.get(), id);
            default: refuse(key + " is no number of 32 or 64 bits");
        }
    }

    std::int64_t size(const std::string& key, std::int64_t otherwise = 0) const {
        const double found = number(key, static_cast<double>(otherwise));
        if (!(found >= 1 && found <= static_cast<double>(largest) && found == std::floor(found)))
            refuse(key + " is missing or no number from 1 to " + std::to_string(largest));
        return static_cast<std::int64_t>(found);
    }

    float positive(const std::string& key, double otherwise) const {
        const double found = number(key, otherwise);
        if (!(found > 0 && std::isfinite(found))) refuse(key + " is no number above 0");
        return static_cast<float>(found);
    }

    ggml_tensor* found(const std::string& name) const { return ggml_get_tensor(tensors_.get(), name.c_str()); }

    /// A tensor of columns x rows, of one of these types.
    ggml_tensor* tensor(const std::string& name, std::int64_t columns, std::int64_t rows,
                        std::initializer_list<ggml_type> types) const {
        ggml_tensor* const made = found(name);
        if (made == nullptr) refuse("has no tensor " + name + "; this is no whole BitNet b1.58");
        if (made->ne[0] != columns || made->ne[1] != rows || ggml_nelements(made) != columns * rows)
            refuse("tensor " + name + " has " + std::to_string(made->ne[0]) + " x " + std::to_string(made->ne[1]) +
                   " elements, expected " + std::to_string(columns) + " x " + std::to_string(rows));
        if (std::find(types.begin(), types.end(), made->type) == types.end())
            refuse("tensor " + name + " is of type " + ggml_type_name(made->type) + ", expected " +
                   ggml_type_name(*types.begin()));
        return made;
    }

    ggml_tensor* norm(const std::string& name, std::int64_t size) const { return tensor(name, size, 1, {GGML_TYPE_F32}); }

    Linear linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) const {
        ggml_tensor* const scale = found(name + ".scale");
        return {tensor(name + ".weight", inputs, outputs, {GGML_TYPE_TQ2_0, GGML_TYPE_TQ1_0}),
                scale == nullptr ? nullptr : norm(name + ".scale", 1)};
    }

    /// Memory of all tensors, with their content.
    ggml_backend_buffer_ptr read() const {
        ggml_backend_buffer_ptr memory(ggml_backend_alloc_ctx_tensors_from_buft(tensors_.get(), ggml_backend_cpu_buffer_type()));
        if (!memory) refuse("no memory for its tensors");
        ggml_backend_buffer_set_usage(memory.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        std::ifstream file(path_, std::ios::binary);
        for (std::int64_t id = 0; id < gguf_get_n_tensors(gguf_.get()); ++id) {
            ggml_tensor* const made = found(gguf_get_tensor_name(gguf_.get(), id));
            const std::size_t start = gguf_get_data_offset(gguf_.get()) + gguf_get_tensor_offset(gguf_.get(), id);
            file.seekg(static_cast<std::streamoff>(start));
            if (!file.read(static_cast<char*>(made->data), static_cast<std::streamsize>(ggml_nbytes(made))))
                refuse(std::string("is cut off in tensor ") + made->name);
        }
        return memory;
    }

    ggml_context_ptr take_tensors() { return std::move(tensors_); }

private:
    std::string path_;
    gguf_context_ptr gguf_;
    ggml_context_ptr tensors_;
};

Config config_of(const File& file) {
    const std::string kind = file.text("general.architecture");
    if (kind != "bitnet" && kind != "bitnet-b1.58" && kind != "bitnet-25")
        file.refuse("general.architecture is '" + kind.substr(0, 40) + "', expected bitnet, bitnet-b1.58 or bitnet-25");
    const std::string start = kind + ".", scaling = file.text(start + "rope.scaling.type");
    const double factor = file.number(start + "rope.scaling.factor", file.number(start + "rope.scale_linear", 1));
    if (scaling != "none" && ((!scaling.empty() && scaling != "linear") || (factor != 1 && factor != 0)))
        file.refuse(start + "rope.scaling is not the default; scaled rotary embeddings are not there");
    const std::string activation = file.text(start + "hidden_activation");
    if (!activation.empty() && activation != "relu2")
        file.refuse(start + "hidden_activation is '" + activation.substr(0, 40) + "', only relu2 is computed here");
    const ggml_tensor* const embedding = file.found("token_embd.weight");
    if (embedding == nullptr) file.refuse("has no tensor token_embd.weight; this is no whole BitNet b1.58");
    Config made{};
    made.hidden = file.size(start + "embedding_length"), made.inner = file.size(start + "feed_forward_length");
    made.layers = file.size(start + "block_count"), made.heads = file.size(start + "attention.head_count");
    made.key_heads = file.size(start + "attention.head_count_kv", made.heads);
    made.head_size = file.size(start + "attention.key_length", made.hidden / made.heads);
    made.positions = file.size(start + "context_length", 4096), made.vocabulary = embedding->ne[1];
    made.eps = file.positive(start + "attention.layer_norm_rms_epsilon", 1e-5);
    made.theta = file.positive(start + "rope.freq_base", 10000);
    made.end = static_cast<std::int64_t>(file.number("tokenizer.ggml.eos_token_id", -1));
    if (made.heads % made.key_heads != 0 || made.head_size % 2 != 0)
        file.refuse(std::to_string(made.heads) + " query heads of " + std::to_string(made.head_size) + " do not share " +
                    std::to_string(made.key_heads) + " key heads");
    return made;
}

Layer layer_of(const File& file, const Config& config, std::int64_t number) {
    const std::string start = "blk." + std::to_string(number) + ".";
    const std::int64_t wide = config.query_size(), narrow = config.key_size();
    return {file.linear(start + "attn_q", config.hidden, wide), file.linear(start + "attn_k", config.hidden, narrow),
            file.linear(start + "attn_v", config.hidden, narrow), file.linear(start + "attn_output", wide, config.hidden),
            file.linear(start + "ffn_gate", config.hidden, config.inner),
            file.linear(start + "ffn_up", config.hidden, config.inner),
            file.linear(start + "ffn_down", config.inner, config.hidden),
            file.norm(start + "attn_norm.weight", config.hidden), file.norm(start + "attn_sub_norm.weight", wide),
            file.norm(start + "ffn_norm.weight", config.hidden), file.norm(start + "ffn_sub_norm.weight", config.inner)};
}

}  // namespace

Model::Model(const std::string& path) {
    File file(path);
    config = config_of(file);
    const auto table = [&](const char* name) {
        return file.tensor(name, config.hidden, config.vocabulary, {GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_BF16});
    };
    embedding = table("token_embd.weight");
    head = file.found("output.weight") == nullptr ? embedding : table("output.weight");
    final_norm = file.norm("output_norm.weight", config.hidden);
    for (std::int64_t number = 0; number < config.layers; ++number) layers.push_back(layer_of(file, config, number));
    memory_ = file.read();
    tensors_ = file.take_tensors();
}

}  // namespace bdforge::generate
