#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <variant>

#include "messages.hpp"

namespace bdforge::cli {
namespace {

constexpr std::size_t count_max = 1'000'000'000;

struct Option {
    const char *name, *other_name;
    std::variant<bool Options::*, std::string Options::*, std::size_t Options::*> place;
    std::size_t lowest = 0;  // of a number
};

constexpr Option all_options[] = {
    {"--verify", "--verify", &Options::verify},
    {"--energy", "--energy", &Options::energy},
    {"--any-device", "--any-device", &Options::any_device},
    {"-h", "--help", &Options::help},
    {"-x", "--xclbin", &Options::design},
    {"-d", "--device", &Options::device},
    {"-w", "--weights", &Options::weights},
    {"--wait", "--wait", &Options::wait},
    {"-i", "--iters", &Options::iterations, 1},
    {"--warmup", "--warmup", &Options::warmup},
    {"--timeout", "--timeout", &Options::timeout_ms, 1},
    {"--in-flight", "--in-flight", &Options::in_flight},
    {"--batch", "--batch", &Options::batch, 1},
};

std::size_t number(const std::string& option, const std::string& word, std::size_t lowest) {
    std::size_t value = 0;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc{} || stop != end || value < lowest || value > count_max) {
        throw UsageError(
            concat(option, " takes a number from ", lowest, " to ", count_max, ", got '", word, "'; see --help"));
    }
    return value;
}

/// Options that take NAME=VALUE.
void follow_named(const std::string& word, const std::string& value, Options& options) {
    const std::size_t equals = value.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == value.size())
        throw UsageError(word + " takes NAME=VALUE, got '" + value + "'; see --help");
    const std::string name = value.substr(0, equals), rest = value.substr(equals + 1);
    if (word == "--in")
        options.inputs[name] = rest;
    else if (word == "--out")
        options.outputs[name] = rest;
    else
        options.sizes[name] = number(word, rest, 1), options.generic = true;
}

/// Parts of a text.
std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (const char letter : text) {
        if (letter == at)
            parts.emplace_back();
        else
            parts.back().push_back(letter);
    }
    return parts;
}

/// MxKxN*TIMES,...; a size without times runs once.
std::vector<Weighed> shapes_of(const std::string& word, const std::string& text) {
    std::vector<Weighed> found;
    for (const std::string& part : split(text, ',')) {
        const std::vector<std::string> counted = split(part, '*'), sizes = split(counted.front(), 'x');
        if (sizes.size() != 3 || counted.size() > 2)
            throw UsageError(word + " takes MxKxN*TIMES,..., got '" + part + "'; see --help");
        Weighed shape{{}, counted.size() == 2 ? number(word, counted[1], 1) : 1};
        for (std::size_t i = 0; i < 3; ++i) shape.sizes[std::string(1, "MKN"[i])] = number(word, sizes[i], 1);
        found.push_back(shape);
    }
    return found;
}

/// Follows the option at `words[at]`; returns how many words it took.
std::size_t follow(const std::vector<std::string>& words, std::size_t at, Options& options) {
    const std::string& word = words[at];
    const auto is = [&](const Option& option) { return word == option.name || word == option.other_name; };
    const auto* const option = std::find_if(std::begin(all_options), std::end(all_options), is);
    const bool known = option != std::end(all_options), size = word == "-M" || word == "-K" || word == "-N";
    const bool named = word == "-s" || word == "--size" || word == "--in" || word == "--out";
    if (known && std::holds_alternative<bool Options::*>(option->place)) {
        options.*std::get<bool Options::*>(option->place) = true;
        return 1;
    }
    if (!known && !size && !named && word != "--shapes") throw UsageError("unknown option '" + word + "'; see --help");
    if (at + 1 == words.size()) throw UsageError(word + " needs a value; see --help");
    const std::string& value = words[at + 1];
    if (size) {
        options.sizes[word.substr(1)] = number(word, value, 1);
    } else if (named) {
        follow_named(word, value, options);
    } else if (!known) {
        options.shapes = shapes_of(word, value);
    } else if (const auto* const text = std::get_if<std::string Options::*>(&option->place)) {
        options.**text = value;
    } else {
        options.*std::get<std::size_t Options::*>(option->place) = number(word, value, option->lowest);
    }
    return 2;
}

