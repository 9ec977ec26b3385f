// MANIFESTS, one to a line: for each line of stdin, "design parameter ...", the median microseconds of making a stream.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "manifest.hpp"
#include "sequencer.hpp"

using namespace bdforge::sequence;

static double median_us(const Sequencer& sequencer, const Parameters& parameters) {
    std::vector<double> microseconds;
    for (int run = 0; run < 101; ++run) {
        const auto start = std::chrono::steady_clock::now();
        const std::size_t words = sequencer.words(parameters).size();
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        microseconds.push_back(words ? took.count() : 0);
    }
    std::nth_element(microseconds.begin(), microseconds.begin() + 50, microseconds.end());
    return microseconds[50];
}

int main(int, char** argv) {
    std::vector<std::unique_ptr<Sequencer>> sequencers;
    std::ifstream file(argv[1]);
    for (std::string line; std::getline(file, line);)
        sequencers.push_back(std::make_unique<Sequencer>(bdforge::parse_manifest(line, argv[1]).source));
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream numbers(line);
        std::size_t index;
        numbers >> index;
        std::printf("%.1f\n", median_us(*sequencers.at(index), {std::istream_iterator<std::int64_t>(numbers), {}}));
    }
}
