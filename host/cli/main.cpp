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

int run(const bdforge::cli::Options& options) {
    using namespace bdforge;
    if (options.device == "cpu") {
        const cli::Problem sizes{options.M, options.K, options.N, {}, {}};
        std::printf("processor: int8, %zu x %zu x %zu\n", sizes.M, sizes.K, sizes.N);
        std::puts(cli::timing(sizes, 1, cli::cpu_runs(options), true).c_str());
        return good;
    }
    const Device device = Device::open(options.device);
    const Design design = Design::load(device, options.design, {"", "", options.any_device, {options.wait, options.in_flight}});
    const cli::Problem problem = cli::make_problem(options, design);
    if (options.verify) cli::check_verifiable(design);
    const Weights weights = cli::write_b(problem, design);
    std::vector<Gemm> gemms;
    for (std::size_t i = 0; i < options.batch; ++i) {
        gemms.emplace_back(design, problem.M, weights);
        cli::write_a(problem, gemms.back(), design);
    }
    std::printf("design: %s for %s on %s\n", design.manifest().design.c_str(), design.manifest().device.c_str(),
                device.name().c_str());
    std::printf("problem: %zu x %zu x %zu, B %zu bytes, stream %zu words\n", problem.M, problem.K, problem.N,
                weights.bytes(), gemms.front().stream_words());
    const std::vector<double> times_ms = cli::timed_runs(design, gemms, options);
    for (std::size_t i = 0; options.verify && i < gemms.size(); ++i) {
        const std::string mismatch = cli::first_mismatch(problem, gemms[i], design);
        if (mismatch.empty()) continue;
        const std::string which = gemms.size() == 1 ? "" : "GEMM " + std::to_string(i + 1) + " of the batch, ";
        std::fprintf(stderr, "bdforge-gemm: wrong result: %s%s; run it on the emulated array: bdforge run\n",
                     which.c_str(), mismatch.c_str());
        return wrong;
    }
    if (options.verify) std::printf("verified: %zu elements\n", gemms.size() * problem.M * problem.N);
    std::puts(cli::timing(problem, gemms.size(), times_ms, device.is_npu()).c_str());
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
