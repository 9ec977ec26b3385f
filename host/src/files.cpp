#include "files.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "bdforge/error.hpp"

namespace bdforge {
namespace {

struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

[[noreturn]] void refuse(const std::string& path, const std::string& cause, const std::string& next_step) {
    throw FileError(path + ": " + cause + "; " + next_step);
}

std::size_t size_of(std::FILE* file, const std::string& path, const std::string& next_step) {
    struct stat status {};
    if (fstat(fileno(file), &status) != 0) refuse(path, std::strerror(errno), next_step);
    if (!S_ISREG(status.st_mode)) refuse(path, "not a regular file", next_step);
    return static_cast<std::size_t>(status.st_size);
}

}  // namespace

std::string read_file(const std::string& path, std::size_t limit_bytes, const std::string& next_step) {
    const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
    if (!file) refuse(path, std::strerror(errno), next_step);
    const std::size_t bytes = size_of(file.get(), path, next_step);
    if (bytes > limit_bytes) {
        refuse(path, std::to_string(bytes) + " bytes, more than " + std::to_string(limit_bytes), next_step);
    }
    std::string content(bytes, '\0');
    if (std::fread(content.data(), 1, bytes, file.get()) != bytes) refuse(path, "cannot be read whole", next_step);
    return content;
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace bdforge
