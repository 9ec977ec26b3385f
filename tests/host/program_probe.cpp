// program_probe: runs the sequence programs on stdin, one JSON object to a line: {"sequence": a manifest's member,
// "parameters": [...], "wide": whether}. Prints for each line its words as a list, or the kind of error and its text. With
// "layouts" it lays out every operand before.

#include <cstdio>
#include <iostream>
#include <string>

#include "bdforge/error.hpp"
#include "bdforge/layout.hpp"
#include "bdforge/sequence.hpp"
#include "program.hpp"

using namespace bdforge;

static void print(const std::vector<std::uint32_t>& words) {
    std::printf("[");
    for (std::size_t i = 0; i < words.size(); ++i) std::printf(i == 0 ? "%u" : ",%u", words[i]);
    std::printf("]\n");
}

static std::vector<std::uint32_t> words(const std::string& line) {
    const Json json = Json::parse(line, "line");
    const JsonView view(json, "line");
    generator::Design design = read_sequence(view.at("sequence"));
    design.wide = view.at("wide").boolean();
    generator::Parameters parameters;
    for (const JsonView& value : view.at("parameters").elements())
        parameters.push_back(value.integer(INT64_MIN, INT64_MAX));
    const Sequencer sequencer(std::move(design));
    if (view.has("layouts")) {
        const generator::Program& program = sequencer.design().program;
        const auto values = sequencer.values(parameters);
        for (const generator::Operand& operand : program.operands)
            generator::Layout(operand, program.arguments[operand.argument], values);
    }
    return sequencer.words(parameters);
}

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        try {
            print(words(line));
        } catch (const ManifestError& error) {
            std::printf("ManifestError: %s\n", error.what());
        } catch (const generator::SequenceError& error) {
            std::printf("SequenceError: %s\n", error.what());
        }
        std::fflush(stdout);
    }
}
