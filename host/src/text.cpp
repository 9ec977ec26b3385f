#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "bdforge/error.hpp"
#include "layer_elements.hpp"
#include "layers_state.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

constexpr std::array kept_roles{"keys", "values"}, cache_roles{"key_cache", "value_cache"};

}  // namespace

class TextState {
public:
    /// ArgumentError for no layers.
    TextState(std::shared_ptr<LayersState> layers, std::size_t room)
        : layers_(std::move(layers)), first_room_(std::max<std::size_t>(room, 1)) {
        if (layers_->count == 0) throw ArgumentError("there is no layer yet; add them before a text");
        layers_->used = true;
    }

    std::size_t tokens() const { return tokens_; }
    const LayersState& layers() const { return *layers_; }

    bool takes(std::size_t tokens) const {
        if (tokens_ == 0 && layers_->prompt) return tokens > 0;
        return layers_->token && tokens == 1 && tokens_ + 1 >= layers_->token->least;
    }

    void run(const float* x, std::size_t tokens, float* y, std::chrono::milliseconds timeout) {
        const bool prompt = tokens_ == 0 && layers_->prompt;
        if (!prompt) reserve(tokens_ + 1);
        const std::vector<Job> jobs = prompt ? prompt_jobs(tokens) : token_jobs();
        const PackedLayers& design = prompt ? *layers_->prompt : *layers_->token;
        begin(design, jobs.front(), x, tokens);
        Batch::of(design.design, jobs).run(timeout);
        if (prompt) keep(design, jobs, tokens);
        end(design, jobs.front(), tokens, y);
        tokens_ += tokens;
    }

    /// Keys (0) or values (1) of a layer.
    KeptRows& kept(std::size_t layer, std::size_t which) { return kept_[layer][which]; }

    /// Makes room for so many tokens.
    void reserve(std::size_t tokens) {
        if (tokens <= room_) return;
        std::size_t room = std::max(room_, first_room_);
        while (room < tokens) room *= 2;
        std::vector<Job> caches;
        if (layers_->token) caches = cache_jobs(std::max(room, layers_->token->least));
        std::vector<std::array<KeptRows, 2>> kept;
        for (std::size_t layer = 0; layer < layers_->count; ++layer) {
            kept.push_back({made(caches, layer, 0, room), made(caches, layer, 1, room)});
            if (tokens_ == 0) continue;
            for (const std::size_t which : {0u, 1u})
                kept[layer][which].take(kept_[layer][which], tokens_ * layers_->key_elements());
        }
        caches_ = std::move(caches), kept_ = std::move(kept), room_ = room;
    }

    void extend(std::size_t tokens) { tokens_ += tokens; }

private:
    /// A job for each layer, with its weights and buffers of its own for some tensors.
    static std::vector<Job> jobs_of(const PackedLayers& design, std::size_t size, const std::vector<std::string>& own) {
        std::vector<Job> jobs{Job(design.design, {{design.size, size}}, {{}, {design.layers.front()}})};
        for (std::size_t layer = 1; layer < design.layers.size(); ++layer)
            jobs.push_back(jobs.front().beside(own, {design.layers[layer]}));
        return jobs;
    }

    std::vector<Job> prompt_jobs(std::size_t tokens) const {
        const PackedLayers& design = *layers_->prompt;
        const auto& made = design.roles.made;
        return jobs_of(design, std::max(tokens, design.least), {made.at(kept_roles[0]), made.at(kept_roles[1])});
    }

    std::vector<Job> cache_jobs(std::size_t room) const {
        const auto& given = layers_->token->roles.given;
        return jobs_of(*layers_->token, room, {given.at(cache_roles[0]), given.at(cache_roles[1])});
    }

    std::vector<Job> token_jobs() const {
        std::vector<Job> jobs;
        for (const Job& largest : caches_) jobs.push_back(largest.resized({{layers_->token->size, tokens_ + 1}}));
        return jobs;
    }

    KeptRows made(const std::vector<Job>& caches, std::size_t layer, std::size_t which, std::size_t room) const {
        if (caches.empty()) return KeptRows(room * layers_->key_elements());
        return KeptRows(Elements(caches[layer], layers_->token->roles.given.at(cache_roles[which])));
    }

