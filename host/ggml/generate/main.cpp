/// bdforge-generate: BitNet b1.58 as its authors mean it, on ggml, with its ternary products on the array.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <new>

#include "array_layers.hpp"
#include "network.hpp"
#include "options.hpp"

namespace {

using namespace bdforge::generate;

enum Exit { good = 0, failed = 1, refused = 2 };

constexpr std::int64_t characters = 256;  // a vocabulary no larger is of bytes

void show(const std::vector<std::int32_t>& tokens, bool text) {
    for (const std::int32_t token : tokens)
        if (text)
            std::putchar(token);
        else
            std::printf("%d ", token);
    std::fflush(stdout);
}

std::int32_t most_likely(const std::vector<float>& logits) {
    if (!std::all_of(logits.begin(), logits.end(), [](float each) { return std::isfinite(each); }))
        throw ModelError("logits: not all are finite numbers; the file's floats are damaged, get it again");
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void generate(const Options& options) {
    const Model model(options.model);
    std::vector<std::int32_t> tokens = options.ids;
    for (const char character : options.text) tokens.push_back(static_cast<unsigned char>(character));
    if (options.is_text && model.config.vocabulary > characters)
        throw UsageError("--prompt is for 256 tokens at most; give --prompt-ids of your tokeniser's");
    const auto room = static_cast<std::size_t>(model.config.positions);
    if (tokens.size() > room)
        throw ModelError(std::to_string(tokens.size()) + " tokens are more than the " + std::to_string(room) +
                         " positions");
    const std::size_t most = std::min(options.count, room - tokens.size() + 1);
    std::optional<bdforge::Layers> layers;
    if (!options.designs.empty()) layers = array_layers(model, options.designs, options.threads);
    Network network(model, tokens.size() + most - 1, static_cast<int>(options.threads), std::move(layers));
    if (options.designs.empty() && !network.accelerated())
        std::fputs(
            "bdforge-generate: no device bdforge, so all runs on the CPU; GGML_BACKEND_PATH names libggml-bdforge.so\n",
            stderr);
    std::vector<float> logits = network.logits(tokens);
    show(tokens, options.is_text);
    for (std::size_t made = 1;; ++made) {
        const std::int32_t token = most_likely(logits);
        show({token}, options.is_text);
        if (made == most || token == model.config.end) break;
        logits = network.logits({token});
    }
    std::puts("");
    const Places& places = network.places();
    if (!options.designs.empty())
        std::fprintf(stderr, "lists of all layers: %zu of prompts, %zu of tokens; %zu heads\n", places.prompts,
                     places.tokens, places.heads);
    std::fprintf(stderr, "ternary products: %zu by bdforge, %zu by others\n", places.ours, places.others);
}

int report(const char* text, Exit code) {
    std::fprintf(stderr, "bdforge-generate: %s\n", text);
    return code;
}

void errors_only(ggml_log_level level, const char* text, void*) {
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

}  // namespace

int main(int count, char** words) {
    try {
        const Options options = parsed(count, words);
        if (options.help) return std::fputs(help, stdout), good;
        ggml_log_set(errors_only, nullptr);
        ggml_backend_load_all();
        generate(options);
        return good;
    } catch (const UsageError& error) {
        return report(error.what(), refused);
    } catch (const ModelError& error) {
        return report(error.what(), refused);
    } catch (const bdforge::Error& error) {
        const bool ran = error.status() == BDFORGE_RUN || error.status() == BDFORGE_TIMEOUT;
        return report(error.what(), ran ? failed : refused);
    } catch (const std::bad_alloc&) {
        return report("out of memory; free some and try again", failed);
    } catch (const std::exception& error) {
        return report(error.what(), failed);
    }
}
