// A text's layers on a device whose memory is apart from the host's, against the emulated array, which shares it.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bdforge/error.hpp"
#include "devices.hpp"
#include "unit.hpp"

using namespace bdforge;
using unit::check_contains, unit::check_equal;

namespace tiny {

constexpr std::size_t hidden = 256, inner = 512, heads = 4, key_heads = 2, size = 64, layers = 2, vocabulary = 64;

/// A model's tensors; they live as long as it does.
class Tensors {
public:
    explicit Tensors(unsigned seed) : random_(seed) {
        const std::map<std::string, std::pair<std::size_t, std::size_t>> matrices{
            {"q", {hidden, heads * size}}, {"k", {hidden, key_heads * size}}, {"v", {hidden, key_heads * size}},
            {"o", {heads * size, hidden}}, {"gate", {hidden, inner}}, {"up", {hidden, inner}}, {"down", {inner, hidden}}};
        for (const auto& [role, shape] : matrices) {
            std::vector<std::int8_t>& made = codes_[role];
            for (std::size_t i = 0; i < shape.first * shape.second; ++i) made.push_back(static_cast<std::int8_t>(static_cast<int>(random_() % 3) - 1));
            tensors[role] = {made.data(), shape.first, shape.second, 0.0625F};
        }
        for (const char* role : {"attn_norm", "attn_sub_norm", "ffn_norm", "ffn_sub_norm"}) {
            std::vector<float>& made = norms_[role];
            made.assign(std::string(role) == "ffn_sub_norm" ? inner : hidden, 1.0F);
            tensors[role] = {made.data(), 1, made.size()};
        }
    }

    std::map<std::string, LayerTensor> tensors;

private:
    std::mt19937 random_;
    std::map<std::string, std::vector<std::int8_t>> codes_;
    std::map<std::string, std::vector<float>> norms_;
};

Layers packed(const Device& device, const std::vector<std::string>& names) {
    std::vector<Design> designs;
    for (const std::string& name : names) designs.push_back(Design::load(device, unit::data_folder() + "/" + name + "/" + name));
    Layers made(designs, {heads, key_heads, size, 1e-5F, 500000, "relu2"});
    for (unsigned layer = 0; layer < layers; ++layer) made.add(Tensors(layer).tensors);
    return made;
}

/// Numbers of a head's row, from -1 to 1.
void head_row(std::size_t row, float* values) {
    std::mt19937 random(static_cast<unsigned>(row));
    for (std::size_t i = 0; i < hidden; ++i) values[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000;
}

void end(Layers made) {
    const std::vector<float> norm(hidden, 1.0F);
    made.end({norm.data(), 1, hidden}, vocabulary, head_row);
}

std::vector<float> logits(Text& text, const float* x = nullptr) {
    std::vector<float> found(vocabulary);
    text.logits(found.data(), x);
    return found;
}

std::vector<float> random_states(std::size_t tokens) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> made(tokens * hidden);
    for (float& value : made) value = normal(random);
    return made;
}

/// The next tokens of `x` by a text.
std::vector<float> next(Text& text, const std::vector<float>& x, std::size_t tokens) {
    std::vector<float> y(tokens * hidden);
    text.run(x.data() + text.tokens() * hidden, tokens, y.data());
    return y;
}

std::vector<float> kept(const Text& text) {
    std::vector<float> keys(text.tokens() * key_heads * size), values(keys.size());
    text.read(layers - 1, 0, text.tokens(), keys.data(), values.data());
    keys.insert(keys.end(), values.begin(), values.end());
    return keys;
}

}  // namespace tiny

UNIT_CASE("long texts", what_either_side_writes_of_a_text_the_other_gets) {
    const std::vector<std::string> names{"bitnet", "bitnet_token"};
    const auto script = std::make_shared<unit::Script>();
    const std::vector<float> x = tiny::random_states(64);
    Text apart(tiny::packed(unit::scripted_device(script), names), 16), shared(tiny::packed(unit::emulated_device(), names), 16);
    for (const std::size_t tokens : {15, 1, 1, 20, 1, 3, 1}) {
        const std::string which = std::to_string(tokens) + " behind " + std::to_string(apart.tokens());
        check_equal(tiny::next(apart, x, tokens), tiny::next(shared, x, tokens), "states of " + which);
        if (tokens == 3) check_equal(tiny::kept(apart), tiny::kept(shared), "keys and values of " + which);
    }
    check_equal(tiny::kept(apart), tiny::kept(shared), "keys and values of all");
}

