#include "trial.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>

namespace bdforge::cli {
namespace {

constexpr std::uint32_t seed = 1;
constexpr int small = 8;  // of floats, which are whole numbers: sums of their products stay exact

const generator::Operand& operand_of(const Design& design, const std::string& name) {
    const auto& operands = design.manifest().streams.program.operands;
    const auto named = [&](const generator::Operand& operand) { return operand.name == name; };
    return *std::find_if(operands.begin(), operands.end(), named);
}

/// NumPy's type for an operand's elements; bf16 as words, since NumPy has none.
std::string npy_type(const std::string& type) {
    if (type == "bf16") return "<u2";
    if (type == "f32" || type == "bfp16") return "<f4";
    if (type == "int16") return "<i2";
    return type == "int32" ? "<i4" : "|i1";
}

const char* numpy_name(const std::string& type) {
    if (type == "<f4") return "float32";
    if (type == "<i2") return "int16";
    return type == "<i4" ? "int32" : type == "<u2" ? "ml_dtypes.bfloat16" : "int8";
}

std::vector<std::size_t> shape_of(const Design& design, const OperandShape& operand) {
    if (operand_of(design, operand.name).axes.size() == 1) return {operand.columns};
    return {operand.rows, operand.columns};
}

void append(std::vector<std::byte>& bytes, const std::string& type, double value) {
    std::byte element[4] = {};
    std::size_t size = 4;
    if (type == "<f4" || type == "<u2") {
        const auto number = static_cast<float>(value);
        std::memcpy(element, &number, sizeof number);
        if (type == "<u2") std::memmove(element, element + 2, size = 2);  // the upper half
    } else {
        const auto number = static_cast<std::int32_t>(value);
        size = type == "|i1" ? 1 : type == "<i2" ? 2 : 4;
        std::memcpy(element, &number, size);
    }
    bytes.insert(bytes.end(), element, element + size);
}

/// Any of the type's values; of floats small whole numbers, of scales some below 1.
NpyArray random_array(const Design& design, const OperandShape& operand, std::uint32_t which) {
    const generator::Operand& facts = operand_of(design, operand.name);
    const std::string type = npy_type(operand.type);
    const bool integer = type[1] == 'i', scale = facts.missing.value_or(0) == 1;
    const auto [low, high] = facts.values.value_or(integer ? std::pair<std::int64_t, std::int64_t>{-127, 127}
                                                           : std::pair<std::int64_t, std::int64_t>{-small, small});
    std::mt19937 generator(seed + which);
    NpyArray array{type, shape_of(design, operand), {}};
    const std::size_t count = operand.rows * operand.columns;
    array.bytes.reserve(count * operand.element_bytes);
    const auto range = static_cast<std::uint32_t>(high - low + 1);
    for (std::size_t i = 0; i < count; ++i) {
        const double value = static_cast<double>(low) + static_cast<double>(generator() % range);
        append(array.bytes, type, scale ? 0.75 + value / 64 : value);
    }
    return array;
}

/// A matrix's elements in the other order.
std::vector<std::byte> turned(const std::vector<std::byte>& from, std::size_t rows, std::size_t columns) {
    const std::size_t size = from.size() / (rows * columns);
    std::vector<std::byte> to(from.size());
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < columns; ++column)
            std::copy_n(&from[(row * columns + column) * size], size, &to[(column * rows + row) * size]);
    return to;
}

/// The file's array, where it fits the operand.
void check_array(const Design& design, const OperandShape& operand, const NpyArray& array, const std::string& file) {
    const std::string wanted = npy_type(operand.type);
    const bool words = wanted == "<u2" && array.type.back() == '2' && array.type[1] != 'i';
    if (array.type != wanted && !words)
        throw UsageError(file + ": its elements are " + array.type + ", " + operand.name + " takes " + operand.type +
                         "; convert with .astype(" + (words ? "" : wanted == "<u2" ? "" : "numpy.") + numpy_name(wanted) + ")");
    if (array.shape == shape_of(design, operand)) return;
    throw UsageError(file + ": " + operand.name + " has " + std::to_string(operand.rows) + " x " +
                     std::to_string(operand.columns) + " elements for these sizes, the file others");
}

void check_size(const char* option, std::size_t given, std::size_t in_file, const std::string& file) {
    if (given == 0 || given == in_file) return;
    throw UsageError(std::string(option) + " is " + std::to_string(given) + ", but " + file + " has " +
                     std::to_string(in_file) + "; leave " + option + " out");
}

}  // namespace

