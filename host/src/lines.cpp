#include "lines.hpp"

#include <algorithm>

#include "bdforge/error.hpp"

namespace bdforge {

Lines::Lines(const char* name, const generator::Storage& storage, std::size_t rows, std::size_t columns)
    : name(name), storage(storage) {
    const bool down = storage.order == generator::column_major;
    count = down ? columns : (rows + storage.block - 1) / storage.block;
    positions = down ? rows : columns;
}

std::size_t Lines::stride(std::size_t asked) const {
    if (asked == 0) return positions;
    if (asked >= positions) return asked;
    throw ArgumentError(std::string(name) + ": a stride of " + std::to_string(asked) + " is below the " +
                        std::to_string(positions) + " elements of a line; lines would overlap, give more or 0");
}

std::size_t Lines::bytes(std::size_t stretch) const {
    const std::size_t blocks = stretch / storage.block + (stretch % storage.block != 0);
    return bytes_of(name, blocks, std::size_t{storage.block} * storage.run * storage.bits / 8);
}

void Lines::copy(const void* from, std::size_t from_stride, void* to, std::size_t to_stride) const {
    const auto* source = static_cast<const std::byte*>(from);
    auto* target = static_cast<std::byte*>(to);
    const std::size_t ahead = bytes(from_stride), step = bytes(to_stride), line = bytes(positions);
    for (std::size_t i = 0; i < count; ++i) std::copy_n(source + i * ahead, line, target + i * step);
}

}  // namespace bdforge
