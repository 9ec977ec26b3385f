#include "trial.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "device_server.hpp"
#include "messages.hpp"
#include "state.hpp"

namespace bdforge::cli {
namespace {

constexpr std::uint32_t seed = 1;
constexpr int small = 8;  // of floats, which are whole numbers: sums of their products stay exact

/// NumPy's type for an operand's elements, and its name there; bf16 as words, since NumPy has none.
struct NumpyType {
    const char *type, *code, *name;
};

const NumpyType& numpy_type(const std::string& type) {
    static constexpr NumpyType types[] = {{"bf16", "<u2", "ml_dtypes.bfloat16"}, {"f32", "<f4", "numpy.float32"},
                                          {"bfp16", "<f4", "numpy.float32"},     {"int16", "<i2", "numpy.int16"},
                                          {"int32", "<i4", "numpy.int32"},       {"", "|i1", "numpy.int8"}};
    return *std::find_if(std::begin(types), std::end(types) - 1,
                         [&](const NumpyType& each) { return each.type == type; });
}

/// Adds an element of NumPy's type `code`, whose last digit are its bytes.
void append(std::vector<std::byte>& bytes, const std::string& code, double value) {
    const bool real = code == "<f4" || code == "<u2";
    const auto bits = real ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                           : static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    const std::uint32_t element = code == "<u2" ? bits >> 16 : bits;  // the upper half
    const auto* const first = reinterpret_cast<const std::byte*>(&element);
    bytes.insert(bytes.end(), first, first + (code.back() - '0'));
}

/// Any of the type's values; of floats small whole numbers, of scales some below 1.
NpyArray random_array(const Design& design, const OperandShape& operand, std::uint32_t which) {
    const sequence::Operand& facts = design.state()->operand(operand.name);
    const std::string type = numpy_type(operand.type).code;
    const bool integer = type[1] == 'i', scale = facts.missing.value_or(0) == 1;
    const auto [low, high] = facts.values.value_or(integer ? std::pair<std::int64_t, std::int64_t>{-127, 127}
                                                           : std::pair<std::int64_t, std::int64_t>{-small, small});
    std::mt19937 generator(seed + which);
    NpyArray array{type, operand.shape, {}};
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
void check_array(const OperandShape& operand, const NpyArray& array, const std::string& file) {
    const std::string wanted = numpy_type(operand.type).code;
    const bool words = wanted == "<u2" && array.type.back() == '2' && array.type[1] != 'i';
    if (array.type != wanted && !words)
        throw UsageError(concat(file, ": its elements are ", array.type, ", ", operand.name, " takes ", operand.type,
                                "; convert with .astype(", numpy_type(operand.type).name, ")"));
    if (array.shape == operand.shape) return;
    throw UsageError(concat(file, ": ", operand.name, " has ", listed(operand.shape, " x "),
                            " elements for these sizes, the file others"));
}

void check_size(const char* option, std::size_t given, std::size_t in_file, const std::string& file) {
    if (given == 0 || given == in_file) return;
    throw UsageError(concat(option, " is ", given, ", but ", file, " has ", in_file, "; leave ", option, " out"));
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
        const std::vector<sequence::Operand>& operands = design.state()->program().operands;
        const auto weights = [](const sequence::Operand& operand) { return operand.name == "B"; };
        const bool sized = size("K") != trial.problem.sizes.end() && size("N") != trial.problem.sizes.end();
        if (sized && std::any_of(operands.begin(), operands.end(), weights))  // those of a gated product are no B
            trial.residents.emplace_back(design, "B", Sizes{*size("K"), *size("N")});
    }
    for (std::size_t i = 0; i < options.batch; ++i)
        trial.jobs.emplace_back(design, trial.problem.sizes, JobOptions{{}, trial.residents});
    std::map<std::string, NpyArray>& arrays = trial.problem.arrays;
    std::uint32_t which = 0;
    const std::vector<OperandShape> operands = trial.jobs.front().operands();
    for (const auto& [name, file] : options.inputs) {
        const auto named = [&, &wanted = name](const OperandShape& each) {
            return each.name == wanted && !each.output;
        };
        if (std::none_of(operands.begin(), operands.end(), named))
            throw UsageError(file + ": " + design.manifest().design + " has no input " + name);
    }
    for (const OperandShape& operand : operands) {
        if (operand.output) continue;
        const auto file = options.inputs.find(operand.name);
        if (file == options.inputs.end())
            arrays[operand.name] = random_array(design, operand, which++);
        else
            check_array(operand, arrays[operand.name], file->second);
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

NpyArray fetched(const Job& job, const OperandShape& operand) {
    NpyArray array{numpy_type(operand.type).code, operand.shape, {}};
    array.bytes.resize(operand.rows * operand.columns * operand.element_bytes);
    job.fetch(operand.name, {array.bytes.data(), array.bytes.size()});
    if (operand.column_major) array.bytes = turned(array.bytes, operand.columns, operand.rows);
    return array;
}

std::string size_text(const Design& design, const Sizes& sizes) {
    std::vector<std::size_t> given;
    for (const std::string& name : design.state()->program().parameters)
        if (const auto size = sizes.find(name); size != sizes.end()) given.push_back(size->second);
    return listed(given, " x ");
}

namespace {

/// A folder of one's own, gone when this is.
class Folder {
public:
    Folder() : path_((std::filesystem::temp_directory_path() / "bdforge-XXXXXX").string()) {
        if (mkdtemp(path_.data()) == nullptr)
            throw UsageError(path_ + ": " + std::strerror(errno) +
                             "; --verify needs a folder for its files, see TMPDIR");
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::string file(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// The exit code of a command whose output goes to a file.
int run(const std::vector<std::string>& words, const std::string& output) {
    const pid_t child = start_child(words, "--verify: ", [&output](posix_spawn_file_actions_t& files) {
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT, 0600);
        posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    });
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// What a file says, in a line.
std::string line_of(const std::string& path) {
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}, line;
    for (const char c : text.substr(0, 1000)) line.push_back(c == '\n' ? ' ' : c);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
}

/// Whether a line is of an output, as `check-run` tells differences; a Python that fails ends with 1 as well.
bool begins_with_an_output(const std::string& line, const Job& job) {
    const std::string word = line.substr(0, line.find_first_of(" ["));
    for (const OperandShape& operand : job.operands())
        if (operand.output && operand.name == word) return true;
    return false;
}

}  // namespace

// The reference of an operator stands once, in Python: operands go there as .npy files, the verdict comes back.
std::string first_mismatch(const Trial& trial, const Options& options) {
    const Folder folder;
    for (const auto& [name, array] : trial.problem.arrays) save_npy(folder.file(name + ".npy"), array);
    const Job& first = trial.jobs.front();
    for (const OperandShape& operand : first.operands()) {
        if (!operand.output) continue;
        const NpyArray found = fetched(first, operand);
        save_npy(folder.file(operand.name + ".npy"), found);
        for (std::size_t i = 1; i < trial.jobs.size(); ++i)
            if (fetched(trial.jobs[i], operand).bytes != found.bytes)
                return concat(operand.name, " of job ", i + 1, " of the batch is not that of the first");
    }
    std::vector<std::string> words = bdforge_command();
    words.insert(words.end(), {"check-run", manifest_beside(options.design), folder.path()});
    const int code = run(words, folder.file("said"));
    const std::string said = line_of(folder.file("said"));
    if (code == 0) return "";
    if (code == 1 && begins_with_an_output(said, first)) return said;
    throw UsageError("--verify: '" + words[0] + " ... check-run' failed: " + said + "; see " + python_variable);
}

}  // namespace bdforge::cli
