#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace bdforge::generate {

const char* const help =
    "usage: bdforge-generate MODEL.gguf (--prompt-ids 1,2,3 | --prompt TEXT) [-n COUNT] [-t THREADS]\n"
    "                        [--design FOLDER ...]\n"
    "Prints the prompt and the most likely tokens behind it, as 'bdforge generate' does. --prompt is for\n"
    "vocabularies of bytes. Each --design is a built composition of a layer, of several tokens or of one: what it\n"
    "takes runs by it, all layers as one list, on the device that BDFORGE_GGML_DEVICE names. All other ternary\n"
    "products run where GGML_BACKEND_PATH=libggml-bdforge.so and its variables say, else on the CPU.\n";

namespace {

constexpr std::size_t count_most = 1'000'000;
constexpr const char* known[] = {"--prompt-ids", "--prompt", "-n", "-t", "--design"};

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

void take(Options& made, const std::string& option, const std::string& value) {
    if (option == "--prompt-ids") made.ids = numbers(option, value);
    if (option == "--prompt") made.text = value, made.is_text = true;
    if (option == "-n") made.count = number<std::size_t>(option, value, 1, count_most);
    if (option == "-t") made.threads = number<std::size_t>(option, value, 1, 1024);
    if (option == "--design") made.designs.push_back(value);
}

}  // namespace

Options parsed(int count, char** words) {
    Options made;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        made.help = made.help || word == "-h" || word == "--help";
        if (made.help) return made;
        if (word.empty() || word[0] != '-') {
            if (!made.model.empty()) throw UsageError("two models, " + made.model + " and " + word + "; give one");
            made.model = word;
            continue;
        }
        if (std::find(std::begin(known), std::end(known), word) == std::end(known))
            throw UsageError("there is no option " + word.substr(0, 40) + "; --help lists all");
        if (++i == count) throw UsageError(word + " needs a value");
        take(made, word, words[i]);
    }
    if (made.model.empty()) throw UsageError("which model? name a .gguf file");
    if (made.is_text != made.ids.empty()) throw UsageError("give either --prompt-ids or --prompt");
    return made;
}

}  // namespace bdforge::generate
