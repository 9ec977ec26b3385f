#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "bdforge/error.hpp"
#include "layer_elements.hpp"
#include "layers_state.hpp"
#include "messages.hpp"

namespace bdforge {

/// A text's keys and values in the memory of a composition, which runs its tokens there.
class Cache {
public:
    explicit Cache(const PackedLayers& design) : design_(&design) {}

    const PackedLayers& design() const { return *design_; }
    /// Tokens whose keys and values it holds.
    std::size_t held = 0;

    /// Keys (0) or values (1) of a layer.
    Elements& rows(std::size_t layer, std::size_t which) { return rows_[layer][which]; }

    /// Takes rows of tokens that it lacks from another one, which holds so many; `elements` of each.
    void take(Cache& from, std::size_t tokens, std::size_t elements) {
        if (held >= tokens) return;
        for (std::size_t layer = 0; layer < rows_.size(); ++layer)
            for (const std::size_t which : {0U, 1U})
                rows(layer, which).take(from.rows(layer, which), held * elements, (tokens - held) * elements);
        held = tokens;
    }

    /// Whether its memory is large enough for a problem.
    bool holds(const Sizes& sizes) const {
        return !largest_.empty() && std::all_of(sizes.begin(), sizes.end(), [&](const auto& size) {
            return largest_.front().sizes().at(size.first) >= size.second;
        });
    }

    /// The same in larger memory, of the problem of these sizes at most.
    Cache larger(Sizes sizes, std::size_t elements) {
        for (auto& [name, size] : sizes)
            if (!largest_.empty()) size = std::max(size, largest_.front().sizes().at(name));
        Cache made(*design_);
        const auto& given = design_->roles.given;
        const std::vector<std::string> own{given.at("key_cache"), given.at("value_cache")};
        for (const Resident& weights : design_->layers) {
            made.largest_.push_back(made.largest_.empty() ? Job(design_->design, sizes, {{}, {weights}})
                                                          : made.largest_.front().beside(own, {weights}));
            made.rows_.push_back({Elements(made.largest_.back(), own[0]), Elements(made.largest_.back(), own[1])});
        }
        made.take(*this, held, elements);
        return made;
    }

    /// A job for each layer.
    std::vector<Job> jobs(const Sizes& sizes) const {
        std::vector<Job> made;
        for (const Job& largest : largest_) made.push_back(largest.resized(sizes));
        return made;
    }

    /// The job of a model's end behind a layer's, where that leaves what it takes: there for all sizes.
    const Job& end(const PackedHead& head, const Job& layer) {
        std::vector<const void*> places;
        for (const char* role : {"states", "product", "product_scales"})
            places.push_back(Elements(layer, design_->roles.made.at(role)).first());
        if (!end_ || end_->second != places) end_.emplace(head.beside(layer, design_->roles), places);
        return end_->first;
    }

private:
    const PackedLayers* design_;
    std::vector<Job> largest_;
    std::vector<std::array<Elements, 2>> rows_;
    std::optional<std::pair<Job, std::vector<const void*>>> end_;  // and where it finds what is carried
};

class TextState {
public:
    /// ArgumentError for no layers.
    TextState(std::shared_ptr<LayersState> layers, std::size_t room)
        : layers_(std::move(layers)), room_(std::max<std::size_t>(room, 1)) {
        const std::scoped_lock lock(layers_->guard);
        if (layers_->count == 0) throw ArgumentError("there is no layer yet; add them before a text");
        if (layers_->head && layers_->vocabulary() == 0)
            throw ArgumentError("the model's end is not packed; call end behind the last layer");
        layers_->used = true;
        for (const auto* design : {&layers_->several, &layers_->single})
            if (*design) caches_.emplace_back(**design);
    }

    std::size_t tokens() const { return tokens_; }
    const LayersState& layers() const { return *layers_; }

    /// Which composition runs so many tokens next: one by that for one, where it has such a run. Null: none.
    const PackedLayers* runs(std::size_t tokens) const {
        if (tokens == 0) return nullptr;
        for (const auto* design : {&layers_->single, &layers_->several})
            if (*design && (*design)->sizes(tokens, tokens_)) return &**design;
        return nullptr;
    }

