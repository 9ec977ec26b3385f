#pragma once
// What users read of a device: its faults, and with BDFORGE_DEVICE_TRACE what programs ask of it, in the file that
// BDFORGE_DEVICE_LOG names.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace npu {

constexpr std::size_t line_characters = 300;

inline std::string first_line(const std::string& text) {
    const std::string line = text.substr(0, text.find('\n'));
    return line.size() <= line_characters ? line : line.substr(0, line_characters) + " ...";
}

/// The log's name, when the line stands in it.
inline const char* appended(const std::string& line) {
    const char* path = std::getenv("BDFORGE_DEVICE_LOG");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return nullptr;
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    char stamp[32] = "";
    std::strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &parts));
    std::fprintf(file, "%s process %d: %s\n", stamp, getpid(), line.c_str());
    std::fclose(file);
    return path;
}


/// A fault: a line on stderr, which names the file that holds the whole text.
inline void report(const std::string& what, const std::string& text) {
    const char* path = appended(what + ": " + text);
    const std::string rest = path == nullptr ? text : first_line(text) + " [all of it: " + path + "]";
    std::fprintf(stderr, "bdforge device: %s: %s\n", what.c_str(), rest.c_str());
}

/// A line in the file, if anybody wants it.
inline void trace(const std::string& line) {
    static const bool wanted = std::getenv("BDFORGE_DEVICE_TRACE") != nullptr;
    if (wanted) appended(line);
}

}  // namespace npu
