#include "objects.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace npu {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t heap_address = std::uint64_t{1} << 26;   // as real drivers place it
constexpr std::uint64_t first_address = std::uint64_t{1} << 32;  // of the memory file's first byte
constexpr std::uint64_t address_end = std::uint64_t{1} << 47;    // shims take 48 bits

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

std::uint64_t memory_of_the_machine() {
    static const std::uint64_t bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
    return bytes;
}

std::byte* pointer(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

void copy_in(void* to, std::uint64_t from, std::size_t bytes) {
    const iovec here{to, bytes}, there{pointer(from), bytes};
    const ssize_t moved = bytes == 0 ? 0 : process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (moved != static_cast<ssize_t>(bytes)) throw Refused{EFAULT};
}

void copy_out(std::uint64_t to, const void* from, std::size_t bytes) {
    const iovec here{const_cast<void*>(from), bytes}, there{pointer(to), bytes};
    const ssize_t moved = bytes == 0 ? 0 : process_vm_writev(getpid(), &here, 1, &there, 1, 0);
    if (moved != static_cast<ssize_t>(bytes)) throw Refused{EFAULT};
}

Pages::Pages(int file, std::uint64_t offset, std::uint64_t bytes) : file_(file), offset_(offset), bytes_(bytes) {
    void* mapped = MAP_FAILED;
    if (ftruncate(file, static_cast<off_t>(offset + bytes)) == 0)
        mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) throw Refused{ENOMEM};
    data_ = static_cast<std::byte*>(mapped);
}

Pages::~Pages() {
    munmap(data_, bytes_);
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_), static_cast<off_t>(bytes_));
}

void Object::to_device() const {
    if (callers == 0) return;
    try {
        copy_in(host, callers, bytes);
    } catch (const Refused&) {
    }
}

void Object::from_device() const {
    if (callers == 0) return;
    try {
        copy_out(callers, host, bytes);
    } catch (const Refused&) {
    }
}

std::uint32_t Objects::create(ObjectType type, std::uint64_t bytes, std::uint64_t callers) {
    if (bytes == 0 || type == ObjectType::invalid || type > ObjectType::cmd) throw Refused{EINVAL};
    if (type == ObjectType::dev_heap && heap_) throw Refused{EBUSY};
    if (type == ObjectType::dev && !heap_) throw Refused{EINVAL};
    if (type == ObjectType::dev_heap && bytes > first_address - heap_address) throw Refused{EINVAL};
    if (bytes > memory_of_the_machine()) throw Refused{ENOMEM};
    Object object{type, 0, 0, bytes, nullptr, callers, nullptr};
    if (type == ObjectType::dev) {
        const std::uint64_t inside = place_in_heap(whole_pages(bytes));
        object.address = heap_address + inside;
        object.offset = heap_->offset + inside;
        object.pages = heap_->pages;
        object.host = heap_->host + inside;
    } else {
        if (end_ + whole_pages(bytes) > address_end - first_address) throw Refused{ENOMEM};
        object.pages = std::make_shared<Pages>(memory_, end_, whole_pages(bytes));
        object.host = object.pages->data();
        object.offset = end_;
        object.address = type == ObjectType::dev_heap ? heap_address : first_address + end_;
        end_ += whole_pages(bytes);
    }
    const auto made = std::make_shared<const Object>(object);
    (type == ObjectType::dev_heap ? heap_ : by_address_[object.address]) = made;
    by_handle_[next_handle_] = made;
    return next_handle_++;
}

/// The first gap that is large enough.
std::uint64_t Objects::place_in_heap(std::uint64_t bytes) const {
    std::uint64_t start = 0;
    for (auto next = by_address_.begin();; ++next) {
        const bool last = next == by_address_.end() || next->first >= first_address;
        const std::uint64_t end = last ? heap_->bytes : next->first - heap_address;
        if (start + bytes <= end) return start;
        if (last) throw Refused{ENOMEM};
        start = end + whole_pages(next->second->bytes);
    }
}

ObjectPointer Objects::find(std::uint32_t handle) const {
    const auto found = by_handle_.find(handle);
    if (found == by_handle_.end()) throw Refused{ENOENT};
    return found->second;
}

ObjectPointer Objects::at(std::uint64_t address) const {
    auto next = by_address_.upper_bound(address);
    if (next == by_address_.begin()) throw Refused{EINVAL};
    const ObjectPointer found = (--next)->second;
    if (address - found->address >= found->bytes) throw Refused{EINVAL};
    return found;
}

void Objects::close(std::uint32_t handle) {
    const ObjectPointer object = find(handle);
    by_handle_.erase(handle);
    if (object == heap_)
        heap_.reset();
    else
        by_address_.erase(object->address);
}

std::uint64_t Objects::map_offset(const Object& object) {
    return object.type == ObjectType::dev || object.callers != 0 ? no_address : object.offset;
}

}  // namespace npu
