// probe: follows orders on stdin, a line each, and prints a line for each. `probe operands` places and fetches operands:
//
//     MANIFEST WAY OPERAND STRIDE ARRAY BUFFER SIZE...
//
// WAY is `place` (the array in file ARRAY to the buffer in file BUFFER), `fetch` (the other way round, into an array of
// the file's length), `resident` (as place, of the operand's own sizes) or `direct` (tells where the buffer holds the
// array's lines as they stand: elements from line to line and the first byte, or none). SIZE is name=value. A buffer that
// is not there is zeros. Both are on the heap and as long as they must be, so that sanitizers see a step outside. Prints
// "ok" and what is told, or the error's kind and text.
//
// `probe programs` runs sequence programs, one JSON object to a line: {"sequence": a manifest's member, "parameters":
// [...]}; without "sequence" that of the line before. Prints for each line its words as a list, or the kind of error and
// its text. With "layouts" it lays out every operand before; with "bytes" it prints the bytes of the host buffers instead.
//
// `probe jobs IMAGE` loads a design once on the emulated array and runs a job for each line, "SIZE... OPERAND FILE ...":
// inputs are read from their files, outputs written to theirs. Prints "ok" or the error's text.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bdforge/error.hpp"
#include "layout.hpp"
#include "sequencer.hpp"
#include "sequence_program.hpp"
#include "state.hpp"

using namespace bdforge;

constexpr std::size_t most = std::size_t{1} << 26;

static std::vector<char> read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

static void write(const std::string& path, const std::vector<char>& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// NAME=VALUE.
static void add_size(Sizes& sizes, const std::string& word) {
    const std::size_t equals = word.find('=');
    sizes[word.substr(0, equals)] = std::stoul(word.substr(equals + 1));
}

static std::string follow(const DesignState& design, std::istringstream& words) {
    std::string way, name, array_path, buffer_path;
    std::size_t stride = 0;
    words >> way >> name >> stride >> array_path >> buffer_path;
    Sizes sizes;
    for (std::string word; words >> word;) add_size(sizes, word);
    const std::size_t argument = design.operand(name).argument;
    const auto values = way == "resident" ? design.streams.values(some_parameters(design, sizes))
                                          : design.streams.values(all_parameters(design, sizes));
    if (way == "resident") require_known(design, design.operand(name), values);
    const Layouts found = layouts(design, values, &argument);
    if (found.bytes[argument] > most) throw ManifestError("no test has buffers of that size");
    std::vector<char> array = read(array_path), buffer = read(buffer_path);
    if (buffer.empty()) buffer.resize(found.bytes[argument]);
    if (buffer.size() != found.bytes[argument]) throw ArgumentError("the buffer has another size");
    for (const sequence::Layout& layout : found.operands) {
        if (layout.operand().name != name) continue;
        if (way == "direct") {
            const auto lines = layout.direct();
            return lines ? std::to_string(lines->leading) + " " + std::to_string(lines->first) : "none";
        }
        if (way == "fetch") {
            layout.fetch(buffer.data(), array.data(), leading_of(layout, array.data(), array.size(), stride));
            write(array_path, array);
        } else {
            layout.place_missing(buffer.data());
            place(layout, {array.data(), array.size(), stride}, buffer.data());
            write(buffer_path, buffer);
        }
    }
    return "";
}

static void operands() {
    std::map<std::string, std::unique_ptr<DesignState>> designs;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string path, kind = "ok", text;
        words >> path;
        try {
            std::unique_ptr<DesignState>& design = designs[path];
            if (!design) design = std::make_unique<DesignState>(Device::open("emulated"), load_manifest(path), false);
            text = follow(*design, words);
        } catch (const ManifestError& error) {
            kind = "ManifestError", text = error.what();
        } catch (const ArgumentError& error) {
            kind = "ArgumentError", text = error.what();
        } catch (const WeightError& error) {
            kind = "WeightError", text = error.what();
        }
        std::printf("%s %s\n", kind.c_str(), text.c_str());
        std::fflush(stdout);
    }
}

template <class Number>
static void print(const std::vector<Number>& numbers) {
    std::printf("[");
    for (std::size_t i = 0; i < numbers.size(); ++i) std::printf(i == 0 ? "%lld" : ",%lld", static_cast<long long>(numbers[i]));
    std::printf("]\n");
}

static void answer(const JsonView& order, const sequence::Sequencer& sequencer) {
    sequence::Parameters parameters;
    for (const JsonView& value : order.at("parameters").elements())
        parameters.push_back(value.integer(INT64_MIN, INT64_MAX));
    const sequence::Program& program = sequencer.source().program;
    if (order.has("bytes")) {
        const auto values = sequencer.values(parameters);
        std::vector<std::int64_t> bytes;
        for (const sequence::Argument& argument : program.arguments)
            bytes.push_back(sequence::argument_bytes(argument, values));
        return print(bytes);
    }
    if (order.has("layouts")) {
        const auto values = sequencer.values(parameters);
        for (const sequence::Operand& operand : program.operands)
            sequence::Layout(operand, program.arguments[operand.argument], values);
    }
    print(sequencer.words(parameters));
}

static void programs() {
    std::optional<sequence::Sequencer> sequencer;
    for (std::string line; std::getline(std::cin, line);) {
        try {
            const Json json = Json::parse(line, "line");
            const JsonView order(json, "line");
            if (order.has("sequence")) sequencer.emplace(sequence::read_sequence(order.at("sequence")));
            answer(order, *sequencer);
        } catch (const ManifestError& error) {
            std::printf("ManifestError: %s\n", error.what());
        } catch (const sequence::SequenceError& error) {
            std::printf("SequenceError: %s\n", error.what());
        }
        std::fflush(stdout);
    }
}

static void run_job(const Design& design, std::istringstream& words) {
    Sizes sizes;
    std::map<std::string, std::string> files;
    for (std::string word; words >> word;) {
        if (word.find('=') == std::string::npos)
            words >> files[word];
        else
            add_size(sizes, word);
    }
    Job job(design, sizes);
    const auto each = [&](bool outputs, const auto& act) {
        for (const OperandShape& operand : job.operands())
            if (operand.output == outputs) act(operand, files.at(operand.name));
    };
    each(false, [&](const OperandShape& operand, const std::string& file) {
        const std::vector<char> array = read(file);
        job.place(operand.name, {array.data(), array.size()});
    });
    job.run();
    each(true, [&](const OperandShape& operand, const std::string& file) {
        std::vector<char> array(operand.rows * operand.columns * operand.element_bytes);
        job.fetch(operand.name, {array.data(), array.size()});
        write(file, array);
    });
}

static void jobs(const char* image) {
    const Design design = Design::load(Device::open("emulated"), image);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        try {
            run_job(design, words);
            std::puts("ok");
        } catch (const ArgumentError& error) {
            std::puts(error.what());
        }
    }
}

int main(int, char** argv) {
    const std::string mode = argv[1];
    if (mode == "jobs") jobs(argv[2]);
    if (mode == "operands") operands();
    if (mode == "programs") programs();
}