    /// `logits`, unless null, come by the same list where one has both.
    void run(const PackedLayers& design, const float* x, std::size_t tokens, float* y, float* logits,
             std::chrono::milliseconds timeout) {
        const PackedHead* const head = logits == nullptr ? nullptr : &end_of_model();
        const bool together = head != nullptr && !design.several && head->on_array_of(design);
        const Sizes sizes = *design.sizes(tokens, tokens_);
        Cache& cache = ready(design, sizes);
        std::vector<Job> jobs = cache.jobs(sizes);
        begin(design, jobs.front(), x, tokens);
        if (together) jobs.push_back(cache.end(*head, jobs.front()));
        Batch::of(design.design, jobs).run(timeout);
        end(design, jobs.front(), tokens, y);
        tokens_ = cache.held = tokens_ + tokens;
        if (together) return head->read(jobs.back(), logits);
        if (head != nullptr) this->logits(logits, nullptr, timeout);
    }

    /// Of states that ran elsewhere, or of what the last layer left here.
    void logits(float* logits, const float* x, std::chrono::milliseconds timeout) {
        const PackedHead& head = end_of_model();
        if (x == nullptr && !last_) throw ArgumentError("the last token ran elsewhere; give its states");
        if (!head_) head_.emplace(head.design, head.sizes(), JobOptions{{}, {*head.weights}});
        const std::size_t width = layers_->width;
        const Carried given = x == nullptr ? *last_ : Carried{{x, x + width}, std::vector<float>(width), {0}};
        head.run(*head_, given, logits, timeout);
    }

    /// All keys and values so far.
    Cache& latest() {
        return *std::max_element(caches_.begin(), caches_.end(),
                                 [](const Cache& one, const Cache& other) { return one.held < other.held; });
    }

    void extend(std::size_t tokens, const std::vector<const float*>& keys, const std::vector<const float*>& values) {
        const std::size_t elements = layers_->key_elements(), all = tokens_ + tokens;
        const PackedLayers& design = latest().design();
        Cache& cache = ready(design, *design.sizes(1, std::max(all, design.tile.keys) - 1));
        for (std::size_t layer = 0; layer < layers_->count; ++layer) {
            cache.rows(layer, 0).write(tokens_ * elements, keys[layer], tokens * elements);
            cache.rows(layer, 1).write(tokens_ * elements, values[layer], tokens * elements);
        }
        tokens_ = cache.held = all;
        last_.reset();
    }

private:
    const PackedHead& end_of_model() const {
        if (layers_->vocabulary() == 0)
            throw ArgumentError("the model's end is not packed; give a composition of it, and call end");
        return *layers_->head;
    }

    /// The cache of a composition, with all that is held so far and room for a problem.
    Cache& ready(const PackedLayers& design, Sizes sizes) {
        Cache& cache = &caches_.front().design() == &design ? caches_.front() : caches_.back();
        if (!cache.holds(sizes)) {
            std::size_t room = room_;
            while (room < sizes["keys"]) room *= 2;
            sizes["keys"] = room;
            cache = cache.larger(sizes, layers_->key_elements());
        }
        cache.take(latest(), tokens_, layers_->key_elements());
        return cache;
    }

    /// Writes states and angles of tokens and of the rows behind them.
    void begin(const PackedLayers& design, const Job& job, const float* x, std::size_t tokens) const {
        const auto given = [&](const char* role) { return Elements(job, design.roles.given.at(role)); };
        for (const char* role : {"states", "product", "product_scales"}) {  // nothing is added to the first layer's
            Elements none = given(role);
            const std::vector<float> zeros(none.rows() * none.columns());
            none.write(0, zeros.data(), zeros.size());
        }
        given("states").write(0, x, tokens * design.width);
        Elements angles = given("angles");
        const std::vector<float> table = turning(tokens_, angles.rows(), angles.columns());
        angles.write(0, table.data(), table.size());
    }