UNIT_CASE("layers", tokens_that_ran_elsewhere_are_there) {
    const std::vector<std::string> names{"bitnet_token"};
    const auto script = std::make_shared<unit::Script>();
    const std::vector<float> x = tiny::random_states(32), old = tiny::random_states(20);
    const std::vector<const float*> keys(tiny::layers, old.data()), values(tiny::layers, old.data() + tiny::hidden);
    Text apart(tiny::packed(unit::scripted_device(script), names), 8), shared(tiny::packed(unit::emulated_device(), names), 8);
    for (Text* text : {&apart, &shared}) text->extend(15, keys, values);
    check_equal(tiny::next(apart, x, 1), tiny::next(shared, x, 1), "states");
    for (Text* text : {&apart, &shared}) text->extend(1, keys, values);
    check_equal(tiny::next(apart, x, 1), tiny::next(shared, x, 1), "states behind another one that ran elsewhere");
    check_equal(tiny::kept(apart), tiny::kept(shared), "keys and values");
}

UNIT_CASE("layers", a_text_is_after_a_fault_what_it_was) {
    const std::vector<std::string> names{"bitnet", "bitnet_token"};
    const auto script = std::make_shared<unit::Script>();
    const std::vector<float> x = tiny::random_states(32);
    Text text(tiny::packed(unit::scripted_device(script), names)), right(tiny::packed(unit::emulated_device(), names));
    for (const std::size_t tokens : {17, 1}) {
        std::vector<float> y(tokens * tiny::hidden);
        const std::size_t before = text.tokens();
        script->failing_batches = 1;
        const auto fails = [&] { text.run(x.data() + before * tiny::hidden, tokens, y.data()); };
        check_contains(unit::message_of<RunError>(fails), "the chain was lost");
        check_equal(text.tokens(), before, "tokens");
        check_equal(tiny::next(text, x, tokens), tiny::next(right, x, tokens), "states of the second try");
    }
}

UNIT_CASE("layers", logits_are_of_what_the_last_layer_left) {
    const std::vector<std::string> names{"bitnet_token", "bitnet_head"};
    const auto script = std::make_shared<unit::Script>();
    const std::vector<float> x = tiny::random_states(32), old = tiny::random_states(20);
    const std::vector<const float*> keys(tiny::layers, old.data()), values(tiny::layers, old.data() + tiny::hidden);
    const Layers apart_layers = tiny::packed(unit::scripted_device(script), names), shared_layers = tiny::packed(unit::emulated_device(), names);
    for (const Layers& made : {apart_layers, shared_layers}) {
        check_equal(made.ends(), true, "ends");
        check_contains(unit::message_of<ArgumentError>([&] { Text text(made); }), "the model's end is not packed");
        tiny::end(made);
        check_equal(made.vocabulary(), tiny::vocabulary, "vocabulary");
        check_contains(unit::message_of<StateError>([&] { Layers(made).add(tiny::Tensors(0).tensors); }), "is there already");
    }
    Text apart(apart_layers, 64), shared(shared_layers, 64);
    for (Text* text : {&apart, &shared}) {
        text->extend(15, keys, values);
        check_contains(unit::message_of<ArgumentError>([&] { tiny::logits(*text); }), "the last token ran elsewhere");
    }
    check_equal(tiny::logits(apart, x.data()), tiny::logits(shared, x.data()), "of states");
    for (int token = 0; token < 2; ++token) {
        for (Text* text : {&apart, &shared}) text->run(x.data() + token * tiny::hidden, 1, nullptr);
        check_equal(tiny::logits(apart), tiny::logits(shared), "of a token");
    }
    check_contains(unit::message_of<StateError>([&] { tiny::end(shared_layers); }), "a text uses these layers");
}

