/// bdforge-run: any design on an NPU, checked and timed.

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "messages.hpp"
#include "options.hpp"
#include "trial.hpp"

namespace {

using namespace bdforge;
using cli::Options;

enum Exit { good = 0, wrong = 1, refused = 2, failed = 3 };

/// cli::Energy of the timed runs, of so many jobs each.
void tell(const Options& options, const cli::Energy& energy, std::size_t jobs) {
    if (options.energy) std::printf("energy: %s\n", energy.summary(options.iterations * jobs).c_str());
}

/// How a problem ended, and what a run of it took.
struct Ran {
    Exit code;
    double median_ms;
};

Ran run_on_processor(const Options& options) {
    cli::Energy energy(options.energy ? cli::powercap_folder() : "");
    const Sizes& sizes = options.sizes;
    std::printf("processor: int8, %zu x %zu x %zu\n", sizes.at("M"), sizes.at("K"), sizes.at("N"));
    const std::vector<double> times_ms = cli::cpu_runs(options, energy);
    std::puts(cli::timing(sizes, 1, times_ms, true).c_str());
    tell(options, energy, 1);
    return {good, cli::median(times_ms)};
}

/// `first`: of the design, which is then told.
Ran run_on(const Device& device, const Design& design, const Options& options, bool first) {
    cli::Energy energy(options.energy ? cli::powercap_folder() : "");
    const cli::Trial trial = cli::make_trial(options, design);
    const Sizes& sizes = trial.problem.sizes;
    if (first)
        std::printf("design: %s for %s on %s\n", design.manifest().design.c_str(), design.manifest().device.c_str(),
                    device.name().c_str());
    const std::string b = trial.residents.empty() ? "" : ", B " + std::to_string(trial.residents[0].bytes()) + " bytes";
    std::printf("problem: %s%s, stream %zu words\n", cli::size_text(design, sizes).c_str(), b.c_str(),
                trial.jobs.front().stream_words());
    const std::vector<double> times_ms = cli::timed_runs(design, trial.jobs, options, energy);
    if (options.verify) {
        const std::string mismatch = cli::first_mismatch(trial, options);
        if (!mismatch.empty()) {
            std::fprintf(stderr, "bdforge-run: wrong result: %s; run it on the emulated array: bdforge run\n",
                         mismatch.c_str());
            return {wrong, 0};
        }
    }
    std::size_t elements = 0;
    for (const OperandShape& operand : trial.jobs.front().operands()) {
        if (operand.output) elements += trial.jobs.size() * operand.rows * operand.columns;
        const auto file = options.outputs.find(operand.name);
        if (file != options.outputs.end()) save_npy(file->second, cli::fetched(trial.jobs.front(), operand));
    }
    if (options.verify) std::printf("verified: %zu elements\n", elements);
    std::puts(cli::timing(sizes, trial.jobs.size(), times_ms, device.is_npu()).c_str());
    tell(options, energy, trial.jobs.size());
    return {good, cli::median(times_ms)};
}

/// Runs every problem, and adds up those of --shapes.
template <class Run>
int run_all(const Options& options, const char* label, Run run) {
    if (options.shapes.empty()) return run(options).code;
    double total_ms = 0;
    std::size_t times = 0;
    for (const cli::Weighed& shape : options.shapes) {
        Options one = options;
        one.sizes = shape.sizes;
        const Ran ran = run(one);
        if (ran.code != good) return ran.code;
        times += shape.times,
            total_ms += static_cast<double>(shape.times) * ran.median_ms / static_cast<double>(options.batch);
    }
    std::printf("%s: all %zu, %.3f ms by their medians\n", label, times, total_ms);
    return good;
}

int run(const Options& options) {
    if (options.device == "cpu") return run_all(options, "measured", run_on_processor);
    const Device device = Device::open(options.device);
    const Design design =
        Design::load(device, options.design, {"", "", options.any_device, {options.wait, options.in_flight}});
    bool first = true;
    return run_all(options, device.is_npu() ? "measured" : "emulated, no NPU",
                   [&](const Options& one) { return run_on(device, design, one, std::exchange(first, false)); });
}

/// Reports the fault in one line.
int report(const char* text, int code) {
    std::fprintf(stderr, "bdforge-run: %s\n", bdforge::bounded(text).c_str());
    return code;
}

int guarded(const std::vector<std::string>& words) {
    try {
        const bdforge::cli::Options options = bdforge::cli::parse(words);
        if (!options.help) return run(options);
        std::fputs(bdforge::cli::usage().c_str(), stdout);
        return good;
    } catch (const bdforge::TimeoutError& error) {
        report(error.what(), failed);
        std::fflush(nullptr);
        _exit(failed);  // XRT aborts a process that ends in order while a run is going
    } catch (const bdforge::RunError& error) {
        return report(error.what(), failed);
    } catch (const std::bad_alloc&) {
        return report("out of memory; choose smaller sizes", refused);
    } catch (const std::exception& error) {
        return report(error.what(), refused);
    }
}

}  // namespace

int main(int count, char** words) {
    return guarded(std::vector<std::string>(words + (count > 0 ? 1 : 0), words + count));
}
