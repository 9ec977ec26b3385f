#pragma once
// The kernel driver amdxdna as XRT's user-space driver sees it: buffers in one memfd, contexts, commands.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bdforge/backend.hpp"

namespace fake_npu {

/// How commands end: BDFORGE_FAKE_NPU_MODE = compute, hang, error, or lose-chain, whose first chain alone times out.
enum class Mode { compute, hang, error, lose_chain };

struct Object {
    std::uint64_t offset;   // in the memfd, ~0: memory of the caller or inside the heap
    std::uint64_t address;  // as the device sees it
    std::byte* host;
    std::size_t bytes;
};

/// What an address leads to, up to the end of its buffer.
struct Memory {
    std::byte* data;
    std::size_t bytes;
};

class Driver {
public:
    Driver();

    int memory() const { return memory_; }
    /// Answers an ioctl: 0, or -1 with errno.
    int ioctl(unsigned number, void* argument);

private:
    int create_object(void* argument);
    int object_info(void* argument);
    int close_object(void* argument);
    int information(void* argument);
    int execute(void* argument);
    int wait(void* argument);
    std::byte* grow(std::size_t bytes, std::uint64_t& offset);
    Memory object_at(std::uint64_t address) const;
    std::uint32_t finish(std::uint32_t* packet);
    void run(std::uint64_t instructions, std::uint32_t words, const std::uint32_t* addresses);
    static void log(const std::string& line);

    std::unique_ptr<bdforge::Context> array_;  // on which commands run
    int memory_;
    std::uint64_t end_ = 0;
    std::uint64_t heap_used_ = 0;
    Object heap_{};
    std::map<std::uint32_t, Object> objects_;
    std::uint32_t next_handle_ = 1;
    std::uint64_t next_address_ = std::uint64_t{1} << 32;
    std::uint64_t submitted_ = 0;
    Mode mode_;
};

}  // namespace fake_npu