Problem make_problem(const Options& options) {
    Problem problem{options.sizes, {}};
    for (const auto& [name, file] : options.inputs) problem.arrays[name] = load_npy(file);
    const auto weights = problem.arrays.find("B");
    if (!options.weights.empty() && weights->second.shape.size() != 2)
        throw UsageError(options.weights + ": weights are no matrix; save an array of shape (K, N)");
    for (std::size_t i = 0; !options.weights.empty() && i < 2; ++i) {
        const char* const names[] = {"K", "N"};
        const std::size_t size = weights->second.shape[i];
        check_size(i == 0 ? "-K" : "-N", problem.sizes[names[i]], size, options.weights);
        problem.sizes[names[i]] = size;
    }
    return problem;
}

Trial make_trial(const Options& options, const Design& design) {
    Trial trial{make_problem(options), {}, {}};
    if (design.manifest().kind == "gemm") {
        const auto size = [&](const char* name) { return trial.problem.sizes.find(name); };
        if (size("K") != trial.problem.sizes.end() && size("N") != trial.problem.sizes.end())
            trial.residents.emplace_back(design, "B", Sizes{*size("K"), *size("N")});
    }
    for (std::size_t i = 0; i < options.batch; ++i)
        trial.jobs.emplace_back(design, trial.problem.sizes, JobOptions{{}, trial.residents});
    std::map<std::string, NpyArray>& arrays = trial.problem.arrays;
    std::uint32_t which = 0;
    const std::vector<OperandShape> operands = trial.jobs.front().operands();
    for (const auto& [name, file] : options.inputs) {
        const auto named = [&, &wanted = name](const OperandShape& each) { return each.name == wanted && !each.output; };
        if (std::none_of(operands.begin(), operands.end(), named))
            throw UsageError(file + ": " + design.manifest().design + " has no input " + name);
    }
    for (const OperandShape& operand : operands) {
        if (operand.output) continue;
        const auto file = options.inputs.find(operand.name);
        if (file == options.inputs.end())
            arrays[operand.name] = random_array(design, operand, which++);
        else
            check_array(design, operand, arrays[operand.name], file->second);
        const std::vector<std::byte>& bytes = arrays[operand.name].bytes;
        const std::vector<std::byte> lines =
            operand.column_major ? turned(bytes, operand.rows, operand.columns) : std::vector<std::byte>{};
        const ConstArray array{operand.column_major ? lines.data() : bytes.data(), bytes.size()};
        const bool resident = operand.name == "B" && !trial.residents.empty();
        if (resident) trial.residents.front().place("B", array);
        for (std::size_t i = 0; !resident && i < trial.jobs.size(); ++i) trial.jobs[i].place(operand.name, array);
    }
    return trial;
}

NpyArray fetched(const Job& job, const Design& design, const OperandShape& operand) {
    NpyArray array{npy_type(operand.type), shape_of(design, operand), {}};
    array.bytes.resize(operand.rows * operand.columns * operand.element_bytes);
    job.fetch(operand.name, {array.bytes.data(), array.bytes.size()});
    if (operand.column_major) array.bytes = turned(array.bytes, operand.columns, operand.rows);
    return array;
}

std::vector<double> timed_runs(const Design& design, const std::vector<Job>& jobs, const Options& options, Energy& energy) {
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

std::string size_text(const Design& design, const Sizes& sizes) {
    std::string text;
    for (const std::string& name : design.manifest().streams.program.parameters) {
        const auto size = sizes.find(name);
        if (size == sizes.end()) continue;
        text += (text.empty() ? "" : " x ") + std::to_string(size->second);
    }
    return text;
}

}  // namespace bdforge::cli
