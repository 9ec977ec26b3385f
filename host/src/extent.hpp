#pragma once
/// Memory that callers give: products of sizes that cannot wrap, and pieces that must not overlap.

#include <cstddef>
#include <cstdint>
#include <string>

#include "bdforge/error.hpp"
#include "messages.hpp"

namespace bdforge {

/// Most bytes that an operand may span: what Linux on x86-64 gives a process.
constexpr std::size_t extent_limit = std::size_t{1} << 47;

/// count * bytes + more. Every size in bytes that comes from a caller is made here.
/// ArgumentError names `what` when the result is beyond `extent_limit`.
inline std::size_t bytes_of(const std::string& what, std::size_t count, std::size_t bytes, std::size_t more = 0) {
    std::size_t product = 0, sum = 0;
    const bool wraps = __builtin_mul_overflow(count, bytes, &product) || __builtin_add_overflow(product, more, &sum);
    if (!wraps && sum <= extent_limit) return sum;
    throw ArgumentError(concat(what, ": ", count, " times ", bytes,
                             " bytes are more than a process can address, 2^47; give smaller sizes or strides"));
}

/// Memory that is called `name` in messages; none where `data` is null.
struct Extent {
    std::string name;
    const void* data;
    std::size_t bytes;
};

/// Whether both hold a byte.
inline bool overlap(const Extent& one, const Extent& other) {
    const auto none = [](const Extent& extent) { return extent.data == nullptr || extent.bytes == 0; };
    if (none(one) || none(other)) return false;
    const auto first = reinterpret_cast<std::uintptr_t>(one.data),
               second = reinterpret_cast<std::uintptr_t>(other.data);
    return first <= second ? second - first < one.bytes : first - second < other.bytes;
}

/// ArgumentError when both hold a byte; `next_step` ends the message.
inline void refuse_overlap(const Extent& one, const Extent& other, const char* next_step) {
    if (!overlap(one, other)) return;
    throw ArgumentError(concat(one.name, " (", one.bytes, " bytes) and ", other.name, " (", other.bytes,
                             " bytes) overlap in memory; ", next_step));
}

}  // namespace bdforge
