// Makes instruction streams for the sizes on stdin, "design M K N lda ldb ldc" to a line; `designs.inc` holds the
// designs.
//
// words: for each line the number of words and the words, or 0, as 32-bit binary.
// staging: for each line the staged shapes of A, B and C ("- -" for none), whether A is in slabs, and B's bytes, or the
// refusal.
// time: for each line the median microseconds of a generation.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "bdforge/sequence.hpp"

static const std::vector<bdforge::generator::Design> designs = {
#include "designs.inc"
};

static void print_words(const bdforge::generator::Design &design, const bdforge::generator::Problem &problem) {
    std::vector<std::uint32_t> words;
    try {
        words = bdforge::sequence(design, problem);
    } catch (const bdforge::generator::SequenceError &) {
    }
    const auto count = static_cast<std::uint32_t>(words.size());
    std::fwrite(&count, sizeof count, 1, stdout);
    std::fwrite(words.data(), sizeof(std::uint32_t), words.size(), stdout);
}

static void print_buffer(const std::optional<bdforge::generator::Buffer> &buffer) {
    if (buffer)
        std::printf("%lld %lld ", static_cast<long long>(buffer->rows), static_cast<long long>(buffer->columns));
    else
        std::printf("- - ");
}

static void print_staging(const bdforge::generator::Design &design, const bdforge::generator::Problem &problem) {
    try {
        const bdforge::generator::Staging staging = bdforge::generator::staging(design, problem);
        print_buffer(staging.a);
        print_buffer(staging.b);
        print_buffer(staging.c);
        const auto bytes = static_cast<long long>(bdforge::generator::b_bytes(design, problem));
        std::printf("%d %lld\n", staging.a_in_slabs, bytes);
    } catch (const bdforge::generator::SequenceError &error) {
        std::printf("refused: %s\n", error.what());
    }
}

static void print_time(const bdforge::generator::Design &design, const bdforge::generator::Problem &problem) {
    std::vector<double> microseconds;
    for (int run = 0; run < 101; ++run) {
        const auto start = std::chrono::steady_clock::now();
        const std::size_t words = bdforge::sequence(design, problem).size();
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        microseconds.push_back(words ? took.count() : 0);
    }
    std::nth_element(microseconds.begin(), microseconds.begin() + 50, microseconds.end());
    std::printf("%.1f\n", microseconds[50]);
}

int main(int, char **argv) {
    const std::string mode = argv[1];
    std::size_t index;
    std::int64_t M, K, N, lda, ldb, ldc;
    while (std::cin >> index >> M >> K >> N >> lda >> ldb >> ldc) {
        const bdforge::generator::Problem problem(M, K, N, lda, ldb, ldc);
        const bdforge::generator::Design &design = designs.at(index);
        mode == "words" ? print_words(design, problem)
        : mode == "staging" ? print_staging(design, problem)
                            : print_time(design, problem);
    }
}
