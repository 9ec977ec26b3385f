/// bdforge-generate: BitNet b1.58 as its authors mean it, on ggml, with its ternary products on the array.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "network.hpp"

namespace {

using namespace bdforge::generate;

enum Exit { good = 0, failed = 1, refused = 2 };

constexpr std::int64_t characters = 256;  // a vocabulary no larger is of bytes
constexpr std::size_t count_most = 1'000'000;

constexpr const char* help =
    "usage: bdforge-generate MODEL.gguf (--prompt-ids 1,2,3 | --prompt TEXT) [-n COUNT] [-t THREADS]\n"
    "Prints the prompt and the most likely tokens behind it, as 'bdforge generate' does. --prompt is for vocabularies of\n"
    "bytes. Ternary products run where GGML_BACKEND_PATH=libggml-bdforge.so and its variables say, else on the CPU.\n";

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    std::string model, text;
    std::vector<std::int32_t> ids;
    std::size_t count = 32, threads = 1;
    bool is_text = false, help = false;
};

template <class Number>
Number number(const std::string& option, const std::string& text, Number lowest, Number highest) {
    Number found = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), found);
    if (fault != std::errc() || end != text.data() + text.size() || found < lowest || found > highest)
        throw UsageError(option + " " + text.substr(0, 40) + ": give a number from " + std::to_string(lowest) + " to " +
                         std::to_string(highest));
    return found;
}

std::vector<std::int32_t> numbers(const std::string& option, const std::string& text) {
    std::vector<std::int32_t> found;
    for (std::size_t first = 0; first <= text.size();) {
        const std::size_t end = std::min(text.find(',', first), text.size());
        found.push_back(number<std::int32_t>(option, text.substr(first, end - first), 0, INT32_MAX));
        first = end + 1;
    }
    return found;
}

Options parsed(int count, char** words) {
    Options made;
    bool prompt = false;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        made.help = made.help || word == "-h" || word == "--help";
        if (made.help) return made;
        if (word.empty() || word[0] != '-') {
            if (!made.model.empty()) throw UsageError("two models, " + made.model + " and " + word + "; give one");
            made.model = word;
            continue;
        }
        if (word != "--prompt-ids" && word != "--prompt" && word != "-n" && word != "-t")
            throw UsageError("there is no option " + word.substr(0, 40) + "; --help lists all");
        if (++i == count) throw UsageError(word + " needs a value");
        prompt = prompt || word[1] == '-';
        if (word == "--prompt-ids") made.ids = numbers(word, words[i]);
        if (word == "--prompt") made.text = words[i], made.is_text = true;
        if (word == "-n") made.count = number<std::size_t>(word, words[i], 1, count_most);
        if (word == "-t") made.threads = number<std::size_t>(word, words[i], 1, 1024);
    }
    if (made.model.empty()) throw UsageError("which model? name a .gguf file");
    if (!prompt || made.is_text != made.ids.empty()) throw UsageError("give either --prompt-ids or --prompt");
    return made;
}

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
        throw ModelError(std::to_string(tokens.size()) + " tokens are more than the " + std::to_string(room) + " positions");
    const std::size_t most = std::min(options.count, room - tokens.size() + 1);
    Network network(model, tokens.size() + most - 1, static_cast<int>(options.threads));
    if (!network.accelerated())
        std::fputs("bdforge-generate: no device bdforge, so all runs on the CPU; GGML_BACKEND_PATH names libggml-bdforge.so\n",
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
    std::fprintf(stderr, "ternary products: %zu by bdforge, %zu by others\n", network.places().ours, network.places().others);
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
    } catch (const std::bad_alloc&) {
        return report("out of memory; free some and try again", failed);
    } catch (const std::exception& error) {
        return report(error.what(), failed);
    }
}