    /// Cosines, then sines, of position * theta^(-2 i / size), i below size / 2, as bdforge/operators/rope/angles.py has them.
    std::vector<float> turning(std::size_t first, std::size_t count, std::size_t size) const {
        std::vector<float> table(count * size);
        for (std::size_t i = 0; i < size / 2; ++i) {
            const double exponent = -2 * static_cast<double>(i) / static_cast<double>(size);
            const double step = std::pow(double{layers_->model.theta}, exponent);
            for (std::size_t row = 0; row < count; ++row) {
                const double angle = static_cast<double>(first + row) * step;
                table[row * size + i] = static_cast<float>(std::cos(angle));
                table[row * size + size / 2 + i] = static_cast<float>(std::sin(angle));
            }
        }
        return table;
    }

    /// Keeps what the last layer left of the last token. States behind it: y + product * (scale of the row * scale of down).
    void end(const PackedLayers& design, const Job& job, std::size_t tokens, float* y) {
        const auto read = [&](const char* role, std::size_t first, std::size_t elements) {
            std::vector<float> values(elements);
            Elements(job, design.roles.made.at(role)).read(first, values.data(), elements);
            return values;
        };
        const std::size_t width = design.width, before = (tokens - 1) * width;
        last_ = {read("states", before, width), read("product", before, width), read("product_scales", tokens - 1, 1)};
        if (y == nullptr) return;
        const std::vector<float> states = read("states", 0, tokens * width), product = read("product", 0, tokens * width),
                                 scales = read("product_scales", 0, tokens);
        const float down = layers_->scales.at("down");
        for (std::size_t i = 0; i < states.size(); ++i) y[i] = states[i] + product[i] * (scales[i / width] * down);
    }

    std::shared_ptr<LayersState> layers_;
    std::size_t room_, tokens_ = 0;
    std::vector<Cache> caches_;  // of each composition
    std::optional<Carried> last_;  // of the last token, if it ran here
    std::optional<Job> head_;
};

Text::Text(const Layers& layers, std::size_t room) : state_(std::make_shared<TextState>(layers.state(), room)) {}

std::size_t Text::tokens() const { return state_->tokens(); }
bool Text::takes(std::size_t tokens) const { return state_->runs(tokens) != nullptr; }

void Text::run(const float* x, std::size_t tokens, float* y, std::chrono::milliseconds timeout) {
    run(x, tokens, y, nullptr, timeout);
}

void Text::run(const float* x, std::size_t tokens, float* y, float* logits, std::chrono::milliseconds timeout) {
    const PackedLayers* const design = state_->runs(tokens);
    if (design == nullptr)
        throw ArgumentError(concat("no composition runs ", tokens, " tokens behind ", state_->tokens(),
                                   "; run them elsewhere, and give their keys and values to the text"));
    if (x == nullptr) throw ArgumentError("x is NULL; give states of all tokens");
    state_->run(*design, x, tokens, y, logits, timeout);
}

void Text::logits(float* logits, const float* x, std::chrono::milliseconds timeout) {
    if (logits == nullptr) throw ArgumentError("logits is NULL; give room for the vocabulary's");
    state_->logits(logits, x, timeout);
}

void Text::read(std::size_t layer, std::size_t first, std::size_t tokens, float* keys, float* values) const {
    const std::size_t elements = state_->layers().key_elements(), all = state_->tokens();
    if (layer >= state_->layers().count || first > all || tokens > all - first)
        throw ArgumentError(concat("tokens ", first, " to ", first + tokens, " of layer ", layer, ": the text has ",
                                   all, ", of ", state_->layers().count, " layers"));
    if (tokens == 0) return;
    state_->latest().rows(layer, 0).read(first * elements, keys, tokens * elements);
    state_->latest().rows(layer, 1).read(first * elements, values, tokens * elements);
}

void Text::extend(std::size_t tokens, const std::vector<const float*>& keys, const std::vector<const float*>& values) {
    const std::size_t count = state_->layers().count;
    if (keys.size() != count || values.size() != count)
        throw ArgumentError(
            concat("keys of ", keys.size(), " and values of ", values.size(), " layers; give those of all ", count));
    if (tokens != 0) state_->extend(tokens, keys, values);
}

}  // namespace bdforge
