// MANIFESTS MODE: makes instruction streams for the problems on stdin, "design parameter ..." to a line.
//
// words: for each line the number of words and the words, or 0, as 32-bit binary.
// bytes: for each line the bytes of the host buffers, or the refusal.
// time: for each line the median microseconds of a generation.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "sequencer.hpp"
#include "designs.hpp"

using bdforge::sequence::Sequencer;
using bdforge::sequence::Parameters;
using bdforge::sequence::SequenceError;

static void print_words(const Sequencer &sequencer, const Parameters &parameters) {
    std::vector<std::uint32_t> words;
    try {
        words = sequencer.words(parameters);
    } catch (const SequenceError &) {
    }
    const auto count = static_cast<std::uint32_t>(words.size());
    std::fwrite(&count, sizeof count, 1, stdout);
    std::fwrite(words.data(), sizeof(std::uint32_t), words.size(), stdout);
}

static void print_bytes(const Sequencer &sequencer, const Parameters &parameters) {
    try {
        const bdforge::sequence::Values values = sequencer.values(parameters);
        for (const bdforge::sequence::Argument &argument : sequencer.source().program.arguments)
            std::printf("%lld ", static_cast<long long>(bdforge::sequence::argument_bytes(argument, values)));
        std::printf("\n");
    } catch (const SequenceError &error) {
        std::printf("refused: %s\n", error.what());
    }
}

static void print_time(const Sequencer &sequencer, const Parameters &parameters) {
    std::vector<double> microseconds;
    for (int run = 0; run < 101; ++run) {
        const auto start = std::chrono::steady_clock::now();
        const std::size_t words = sequencer.words(parameters).size();
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        microseconds.push_back(words ? took.count() : 0);
    }
    std::nth_element(microseconds.begin(), microseconds.begin() + 50, microseconds.end());
    std::printf("%.1f\n", microseconds[50]);
}

int main(int, char **argv) {
    const std::string mode = argv[2];
    std::vector<std::unique_ptr<Sequencer>> sequencers;
    for (bdforge::sequence::Source &design : designs(argv[1]))
        sequencers.push_back(std::make_unique<Sequencer>(std::move(design)));
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream numbers(line);
        std::size_t index;
        numbers >> index;
        Parameters parameters;
        for (std::int64_t number; numbers >> number;)
            parameters.push_back(number);
        const Sequencer &sequencer = *sequencers.at(index);
        mode == "words" ? print_words(sequencer, parameters)
        : mode == "bytes" ? print_bytes(sequencer, parameters)
                          : print_time(sequencer, parameters);
    }
}
