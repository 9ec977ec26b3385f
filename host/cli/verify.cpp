// The reference of an operator stands once, in Python: operands go there as .npy files, the verdict comes back.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "emulated/interpreter.hpp"
#include "trial.hpp"

namespace bdforge::cli {
namespace {

/// A folder of one's own, gone when this is.
class Folder {
public:
    Folder() : path_((std::filesystem::temp_directory_path() / "bdforge-XXXXXX").string()) {
        if (mkdtemp(path_.data()) == nullptr)
            throw UsageError(path_ + ": " + std::strerror(errno) + "; --verify needs a folder for its files, see TMPDIR");
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

std::string first_mismatch(const Trial& trial, const Design& design, const Options& options) {
    const Folder folder;
    for (const auto& [name, array] : trial.problem.arrays) save_npy(folder.file(name + ".npy"), array);
    const Job& first = trial.jobs.front();
    for (const OperandShape& operand : first.operands()) {
        if (!operand.output) continue;
        const NpyArray found = fetched(first, design, operand);
        save_npy(folder.file(operand.name + ".npy"), found);
        for (std::size_t i = 1; i < trial.jobs.size(); ++i)
            if (fetched(trial.jobs[i], design, operand).bytes != found.bytes)
                return operand.name + " of job " + std::to_string(i + 1) + " of the batch is not that of the first";
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
