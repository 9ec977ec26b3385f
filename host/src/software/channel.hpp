#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bdforge::software {

/// An operand's host buffer.
struct Memory {
    std::byte* data;
    std::size_t bytes;
};

/// One run of a BD, in 32-bit words of `memory` from byte `offset`.
struct Run {
    std::uint64_t offset_bytes;
    std::uint32_t length;
    std::uint32_t wrap[2];  // 0: no wrap
    std::uint64_t step[3];
};

/// The data of one shim channel: what its tasks move, in order, from or to an operand's buffer.
class Channel {
public:
    Channel(std::string name, Memory memory) : name_(std::move(name)), memory_(memory) {}

    void push(const Run& run) { runs_.push_back(run); }
    void push_token() { ++tokens_; }
    /// Takes a token; RunError when no task issues one.
    void take_token();

    /// The next `bytes` of the stream, out of the buffer or into it. RunError when its tasks end or leave the buffer.
    void read(void* out, std::size_t bytes);
    void write(const void* in, std::size_t bytes);
    /// RunError when tasks are left that nothing will feed or drain.
    void finish() const;

private:
    /// Where the next word lies, and how many words follow it side by side; moves on by at most `most` words.
    std::byte* next(std::size_t most, std::size_t& words);

    std::string name_;
    Memory memory_;
    std::vector<Run> runs_;
    std::size_t current_ = 0;
    std::uint32_t done_ = 0;  // words of the current run
    unsigned tokens_ = 0;
};

}  // namespace bdforge::software
