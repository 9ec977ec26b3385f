#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "bdforge/bdforge.hpp"
#include "float_matrices.hpp"
#include "messages.hpp"

namespace bdforge::cli {

Energy::Energy(std::string folder) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        Package package{entry.path().string(), {}};
        std::ifstream(package.folder + "/name") >> package.name;  // others: cores, dram, the whole board
        if (package.name.rfind("package", 0) == 0) packages_.push_back(std::move(package));
    }
    std::sort(packages_.begin(), packages_.end(),
              [](const auto& one, const auto& other) { return one.name < other.name; });
    if (packages_.empty())
        fault_ =
            folder +
            " has no package's counter; Linux shows them with the driver intel_rapl_msr, not in most virtual machines";
}

void Energy::read(std::uint64_t Package::* place) {
    for (Package& package : packages_) {
        const std::string file = package.folder + "/energy_uj";
        if (!(std::ifstream(file) >> package.*place))
            fault_ = file + " cannot be read; run this as root, or: sudo chmod a+r " + file;
    }
}

void Energy::start() {
    for (Package& package : packages_) std::ifstream(package.folder + "/max_energy_range_uj") >> package.range;
    read(&Package::before);
}

void Energy::stop() { read(&Package::after); }

std::string Energy::summary(std::size_t runs) const {
    if (!fault_.empty()) return "not read: " + fault_;
    double joules = 0;
    std::string names;
    for (const Package& package : packages_) {
        const bool again = package.after < package.before;
        joules += 1e-6 * static_cast<double>(package.after + (again ? package.range : 0) - package.before);
        names += (names.empty() ? "" : ", ") + package.name;
    }
    char text[120];
    std::snprintf(text, sizeof text, ", %.4f J a run (RAPL: all that ran)", joules / static_cast<double>(runs));
    char all[40];
    std::snprintf(all, sizeof all, "%.3f J of ", joules);
    return all + names + text;
}

std::string powercap_folder() {
    const char* const named = std::getenv("BDFORGE_POWERCAP");
    return named == nullptr ? "/sys/class/powercap" : named;
}

namespace {

struct Shape {
    std::size_t M, K, N;
};

constexpr std::size_t lanes = 64;
constexpr std::size_t tile_rows = 8;  // of A, which stay in the first cache while W passes

/// Sums of products in lanes of a fixed number, which every compiler turns into vectors.
BDFORGE_WIDEST std::int32_t dot(const std::int8_t* a, const std::int8_t* w, std::size_t depth) {
    std::int32_t sums[lanes] = {};
    std::size_t k = 0;
    for (; k + lanes <= depth; k += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[k + lane] * w[k + lane];
    std::int32_t sum = 0;
    for (; k < depth; ++k) sum += a[k] * w[k];
    for (const std::int32_t lane : sums) sum += lane;
    return sum;
}

/// Columns [first, last) of C.
void multiply(const Shape& sizes, const std::int8_t* a, const std::int8_t* w, std::int32_t* c, std::size_t first,
              std::size_t last) {
    for (std::size_t top = 0; top < sizes.M; top += tile_rows) {
        const std::size_t bottom = std::min(top + tile_rows, sizes.M);
        for (std::size_t column = first; column < last; ++column) {
            for (std::size_t row = top; row < bottom; ++row)
                c[row * sizes.N + column] = dot(a + row * sizes.K, w + column * sizes.K, sizes.K);
        }
    }
}

}  // namespace

std::vector<double> cpu_runs(const Options& options, Energy& energy) {
    const Shape sizes{options.sizes.at("M"), options.sizes.at("K"), options.sizes.at("N")};
    std::vector<std::int8_t> a(sizes.M * sizes.K), w(sizes.N * sizes.K);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int8_t>(i * 37 % 251);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::int8_t>(i * 13 % 3 - 1);
    std::vector<std::int32_t> c(sizes.M * sizes.N);
    std::vector<double> times_ms;
    for (std::size_t i = 0; i < options.warmup + options.iterations; ++i) {
        if (i == options.warmup) energy.start();
        const auto start = std::chrono::steady_clock::now();
        in_parts(sizes.N, SIZE_MAX, [&](std::size_t first, std::size_t last) {
            multiply(sizes, a.data(), w.data(), c.data(), first, last);
        });
        const auto passed = std::chrono::steady_clock::now() - start;
        if (i >= options.warmup) times_ms.push_back(std::chrono::duration<double, std::milli>(passed).count());
    }
    energy.stop();
    return times_ms;
}

std::vector<double> timed_runs(const Design& design, const std::vector<Job>& jobs, const Options& options,
                               Energy& energy) {
    const std::chrono::milliseconds timeout{options.timeout_ms};
    std::optional<Batch> batch;
    if (jobs.size() > 1) batch.emplace(Batch::of(design, jobs));
    const auto run_all = [&] {
        if (!batch) return Job(jobs.front()).run(timeout);
        batch->run(timeout);
        if (!batch->note().empty()) std::fprintf(stderr, "bdforge-run: note: %s\n", batch->note().c_str());
    };
    for (std::size_t i = 0; i < options.warmup; ++i) run_all();
    std::vector<double> times_ms;
    energy.start();
    for (std::size_t i = 0; i < options.iterations; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run_all();
        times_ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    energy.stop();
    return times_ms;
}

double median(std::vector<double> times_ms) {
    std::sort(times_ms.begin(), times_ms.end());
    const std::size_t upper = times_ms.size() / 2, lower = (times_ms.size() - 1) / 2;
    return (times_ms[lower] + times_ms[upper]) / 2;
}

std::string timing(const Sizes& sizes, std::size_t jobs, const std::vector<double>& times_ms, bool npu) {
    const double lowest_ms = *std::min_element(times_ms.begin(), times_ms.end()), median_ms = median(times_ms);
    const std::string each = jobs == 1 ? "" : " of " + std::to_string(jobs) + " GEMMs";
    char text[200];
    std::snprintf(text, sizeof text, "%s: %zu runs%s, lowest %.3f ms, median %.3f ms",
                  npu ? "measured" : "emulated, no NPU", times_ms.size(), each.c_str(), lowest_ms, median_ms);
    double operations = 2 * static_cast<double>(jobs);
    for (const char* name : {"M", "K", "N"}) {
        const auto size = sizes.find(name);
        if (size == sizes.end()) return text;
        operations *= static_cast<double>(size->second);
    }
    char rate[80];
    std::snprintf(rate, sizeof rate, ", %.3f TOPS at the median", operations / (median_ms * 1e9));
    return std::string(text) + rate;
}

}  // namespace bdforge::cli
