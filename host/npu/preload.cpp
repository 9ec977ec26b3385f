// A library for LD_PRELOAD: what lies below the folder BDFORGE_NPU is there for the program, /sys/... and /dev/accel, and
// the device file is the driver of an emulated NPU. XRT and its user-space driver stay as they are.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>

#include "driver.hpp"

namespace {

constexpr std::size_t images_most = 32;

/// Images that this process has opened; lives as long as it: XRT closes late.
struct Opened {
    std::mutex guard;
    std::deque<std::string> images;
};

Opened& opened() {
    static auto* const one = new Opened;
    return *one;
}

const std::string& folder() {
    static auto* const place = new std::string(std::getenv("BDFORGE_NPU") ? std::getenv("BDFORGE_NPU") : "");
    return *place;
}

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool starts(const char* path, const char* with) { return std::strncmp(path, with, std::strlen(with)) == 0; }

bool ends(const std::string& path, const std::string& with) {
    return path.size() > with.size() && path.compare(path.size() - with.size(), with.size(), with) == 0;
}

/// Where a path really is.
class Place {
public:
    explicit Place(const char* path) : path_(path) {
        if (path == nullptr || folder().empty() || (!starts(path, "/sys/") && !starts(path, "/dev/accel"))) return;
        static const auto real_access = next<decltype(&::access)>("access");
        const int before = errno;
        redirected_ = folder() + path;
        if (real_access(redirected_.c_str(), F_OK) == 0) path_ = redirected_.c_str();
        errno = before;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    operator const char*() const { return path_; }
    bool is_device() const {
        return path_ != nullptr && path_ == redirected_.c_str() && starts(path_ + folder().size(), "/dev/accel/accel");
    }

private:
    const char* path_;
    std::string redirected_;
};

void note_image(const char* path) {
    if (path == nullptr || folder().empty() || (!ends(path, ".xclbin") && !ends(path, ".elf"))) return;
    static const auto real_realpath = next<decltype(&::realpath)>("realpath");
    char whole[PATH_MAX];
    const int before = errno;
    if (real_realpath(path, whole) != nullptr) {
        const std::lock_guard<std::mutex> lock(opened().guard);
        auto& images = opened().images;
        images.erase(std::remove(images.begin(), images.end(), whole), images.end());
        images.push_front(whole);
        if (images.size() > images_most) images.pop_back();
    }
    errno = before;
}

}  // namespace

namespace npu {

std::string opened_images() {
    const std::lock_guard<std::mutex> lock(opened().guard);
    std::string all;
    for (const std::string& image : opened().images) all += '\0' + image;
    return all;
}

}  // namespace npu

#define REAL(name) static const auto real = next<decltype(&::name)>(#name)

/// `before`, `passed`: what stands before the path, declared and handed on.
#define OPENING(name, before, passed)                                                     \
    int name(before const char* path, int flags, ...) {                                   \
        va_list rest;                                                                     \
        va_start(rest, flags);                                                            \
        const auto mode = va_arg(rest, mode_t);                                           \
        va_end(rest);                                                                     \
        REAL(name);                                                                       \
        note_image(path);                                                                 \
        const Place place(path);                                                          \
        return place.is_device() ? npu::open_device(folder()) : real(passed place, flags, mode);       \
    }
#define DIRECTORY int directory,
#define ITS directory,

#define OPENING_STREAM(name)                                                              \
    FILE* name(const char* path, const char* mode) {                                      \
        REAL(name);                                                                       \
        note_image(path);                                                                 \
        return real(Place(path), mode);                                                   \
    }

#define LOOKING(name, type)                                                               \
    int name(const char* path, struct type* out) {                                        \
        REAL(name);                                                                       \
        return real(Place(path), out);                                                    \
    }

/// The user-space driver locks its heap, which is larger than what a process may lock.
#define MAPPING(name, offset_type)                                                        \
    void* name(void* wanted, size_t bytes, int protection, int flags, int file, offset_type offset) { \
        REAL(name);                                                                       \
        if (file >= 0 && npu::device(file)) flags &= ~MAP_LOCKED;                              \
        return real(wanted, bytes, protection, flags, file, offset);                      \
    }

extern "C" {

OPENING(open, , )
OPENING(open64, , )
OPENING(openat, DIRECTORY, ITS)
OPENING(openat64, DIRECTORY, ITS)
OPENING_STREAM(fopen)
OPENING_STREAM(fopen64)
LOOKING(stat, stat)
LOOKING(stat64, stat64)
LOOKING(lstat, stat)
LOOKING(lstat64, stat64)
MAPPING(mmap, off_t)
MAPPING(mmap64, off64_t)

DIR* opendir(const char* path) {
    REAL(opendir);
    return real(Place(path));
}

int access(const char* path, int mode) {
    REAL(access);
    return real(Place(path), mode);
}

ssize_t readlink(const char* path, char* out, size_t bytes) {
    REAL(readlink);
    return real(Place(path), out, bytes);
}

/// The answer must lie below /sys again, which XRT checks.
char* realpath(const char* path, char* out) {
    REAL(realpath);
    char* found = real(Place(path), out);
    const std::size_t length = folder().size();
    if (found != nullptr && length > 0 && std::strncmp(found, folder().c_str(), length) == 0) {
        std::memmove(found, found + length, std::strlen(found + length) + 1);
    }
    return found;
}

int close(int file) {
    REAL(close);
    const npu::Leaving left(file);
    return real(file);
}

int dup2(int file, int copy) {
    REAL(dup2);
    const npu::Leaving left(copy);
    return real(file, copy);
}

int dup3(int file, int copy, int flags) {
    REAL(dup3);
    const npu::Leaving left(copy);
    return real(file, copy, flags);
}

int ioctl(int file, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void* argument = va_arg(rest, void*);
    va_end(rest);
    if (const auto driver = npu::device(file)) return driver->ioctl(request & 0xFF, reinterpret_cast<std::uint64_t>(argument));
    static const auto real = next<int (*)(int, unsigned long, ...)>("ioctl");
    return real(file, request, argument);
}
}
