/// bdforge-gemm: one GEMM on an NPU, checked and timed.

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cpu.hpp"
#include "options.hpp"
#include "trial.hpp"

namespace {

enum Exit { good = 0, wrong = 1, refused = 2, failed = 3 };

/// Energy of the timed runs, of so many jobs each.
void tell(const bdforge::cli::Options& options, const bdforge::Energy& energy, std::size_t jobs) {
    if (options.energy) std::printf("energy: %s\n", energy.told(options.iterations * jobs).c_str());
}

int run(const bdforge::cli::Options& options) {
    using namespace bdforge;
    Energy energy(options.energy ? powercap_folder() : "");
    if (options.device == "cpu") {
        const Sizes& sizes = options.sizes;
        std::printf("processor: int8, %zu x %zu x %zu\n", sizes.at("M"), sizes.at("K"), sizes.at("N"));
        std::puts(cli::timing(sizes, 1, cli::cpu_runs(options, energy), true).c_str());
        tell(options, energy, 1);
        return good;
    }
    const Device device = Device::open(options.device);
    const Design design = Design::load(device, options.design, {"", "", options.any_device, {options.wait, options.in_flight}});
    const cli::Trial trial = cli::make_trial(options, design);
    const Sizes& sizes = trial.problem.sizes;
    std::printf("design: %s for %s on %s\n", design.manifest().design.c_str(), design.manifest().device.c_str(),
                device.name().c_str());
    const std::string b = trial.residents.empty() ? "" : ", B " + std::to_string(trial.residents[0].bytes()) + " bytes";
    std::printf("problem: %s%s, stream %zu words\n", cli::told(design, sizes).c_str(), b.c_str(),
                trial.jobs.front().stream_words());
    const std::vector<double> times_ms = cli::timed_runs(design, trial.jobs, options, energy);
    if (options.verify) {
        const std::string mismatch = cli::first_mismatch(trial, design, options);
        if (!mismatch.empty()) {
            std::fprintf(stderr, "bdforge-gemm: wrong result: %s; run it on the emulated array: bdforge run\n",
                         mismatch.c_str());
            return wrong;
        }
    }
    std::size_t elements = 0;
    for (const OperandShape& operand : trial.jobs.front().operands()) {
        if (operand.output) elements += trial.jobs.size() * operand.rows * operand.columns;
        const auto file = options.outputs.find(operand.name);
        if (file != options.outputs.end())
            save_npy(file->second, cli::fetched(trial.jobs.front(), design, operand));
    }
    if (options.verify) std::printf("verified: %zu elements\n", elements);
    std::puts(cli::timing(sizes, trial.jobs.size(), times_ms, device.is_npu()).c_str());
    tell(options, energy, trial.jobs.size());
    return good;
}

/// Reports the fault in one line.
int report(const char* text, int code) {
    std::fprintf(stderr, "bdforge-gemm: %s\n", text);
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
