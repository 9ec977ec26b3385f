#include "extent.hpp"

#include <cstdint>

#include "bdforge/error.hpp"

namespace bdforge {

std::size_t bytes_of(const std::string& what, std::size_t count, std::size_t bytes, std::size_t more) {
    std::size_t product = 0, sum = 0;
    const bool wraps = __builtin_mul_overflow(count, bytes, &product) || __builtin_add_overflow(product, more, &sum);
    if (!wraps && sum <= extent_limit) return sum;
    throw ArgumentError(what + ": " + std::to_string(count) + " times " + std::to_string(bytes) +
                        " bytes are more than a process can address, 2^47; give smaller sizes or strides");
}

bool overlap(const Extent& one, const Extent& other) {
    const auto none = [](const Extent& extent) { return extent.data == nullptr || extent.bytes == 0; };
    if (none(one) || none(other)) return false;
    const auto first = reinterpret_cast<std::uintptr_t>(one.data),
               second = reinterpret_cast<std::uintptr_t>(other.data);
    return first <= second ? second - first < one.bytes : first - second < other.bytes;
}

void refuse_overlap(const Extent& one, const Extent& other, const char* next_step) {
    if (!overlap(one, other)) return;
    throw ArgumentError(std::string(one.name) + " (" + std::to_string(one.bytes) + " bytes) and " + other.name + " (" +
                        std::to_string(other.bytes) + " bytes) overlap in memory; " + next_step);
}

}  // namespace bdforge
