#include "trial.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>

#include "bdforge/npy.hpp"

namespace bdforge::cli {
namespace {

constexpr std::uint32_t seed = 1;

std::vector<std::int8_t> random_values(std::size_t count, int lowest, int highest, std::uint32_t which) {
    std::mt19937 generator(seed + which);
    std::vector<std::int8_t> values(count);
    const auto range = static_cast<std::uint32_t>(highest - lowest + 1);
    for (std::int8_t& value : values) value = static_cast<std::int8_t>(lowest + static_cast<int>(generator() % range));
    return values;
}

/// The largest magnitude of random values of a type: sums of products of bf16 stay exact in f32.
int largest(const std::string& type) {
    if (type == "int8") return 127;
    if (type == "int4") return 7;
    if (type == "int2") return 1;
    if (type == "bf16") return 8;
    throw UsageError("bdforge-gemm makes no operands of type " + type + "; use the library, or bdforge run");
}

/// `value` as an element of a type.
void write_element(const std::string& type, std::int8_t value, void* memory, std::size_t index) {
    if (type != "bf16") {
        static_cast<std::int8_t*>(memory)[index] = value;
        return;
    }
    const auto wide = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &wide, sizeof bits);
    static_cast<std::uint16_t*>(memory)[index] = static_cast<std::uint16_t>(bits >> 16);
}

/// Index of an operand's element in memory.
std::size_t index_of(const generator::Operand& operand, std::size_t row, std::size_t column, std::size_t leading) {
    return operand.column_major ? column * leading + row : row * leading + column;
}

void check_size(const char* option, std::size_t given, std::size_t in_file, const std::string& file) {
    if (given == 0 || given == in_file) return;
    throw UsageError(std::string(option) + " is " + std::to_string(given) + ", but " + file + " has " +
                     std::to_string(in_file) + "; leave " + option + " out");
}

const generator::Operand& operand_of(const Design& design, const std::string& name) {
    for (const generator::Operand& operand : design.manifest().streams.program.operands)
        if (operand.name == name) return operand;
    throw UsageError(design.manifest().design + " has no operand " + name + ", it is no GEMM");
}

/// Whether C is A B as it is: no shift, scale, bias or ReLU.
bool has_plain_sums(const Manifest& manifest) {
    const JsonView spec = manifest.view().at("spec");
    if (!spec.has("epilogue")) return true;
    const JsonView epilogue = spec.at("epilogue");
    return epilogue.at("shift").integer(0, 31) == 0 && !epilogue.at("scale").boolean() &&
           !epilogue.at("bias").boolean() && !epilogue.at("relu").boolean();
}

/// One row of A * W.
void multiply_row(const Problem& problem, std::size_t row, std::vector<std::int32_t>& sums) {
    std::fill(sums.begin(), sums.end(), 0);
    for (std::size_t k = 0; k < problem.K; ++k) {
        const std::int32_t factor = problem.a[row * problem.K + k];
        const std::int8_t* weights = problem.weights.data() + k * problem.N;
        for (std::size_t column = 0; column < problem.N; ++column) sums[column] += factor * weights[column];
    }
}

}  // namespace

Problem make_problem(const Options& options, const Design& design) {
    Problem problem{options.M, options.K, options.N, {}, {}};
    const int a_most = largest(operand_of(design, "A").type), b_most = largest(operand_of(design, "B").type);
    if (options.weights.empty()) {
        design.check(problem.M, problem.K, problem.N);  // before memory is asked for
        problem.weights = random_values(problem.K * problem.N, -b_most, b_most, 0);
    } else {
        Int8Matrix matrix = load_npy(options.weights);
        check_size("-K", options.K, matrix.rows, options.weights);
        check_size("-N", options.N, matrix.columns, options.weights);
        problem.K = matrix.rows;
        problem.N = matrix.columns;
        problem.weights = std::move(matrix.values);
        design.check(problem.M, problem.K, problem.N);
    }
    problem.a = random_values(problem.M * problem.K, -a_most, a_most, 1);
    return problem;
}

