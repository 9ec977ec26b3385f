// A library for LD_PRELOAD: paths below /sys and /dev/accel lead into the folder BDFORGE_FAKE_NPU, and its device file
// is the fake driver. XRT and its user-space driver stay as they are.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "driver.hpp"

namespace {

fake_npu::Driver& driver() {
    static auto* const one = new fake_npu::Driver;  // lives as long as the process: XRT closes late
    return *one;
}

std::set<int>& ours() {
    static auto* const files = new std::set<int>;
    return *files;
}

const std::string& folder() {
    static auto* const place = new std::string(std::getenv("BDFORGE_FAKE_NPU") ? std::getenv("BDFORGE_FAKE_NPU") : "");
    return *place;
}

bool starts(const char* path, const char* with) { return std::strncmp(path, with, std::strlen(with)) == 0; }

/// Where a path really is.
std::string place(const char* path) {
    return path != nullptr && (starts(path, "/sys/") || starts(path, "/dev/accel")) ? folder() + path
           : path                                                                   ? path
                                                                                    : "";
}

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_device(const char* path) { return path != nullptr && starts(path, "/dev/accel/accel"); }

int open_device() {
    const int file = dup(driver().memory());
    ours().insert(file);
    return file;
}

}  // namespace

#define REAL(name) static const auto real = next<decltype(&::name)>(#name)

extern "C" {

int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const auto mode = va_arg(rest, mode_t);
    va_end(rest);
    REAL(open);
    return is_device(path) ? open_device() : real(place(path).c_str(), flags, mode);
}

int open64(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const auto mode = va_arg(rest, mode_t);
    va_end(rest);
    REAL(open64);
    return is_device(path) ? open_device() : real(place(path).c_str(), flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const auto mode = va_arg(rest, mode_t);
    va_end(rest);
    REAL(openat);
    return real(directory, place(path).c_str(), flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
    REAL(fopen);
    return real(place(path).c_str(), mode);
}

FILE* fopen64(const char* path, const char* mode) {
    REAL(fopen64);
    return real(place(path).c_str(), mode);
}

DIR* opendir(const char* path) {
    REAL(opendir);
    return real(place(path).c_str());
}

int stat(const char* path, struct stat* out) {
    REAL(stat);
    return real(place(path).c_str(), out);
}

int stat64(const char* path, struct stat64* out) {
    REAL(stat64);
    return real(place(path).c_str(), out);
}

int lstat(const char* path, struct stat* out) {
    REAL(lstat);
    return real(place(path).c_str(), out);
}

int lstat64(const char* path, struct stat64* out) {
    REAL(lstat64);
    return real(place(path).c_str(), out);
}

int access(const char* path, int mode) {
    REAL(access);
    return real(place(path).c_str(), mode);
}

ssize_t readlink(const char* path, char* out, size_t bytes) {
    REAL(readlink);
    return real(place(path).c_str(), out, bytes);
}

/// The answer must lie below /sys again, which XRT checks.
char* realpath(const char* path, char* out) {
    REAL(realpath);
    char* found = real(place(path).c_str(), out);
    const std::size_t length = folder().size();
    if (found != nullptr && length > 0 && std::strncmp(found, folder().c_str(), length) == 0) {
        std::memmove(found, found + length, std::strlen(found + length) + 1);
    }
    return found;
}

int close(int file) {
    REAL(close);
    ours().erase(file);
    return real(file);
}

int ioctl(int file, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void* argument = va_arg(rest, void*);
    va_end(rest);
    if (ours().count(file) > 0) return driver().ioctl(request & 0xFF, argument);
    static const auto real = next<int (*)(int, unsigned long, ...)>("ioctl");
    return real(file, request, argument);
}

/// The user-space driver locks its heap, which is larger than what a process may lock.
void* mmap(void* wanted, size_t bytes, int protection, int flags, int file, off_t offset) {
    REAL(mmap);
    return real(wanted, bytes, protection, ours().count(file) > 0 ? flags & ~MAP_LOCKED : flags, file, offset);
}

void* mmap64(void* wanted, size_t bytes, int protection, int flags, int file, off64_t offset) {
    REAL(mmap64);
    return real(wanted, bytes, protection, ours().count(file) > 0 ? flags & ~MAP_LOCKED : flags, file, offset);
}
}
