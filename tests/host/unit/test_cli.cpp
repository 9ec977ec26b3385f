// Parts of bdforge-run: which option sets what, what is timed, and what is told of it.

#include "cli/measure.hpp"
#include "cli/trial.hpp"
#include "devices.hpp"
#include "powercap.hpp"

using namespace bdforge;
using namespace unit;
using cli::Options;

namespace {

/// What a design needs, and the words behind it.
Options parsed(std::vector<std::string> words) {
    words.insert(words.begin(), {"-x", "d.xclbin", "-M", "1", "-K", "2", "-N", "3", "--wait", "wide"});
    return cli::parse(words);
}

std::vector<std::size_t> numbers_of(const Options& options) {
    return {options.iterations, options.warmup, options.timeout_ms, options.in_flight, options.batch};
}

std::vector<int> flags_of(const Options& options) {
    return {options.verify, options.energy, options.any_device, options.help};
}

}  // namespace

UNIT_CASE("cli", numbers_begin_at_their_lowest_and_end_at_1000000000) {
    const struct {
        std::vector<const char*> names;
        std::size_t lowest;
    } cases[] = {{{"-i", "--iters"}, 1}, {{"--warmup"}, 0}, {{"--timeout"}, 1}, {{"--in-flight"}, 0}, {{"--batch"}, 1}};
    const std::vector<std::size_t> defaults{10, 2, 10'000, 0, 1};
    check_equal(numbers_of(parsed({})), defaults, "defaults");
    for (std::size_t i = 0; i < defaults.size(); ++i) {
        const auto& [names, lowest] = cases[i];
        for (const std::string name : names) {
            for (const std::size_t value : {lowest, std::size_t{1'000'000'000}}) {
                std::vector<std::size_t> expected = defaults;
                expected[i] = value;
                check_equal(numbers_of(parsed({name, std::to_string(value)})), expected, name + " " + std::to_string(value));
            }
            for (const std::string& value : {std::to_string(static_cast<long long>(lowest) - 1), std::string("1000000001")})
                check_contains(message_of<cli::UsageError>([&] { parsed({name, value}); }),
                               name + " takes a number from " + std::to_string(lowest) + " to 1000000000, got '" + value + "'");
        }
    }
}

UNIT_CASE("cli", every_name_of_a_flag_and_a_text_sets_its_own) {
    const std::vector<std::vector<const char*>> flags{{"--verify"}, {"--energy"}, {"--any-device"}, {"-h", "--help"}};
    check_equal(flags_of(parsed({})), std::vector<int>(flags.size(), 0), "defaults");
    for (std::size_t i = 0; i < flags.size(); ++i) {
        std::vector<int> expected(flags.size(), 0);
        expected[i] = 1;
        for (const char* name : flags[i]) check_equal(flags_of(parsed({name})), expected, name);
    }
    const auto texts = [](const Options& found) { return found.design + " " + found.device + " " + found.weights + " " + found.wait; };
    check_equal(texts(parsed({})), std::string("d.xclbin 0  wide"), "defaults");
    check_equal(texts(parsed({"-x", "x", "-d", "d", "-w", "w", "--wait", "v"})), std::string("x d w v"), "short names");
    check_equal(texts(parsed({"--xclbin", "x", "--device", "d", "--weights", "w"})), std::string("x d w wide"), "long names");
    check_equal(parsed({"-w", "w"}).inputs.at("B"), std::string("w"), "weights are the input B");
}

UNIT_CASE("cli", sizes_are_those_of_their_names) {
    const Sizes plain = parsed({"-s", "lda=7", "--size", "ldc=8"}).sizes;
    check_equal(plain == Sizes{{"M", 1}, {"K", 2}, {"N", 3}, {"lda", 7}, {"ldc", 8}}, true, "sizes");
    const Options listed = cli::parse({"-x", "d.xclbin", "--shapes", "1x2x3*4,5x6x7"});
    check_equal(listed.shapes.size(), 2U, "shapes");
    check_equal(listed.shapes[0].sizes == Sizes{{"M", 1}, {"K", 2}, {"N", 3}}, true, "first shape");
    check_equal(listed.shapes[1].sizes == Sizes{{"M", 5}, {"K", 6}, {"N", 7}}, true, "second shape");
    check_equal(listed.shapes[0].times * 10 + listed.shapes[1].times, 41U, "times");
    for (const char* given : {"-K", "-N"})
        check_contains(message_of<cli::UsageError>([&] { cli::parse({"-x", "d.xclbin", "-M", "1", given, "1"}); }),
                       "-K and -N are missing");
    cli::parse({"-x", "d.xclbin", "-M", "1", "-w", "w.npy"});
    cli::parse({"-x", "d.xclbin", "-s", "n=1"});
    cli::parse({"-d", "cpu", "-M", "1", "-K", "2", "-N", "3", "--batch", "1"});
}

UNIT_CASE("cli", medians_of_even_numbers_lie_between_the_middle_two) {
    check_equal(cli::median({3}), 3.0, "one");
    check_equal(cli::median({2, 1}), 1.5, "two");
    check_equal(cli::median({5, 1, 3}), 3.0, "three");
    check_equal(cli::median({4, 1, 30, 2}), 3.0, "four");
}

UNIT_CASE("cli", rates_are_two_operations_a_product_at_the_median) {
    const Sizes sizes{{"M", 1000}, {"K", 2000}, {"N", 3000}};  // 12e9 operations
    check_equal(cli::timing(sizes, 1, {4, 1, 3, 2}, true),
                std::string("measured: 4 runs, lowest 1.000 ms, median 2.500 ms, 4.800 TOPS at the median"), "one");
    check_equal(cli::timing(sizes, 2, {6, 5, 12}, false),
                std::string("emulated, no NPU: 3 runs of 2 GEMMs, lowest 5.000 ms, median 6.000 ms, 4.000 TOPS at the median"), "two");
    check_equal(cli::timing({{"M", 1000}, {"n", 5}}, 1, {2}, true),
                std::string("measured: 1 runs, lowest 2.000 ms, median 2.000 ms"), "no GEMM");
}

UNIT_CASE("cli", runs_before_are_neither_timed_nor_in_the_energy) {
    for (const std::size_t jobs : {1, 2}) {
        const unit::Powercap powercap;
        std::size_t runs = 0;
        const Device device = unit::memory_device([&] {
            powercap.write("intel-rapl:0/energy_uj", std::to_string(9'000'000 + 250'000 * ++runs));
        });
        const Design design = Design::load(device, unit::design_path("small"));
        Options options;
        options.warmup = 3, options.iterations = 2;
        cli::Energy energy(powercap.folder);
        std::vector<Job> all;
        while (all.size() < jobs) all.emplace_back(design, Sizes{{"M", 1}, {"K", 2}, {"N", 3}});
        const std::string what = std::to_string(jobs) + " at once";
        check_equal(cli::timed_runs(design, all, options, energy).size(), 2U, "timed, " + what);
        check_equal(runs, 5U, "runs, " + what);
        check_contains(energy.summary(2), "0.500 J of package-0, package-1, 0.2500 J a run");
    }
    Options options = cli::parse({"-d", "cpu", "-M", "1", "-K", "2", "-N", "3", "-i", "2", "--warmup", "3"});
    cli::Energy energy("");
    check_equal(cli::cpu_runs(options, energy).size(), 2U, "timed, on the processor");
}
