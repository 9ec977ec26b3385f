#include <map>
#include <string>
#include <vector>

#include "c_api.hpp"
#include "messages.hpp"

struct bdforge_layers {
    bdforge::Layers layers;
};
struct bdforge_text {
    bdforge::Text text;
};

using namespace bdforge::c_api;

bdforge_status bdforge_layers_create(bdforge_design* const* designs, size_t count, const bdforge_model* model,
                                     bdforge_layers** layers) {
    return made(layers, [&] {
        std::vector<bdforge::Design> found;
        for (bdforge_design* design : listed("designs", designs, count))
            found.push_back(given(design, "a design")->design);
        const bdforge_model& of = *given(model, "the model");
        return bdforge::Layers(
            found, {of.heads, of.key_heads, of.head_size, of.epsilon, of.theta, given(of.gate, "the model's gate")});
    });
}

bdforge_status bdforge_layers_add(bdforge_layers* layers, const bdforge_tensor* tensors, size_t count) {
    return guarded([&] {
        std::map<std::string, bdforge::LayerTensor> found;
        for (const bdforge_tensor& tensor : listed("tensors", tensors, count))
            found[given(tensor.role, "a role")] = {tensor.data, tensor.rows, tensor.columns, tensor.scale};
        given(layers, "layers")->layers.add(found);
    });
}

bdforge_status bdforge_layers_end(bdforge_layers* layers, const bdforge_tensor* final_norm, size_t vocabulary,
                                  bdforge_row row, void* context) {
    return guarded([&] {
        const bdforge_tensor& norm = *given(final_norm, "the final norm");
        given(row, "the source of rows");
        given(layers, "layers")->layers.end({norm.data, norm.rows, norm.columns}, vocabulary,
                                            [=](std::size_t i, float* values) { row(context, i, values); });
    });
}

size_t bdforge_layers_vocabulary(const bdforge_layers* layers) {
    return layers == nullptr ? 0 : layers->layers.vocabulary();
}
size_t bdforge_layers_width(const bdforge_layers* layers) { return layers == nullptr ? 0 : layers->layers.width(); }
void bdforge_layers_free(bdforge_layers* layers) { delete layers; }

bdforge_status bdforge_text_create(const bdforge_layers* layers, size_t room, bdforge_text** text) {
    return made(text, [&] { return bdforge::Text(given(layers, "layers")->layers, room); });
}

size_t bdforge_text_tokens(const bdforge_text* text) { return text == nullptr ? 0 : text->text.tokens(); }
int bdforge_text_takes(const bdforge_text* text, size_t tokens) { return text != nullptr && text->text.takes(tokens); }
void bdforge_text_free(bdforge_text* text) { delete text; }

bdforge_status bdforge_text_run(bdforge_text* text, const float* x, size_t tokens, float* y, unsigned timeout_ms) {
    return guarded([&] { given(text, "text")->text.run(x, tokens, y, milliseconds(timeout_ms)); });
}

bdforge_status bdforge_text_next(bdforge_text* text, const float* x, size_t tokens, float* y, float* logits,
                                 unsigned timeout_ms) {
    return guarded([&] { given(text, "text")->text.run(x, tokens, y, given(logits, "logits"), milliseconds(timeout_ms)); });
}

bdforge_status bdforge_text_logits(bdforge_text* text, const float* x, float* logits, unsigned timeout_ms) {
    return guarded([&] { given(text, "text")->text.logits(logits, x, milliseconds(timeout_ms)); });
}

bdforge_status bdforge_text_read(const bdforge_text* text, size_t layer, size_t first, size_t tokens, float* keys,
                                 float* values) {
    return guarded(
        [&] { given(text, "text")->text.read(layer, first, tokens, given(keys, "keys"), given(values, "values")); });
}

bdforge_status bdforge_text_extend(bdforge_text* text, size_t tokens, const float* const* keys,
                                   const float* const* values, size_t layers) {
    return guarded([&] {
        std::vector<const float*> k = listed("keys", keys, layers), v = listed("values", values, layers);
        for (const float* one : k) given(one, "a layer's keys");
        for (const float* one : v) given(one, "a layer's values");
        given(text, "text")->text.extend(tokens, k, v);
    });
}