UNIT_CASE("layers", one_list_makes_a_tokens_logits) {
    const auto script = std::make_shared<unit::Script>();
    const std::vector<float> x = tiny::random_states(40);
    const std::vector<std::string> names{"bitnet", "bitnet_token", "bitnet_head"};
    const Layers apart_layers = tiny::packed(unit::scripted_device(script), names), shared_layers = tiny::packed(unit::emulated_device(), names);
    for (const Layers& made : {apart_layers, shared_layers}) tiny::end(made);
    Text apart(apart_layers, 16), shared(shared_layers, 16);
    for (const std::size_t tokens : {15, 1, 1, 3}) {  // memory of 16 is full, and a prompt's layers are on another array
        const std::string which = std::to_string(tokens) + " behind " + std::to_string(apart.tokens());
        std::vector<float> y(tokens * tiny::hidden), logits(tiny::vocabulary);
        script->batches.clear();
        apart.run(x.data() + apart.tokens() * tiny::hidden, tokens, y.data(), logits.data());
        check_equal(script->batches, {tokens == 1 ? tiny::layers + 1 : tiny::layers}, "commands of lists of " + which);
        check_equal(y, tiny::next(shared, x, tokens), "states of " + which);
        check_equal(logits, tiny::logits(shared), "logits of " + which);
        check_equal(logits, tiny::logits(apart), "logits once more of " + which);
    }
    check_equal(tiny::kept(apart), tiny::kept(shared), "keys and values");
    Text without(tiny::packed(unit::emulated_device(), {"bitnet"}));
    std::vector<float> logits(tiny::vocabulary);
    check_contains(unit::message_of<ArgumentError>([&] { without.run(x.data(), 3, nullptr, logits.data()); }), "the model's end is not packed");
    check_equal(without.tokens(), 0U, "tokens of a text that was refused");
}

UNIT_CASE("layers", a_job_stands_where_another_designs_has_its_operands) {
    const Device device = unit::emulated_device();
    const auto loaded = [](const Device& on, const std::string& name) { return Design::load(on, unit::data_folder() + "/" + name + "/" + name); };
    const Design token = loaded(device, "bitnet_token"), head = loaded(device, "bitnet_head"), several = loaded(device, "bitnet");
    const Sizes sizes{{"tokens", 1}, {"vocabulary", tiny::vocabulary}};
    const Job layer(token, {{"keys", 19}});
    const std::map<std::string, std::string> carried{{"x", "y"}, {"sums", "down_sums"}, {"scales", "f_scales"}};
    const Job end = layer.beside(head, sizes, carried);
    for (const auto& [own, theirs] : carried) {
        Job writes = end;
        check_equal(static_cast<const void*>(writes.memory(own)) == layer.memory(theirs), true, own + " is " + theirs);
    }
    check_equal(end.memory("logits") == layer.memory("k"), false, "memory of its own");
    Batch::of(token, {layer, end}).run();
    Batch::of(head, {end, layer}).run();
    const auto refused = [&](const Design& design, const std::map<std::string, std::string>& operands, const char* says) {
        check_contains(unit::message_of<ArgumentError>([&] { layer.beside(design, sizes, operands); }), says);
    };
    refused(head, {{"x", "y"}}, "operand sums of bitnet_head 1x64 on emulated lies in one buffer with others that are to stand where");
    refused(head, {{"x", "down_sums"}, {"sums", "y"}, {"scales", "f_scales"}}, "it is bf16[256] from byte 0 on, that one bf16[256] from byte 512 on; give them");
    refused(head, {{"x", "k"}, {"sums", "down_sums"}, {"scales", "f_scales"}}, "does not lie where bitnet_token 19 on emulated has k");
    refused(head, {{"x", "z"}}, "has no operand z");
    refused(head, {{"h", "y"}}, "operand h");
    refused(loaded(device, "bitnet_head"), carried, "bitnet_head is not loaded on the array of bitnet_token; load designs of one image");
    refused(loaded(unit::emulated_device(), "bitnet_head"), carried, "bitnet_head is not loaded on the array of bitnet_token");
    check_contains(unit::message_of<ArgumentError>([&] { Batch::of(several, {layer}); }), "bitnet_token is not loaded on the array of bitnet;");
    check_contains(unit::message_of<ArgumentError>([&] { Job(token, {{"keys", 16}}).beside(head, {{"tokens", 1}, {"vocabulary", 0}}, carried); }), "bitnet_head");
}

UNIT_CASE("layers", a_head_that_is_not_finite_is_refused) {
    const Layers made = tiny::packed(unit::emulated_device(), {"bitnet_token", "bitnet_head"});
    const std::vector<float> norm(tiny::hidden, 1.0F);
    const auto odd = [](std::size_t row, float* values) { tiny::head_row(row, values), values[5] = row == 3 ? INFINITY : values[5]; };
    check_contains(unit::message_of<WeightError>([&] { Layers(made).end({norm.data(), 1, tiny::hidden}, tiny::vocabulary, odd); }),
                   "head: row 3 has numbers that are not finite");
    const Layers without = tiny::packed(unit::emulated_device(), {"bitnet_token"});
    check_contains(unit::message_of<ArgumentError>([&] { tiny::end(without); }), "no composition of a model's end was given");
}
