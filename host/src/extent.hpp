#pragma once
/// Memory that callers give: products of sizes that cannot wrap, and pieces that must not overlap.

#include <cstddef>
#include <string>

namespace bdforge {

/// Most bytes that an operand may span: what Linux on x86-64 gives a process.
constexpr std::size_t extent_limit = std::size_t{1} << 47;

/// count * bytes + more. Every size in bytes that comes from a caller is made here.
/// ArgumentError names `what` when the result is beyond `extent_limit`.
std::size_t bytes_of(const std::string& what, std::size_t count, std::size_t bytes, std::size_t more = 0);

/// Memory that is called `name` in messages; none where `data` is null.
struct Extent {
    const char* name;
    const void* data;
    std::size_t bytes;
};

/// Whether both hold a byte.
bool overlap(const Extent& one, const Extent& other);

/// ArgumentError when both hold a byte; `next_step` ends the message.
void refuse_overlap(const Extent& one, const Extent& other, const char* next_step);

}  // namespace bdforge