void check(const Options& options) {
    const bool on_cpu = options.device == "cpu";
    if (on_cpu && (options.verify || options.batch > 1 || !options.weights.empty() || !options.design.empty()))
        throw UsageError("--device cpu takes sizes, --iters and --warmup only; see --help");
    if (options.design.empty() && !on_cpu) throw UsageError("-x is missing: give the design's xclbin; see --help");
    if (options.in_flight != 0 && options.wait.empty()) throw UsageError("--in-flight needs --wait; see --help");
    const bool files = !options.inputs.empty() || !options.outputs.empty();
    if (!options.shapes.empty() && (files || !options.sizes.empty()))
        throw UsageError("--shapes says all sizes; leave out -M, -K, -N, -s, -w, --in and --out; see --help");
    if (options.generic || !options.shapes.empty()) return;
    if (options.sizes.count("M") == 0) throw UsageError("-M is missing: give the rows of A; see --help");
    if (options.weights.empty() && (options.sizes.count("K") == 0 || options.sizes.count("N") == 0)) {
        throw UsageError("-K and -N are missing: give both, or weights with -w; see --help");
    }
}

}  // namespace

Options parse(const std::vector<std::string>& words) {
    Options options;
    for (std::size_t at = 0; at < words.size();) at += follow(words, at, options);
    if (!options.weights.empty()) options.inputs["B"] = options.weights;
    if (!options.help) check(options);
    return options;
}

std::string usage() {
    return R"(usage: bdforge-run -x DESIGN.xclbin -M ROWS -K DEPTH -N COLUMNS [options]
       bdforge-run -x DESIGN.xclbin -s SIZE=COUNT [-s SIZE=COUNT]... [options]
Runs a design on an NPU and says how long it took: C (M x N) = A (M x K) * W (K x N), or any other operator.

  -x, --xclbin FILE   design: an xclbin, or a full ELF (*.elf); manifest.json lies beside it
  -M -K -N COUNT      sizes of the problem; K and N may be left out with -w
  -w, --weights FILE  int8 weights (ternary: -1, 0, 1), K x N, written by numpy.save; random without
  -s, --size NAME=COUNT  a size of any operator, by the name that its design gives it
  --shapes LIST       many GEMMs, each as often as it says: MxKxN*TIMES,...; the last line has the time of all
  --in NAME=FILE      an input, written by numpy.save; at random without. bf16 as 16-bit words, bfp16 as float32
  --out NAME=FILE     where to write an output
  --verify            compare every element of the outputs with the operator's reference, by bdforge in Python (the
                      one that built this program, or BDFORGE_PYTHON)
  -i, --iters COUNT   timed runs (10)
  --batch COUNT       GEMMs that are submitted at once, one after another (1)
  --wait HOW          sequences wait for "column" after column, or "wide", for all at once (as the design says)
  --in-flight COUNT   with --wait: steps at a time, 1 to 4, wide 1 (the most)
  --warmup COUNT      runs before them (2)
  --energy            joules of the timed runs by RAPL, where the processor's counters can be read (as root)
  --timeout MS        longest wait for one run (10000)
  -d, --device NAME   XRT's index, PCI address, or "emulated", which needs no NPU and is slow (0); "cpu" times
                      an int8 GEMM of these sizes on the processor instead, without a design
  --any-device        load on a device whose name the library does not know
  -h, --help          this text

Exit code: 0; 1 when C is wrong; 2 when something is missing or does not fit; 3 when a run failed or timed out.
)";
}

}  // namespace bdforge::cli
