#include "interpreter.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "bdforge/error.hpp"

#ifndef BDFORGE_BUILT_BY_PYTHON
#define BDFORGE_BUILT_BY_PYTHON ""
#endif

namespace bdforge {

std::string setting(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::vector<std::string> bdforge_command() {
    std::string python = setting(python_variable);
    if (python.empty() && access(BDFORGE_BUILT_BY_PYTHON, X_OK) == 0) python = BDFORGE_BUILT_BY_PYTHON;
    if (python.empty()) return {"bdforge"};
    return {python, "-m", "bdforge.cli"};
}

pid_t start_child(const std::vector<std::string>& words, const std::string& who,
                  const std::function<void(posix_spawn_file_actions_t&)>& add) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    add(actions);
    pid_t child = -1;
    const int failed = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed == 0) return child;
    throw DeviceError(who + words[0] + " cannot be run (" + std::strerror(failed) +
                      "); install bdforge, or name a Python that has it by " + python_variable);
}

}  // namespace bdforge
