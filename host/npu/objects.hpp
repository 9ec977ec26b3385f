#pragma once
// Buffer objects of one open device file: their memory, their addresses as the device sees them, their handles.

#include <cstddef>
#include <map>
#include <memory>

#include "amdxdna.hpp"

namespace npu {

/// What an ioctl returns in errno.
struct Refused {
    int number;
};

/// Copies from and to a program's memory; EFAULT where it has none.
void copy_in(void* to, std::uint64_t from, std::size_t bytes);
void copy_out(std::uint64_t to, const void* from, std::size_t bytes);

template <class Value>
Value from_user(std::uint64_t address) {
    Value value;
    copy_in(&value, address, sizeof value);
    return value;
}

/// Pages of a memory file, which go back to the system when nothing uses them any more.
class Pages {
public:
    Pages(int file, std::uint64_t offset, std::uint64_t bytes);
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages();

    std::byte* data() const { return data_; }
    int file() const { return file_; }

private:
    int file_;
    std::uint64_t offset_, bytes_;
    std::byte* data_;
};

struct Object {
    ObjectType type;
    std::uint64_t address;  // as the device sees it
    std::uint64_t offset;   // in the memory file
    std::uint64_t bytes;
    std::byte* host;
    std::uint64_t callers;         // memory of the program's own that `host` is copied from and to; 0: none
    std::shared_ptr<Pages> pages;  // those of the heap for what lies in it

    /// The caller's memory to the device's and back, where that is another; what is unmapped by now stays out.
    void to_device() const;
    void from_device() const;
};

using ObjectPointer = std::shared_ptr<const Object>;

class Objects {
public:
    explicit Objects(int memory) : memory_(memory) {}

    /// A handle. EINVAL for sizes and types that are none, ENOMEM beyond what the machine or the heap has.
    std::uint32_t create(ObjectType type, std::uint64_t bytes, std::uint64_t callers);
    /// ENOENT for a handle that is none.
    ObjectPointer find(std::uint32_t handle) const;
    /// The object that an address lies in; EINVAL where there is none.
    ObjectPointer at(std::uint64_t address) const;
    void close(std::uint32_t handle);
    /// Where the driver's memory for an object begins in the file, for mmap.
    static std::uint64_t map_offset(const Object& object);

private:
    std::uint64_t place_in_heap(std::uint64_t bytes) const;

    int memory_;
    std::uint64_t end_ = 0;
    std::uint32_t next_handle_ = 1;
    ObjectPointer heap_;
    std::map<std::uint32_t, ObjectPointer> by_handle_;
    std::map<std::uint64_t, ObjectPointer> by_address_;  // all but the heap itself
};

}  // namespace npu