void write_a(const Problem& problem, Gemm& gemm, const Design& design) {
    const generator::Operand& facts = operand_of(design, "A");
    for (std::size_t i = 0; i < problem.a.size(); ++i) {
        const std::size_t index = index_of(facts, i / problem.K, i % problem.K, gemm.lda());
        write_element(facts.type, problem.a[i], gemm.a_memory(), index);
    }
}

Weights write_b(const Problem& problem, const Design& design) {
    const generator::Operand& facts = operand_of(design, "B");
    const std::size_t leading = facts.column_major ? problem.K : problem.N;
    std::vector<std::uint16_t> b(problem.weights.size());  // room for the widest type
    for (std::size_t i = 0; i < problem.weights.size(); ++i) {
        const std::size_t index = index_of(facts, i / problem.N, i % problem.N, leading);
        write_element(facts.type, problem.weights[i], b.data(), index);
    }
    return design.pack(b.data(), problem.K, problem.N);
}

void check_verifiable(const Design& design) {
    const Manifest& manifest = design.manifest();
    const bool plain = has_plain_sums(manifest);
    const std::string& type = operand_of(design, "C").type;
    if (plain && (type == "int32" || type == "f32")) return;
    throw UsageError("--verify knows sums in int32 and f32; C of " + manifest.design + " is " + type +
                     (plain ? "" : " behind an epilogue") + ", check it with bdforge run");
}

std::string first_mismatch(const Problem& problem, const Gemm& gemm, const Design& design) {
    const generator::Operand& facts = operand_of(design, "C");
    std::vector<std::int32_t> expected(problem.N);
    for (std::size_t row = 0; row < problem.M; ++row) {
        multiply_row(problem, row, expected);
        for (std::size_t column = 0; column < problem.N; ++column) {
            const std::size_t index = index_of(facts, row, column, gemm.ldc());
            const bool floats = facts.type == "f32";
            const double got = floats ? static_cast<double>(static_cast<const float*>(gemm.c_memory())[index])
                                      : static_cast<double>(gemm.c()[index]);
            if (got == static_cast<double>(expected[column])) continue;
            char text[96];
            std::snprintf(text, sizeof text, "C[%zu, %zu] is %.9g, expected %d", row, column, got, expected[column]);
            return text;
        }
    }
    return "";
}

std::vector<double> timed_runs(const Design& design, std::vector<Gemm>& gemms, const Options& options) {
    const std::chrono::milliseconds timeout{options.timeout_ms};
    std::optional<Batch> batch;
    if (gemms.size() > 1) {
        std::vector<Gemm*> members;
        for (Gemm& gemm : gemms) members.push_back(&gemm);
        batch.emplace(design, members);
    }
    const auto run_all = [&] {
        if (!batch) return gemms.front().run(timeout);
        batch->run(timeout);
        if (!batch->note().empty()) std::fprintf(stderr, "bdforge-gemm: note: %s\n", batch->note().c_str());
    };
    for (std::size_t i = 0; i < options.warmup; ++i) run_all();
    std::vector<double> times_ms;
    for (std::size_t i = 0; i < options.iterations; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run_all();
        times_ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return times_ms;
}

std::string timing(const Problem& problem, std::size_t gemms, std::vector<double> times_ms, bool npu) {
    std::sort(times_ms.begin(), times_ms.end());
    const double median_ms = times_ms[times_ms.size() / 2];
    const double macs = static_cast<double>(gemms) * static_cast<double>(problem.M) *
                        static_cast<double>(problem.K) * static_cast<double>(problem.N);
    const std::string each = gemms == 1 ? "" : " of " + std::to_string(gemms) + " GEMMs";
    char text[200];
    std::snprintf(text, sizeof text, "%s: %zu runs%s, lowest %.3f ms, median %.3f ms, %.3f TOPS at the median",
                  npu ? "measured" : "emulated, no NPU", times_ms.size(), each.c_str(), times_ms.front(), median_ms,
                  2 * macs / (median_ms * 1e9));
    return text;
}

}  // namespace bdforge::cli
