// Rates of bdforge/copies.hpp at sizes of GPT-2's layers: bytes read and written in a second of one core's time, the best of
// many runs, a kind of copy a line.

#include <ctime>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "float_matrices.hpp"

using namespace bdforge;

namespace {

constexpr std::size_t sizes[][2] = {{256, 768}, {768, 768}, {256, 3072}, {3072, 768}, {256, 50304}};
constexpr int runs = 30;

/// Seconds of this process on all cores.
double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Copy>
void told(const char* name, std::size_t element_bytes, Copy copy) {
    double bytes = 0, seconds = 0;
    for (const auto& [rows, columns] : sizes) {
        double best = 1e9;
        for (int i = 0; i < runs; ++i) {
            const double start = now();
            copy(rows, columns);
            best = std::min(best, now() - start);
        }
        bytes += static_cast<double>(rows * columns * element_bytes), seconds += best;
    }
    std::printf("%s,%.1f\n", name, bytes / seconds / 1e9);
}

}  // namespace

int main() {
    std::vector<float> from(256 * 50304, 1.5F), to(from.size());
    std::vector<Bf16> narrow(from.size());
    for (const bool turned : {false, true}) {
        const auto lines = [&](std::size_t rows, std::size_t columns) {
            const auto [line, count] = turned ? std::pair(rows, columns) : std::pair(columns, rows);
            return Grid<const float>{from.data(), count, line, line};
        };
        const auto name = [&](const char* plain, const char* other) { return turned ? other : plain; };
        told(name("copy in", "\"copy in, transposed\""), 6, [&](std::size_t rows, std::size_t columns) {
            copy_in(lines(rows, columns), {narrow.data(), rows, columns, columns}, turned);
        });
        for (const bool add : {false, true}) {
            const char* const what = add ? name("add out", "\"add out, transposed\"") : name("copy out", "\"copy out, transposed\"");
            told(what, add ? 12 : 8, [&](std::size_t rows, std::size_t columns) {
                copy_out(lines(rows, columns), {to.data(), rows, columns, columns}, turned, {add, nullptr});
            });
        }
    }
}
