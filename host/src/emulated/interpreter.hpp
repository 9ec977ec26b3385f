#pragma once
#include <spawn.h>

#include <functional>
#include <string>
#include <vector>

namespace bdforge {

/// Names the Python that has bdforge, in messages too.
inline constexpr const char* python_variable = "BDFORGE_PYTHON";

/// A value of the environment; "" when there is none.
std::string setting(const char* name);

/// How a command of bdforge's starts: by an interpreter that has it, or by the command of that name.
std::vector<std::string> bdforge_command();

/// Starts a command with nothing on its standard input and the files that `add` says; DeviceError, `who` at its head, when
/// it cannot be run.
pid_t start_child(const std::vector<std::string>& words, const std::string& who,
                  const std::function<void(posix_spawn_file_actions_t&)>& add);

}  // namespace bdforge