    /// Writes states and angles; rows behind the last token, which no other looks at, keep what they are.
    void begin(const PackedLayers& design, const Job& job, const float* x, std::size_t tokens) const {
        const auto given = [&](const char* role) { return Elements(job, design.roles.given.at(role)); };
        given("states").write(0, x, tokens * design.width);
        for (const char* role : {"product", "product_scales"}) {  // nothing is to be added to the first layer's
            Elements none = given(role);
            none.write(0, std::vector<float>(none.rows() * none.columns()).data(), none.rows() * none.columns());
        }
        Elements angles = given("angles");
        const std::size_t half = angles.columns() / 2;
        std::vector<float> table(angles.rows() * angles.columns());
        for (std::size_t i = 0; i < angles.rows() * half; ++i) {
            const double exponent = -2 * static_cast<double>(i % half) / static_cast<double>(angles.columns());
            const double angle =
                static_cast<double>(tokens_ + i / half) * std::pow(double{layers_->model.theta}, exponent);
            float* const row = &table[i / half * angles.columns()];
            row[i % half] = static_cast<float>(std::cos(angle)),
                    row[half + i % half] = static_cast<float>(std::sin(angle));
        }
        angles.write(0, table.data(), table.size());
    }

    /// Keeps keys and values of a prompt.
    void keep(const PackedLayers& design, const std::vector<Job>& jobs, std::size_t tokens) {
        reserve(tokens);
        for (std::size_t layer = 0; layer < jobs.size(); ++layer)
            for (const std::size_t which : {0u, 1u})
                kept_[layer][which].take(Elements(jobs[layer], design.roles.made.at(kept_roles[which])),
                                         tokens * layers_->key_elements());
    }

    /// States behind the last layer: y + product * (scale of the row * scale of down).
    void end(const PackedLayers& design, const Job& job, std::size_t tokens, float* y) const {
        const std::size_t count = tokens * design.width;
        const auto read = [&](const char* role, float* values, std::size_t elements) {
            Elements(job, design.roles.made.at(role)).read(0, values, elements);
        };
        std::vector<float> product(count), scales(tokens);
        read("states", y, count), read("product", product.data(), count);
        read("product_scales", scales.data(), tokens);
        const float down = layers_->scales.at("down");
        for (std::size_t i = 0; i < count; ++i) y[i] += product[i] * (scales[i / design.width] * down);
    }

    std::shared_ptr<LayersState> layers_;
    std::size_t first_room_, room_ = 0, tokens_ = 0;
    std::vector<Job> caches_;  // the largest of each layer, with a composition for tokens
    std::vector<std::array<KeptRows, 2>> kept_;
};

Text::Text(const Layers& layers, std::size_t room) : state_(std::make_shared<TextState>(layers.state(), room)) {}

std::size_t Text::tokens() const { return state_->tokens(); }
bool Text::takes(std::size_t tokens) const { return state_->takes(tokens); }

void Text::run(const float* x, std::size_t tokens, float* y, std::chrono::milliseconds timeout) {
    if (!takes(tokens))
        throw ArgumentError(concat("no composition runs ", tokens, " tokens behind ", state_->tokens(),
                                   "; run them elsewhere, and give their keys and values to the text"));
    if (x == nullptr || y == nullptr) throw ArgumentError("x or y is NULL; give states of all tokens");
    state_->run(x, tokens, y, timeout);
}

void Text::read(std::size_t layer, std::size_t first, std::size_t tokens, float* keys, float* values) const {
    const std::size_t elements = state_->layers().key_elements(), all = state_->tokens();
    if (layer >= state_->layers().count || first > all || tokens > all - first)
        throw ArgumentError(concat("tokens ", first, " to ", first + tokens, " of layer ", layer, ": the text has ",
                                   all, ", of ", state_->layers().count, " layers"));
    if (tokens == 0) return;
    state_->kept(layer, 0).read(first * elements, keys, tokens * elements);
    state_->kept(layer, 1).read(first * elements, values, tokens * elements);
}

void Text::extend(std::size_t tokens, const std::vector<const float*>& keys, const std::vector<const float*>& values) {
    const std::size_t elements = state_->layers().key_elements(), count = state_->layers().count;
    if (keys.size() != count || values.size() != count)
        throw ArgumentError(
            concat("keys of ", keys.size(), " and values of ", values.size(), " layers; give those of all ", count));
    if (tokens == 0) return;
    state_->reserve(state_->tokens() + tokens);
    for (std::size_t layer = 0; layer < count; ++layer) {
        state_->kept(layer, 0).write(state_->tokens() * elements, keys[layer], tokens * elements);
        state_->kept(layer, 1).write(state_->tokens() * elements, values[layer], tokens * elements);
    }
    state_->extend(tokens);
}

}  // namespace bdforge
