#pragma once
/// How a caller's matrix lies in memory: lines, which are rows or columns, a stride apart.

#include <cstddef>
#include <string>

#include "bdforge/staging.hpp"
#include "extent.hpp"

namespace bdforge {

/// Lines of an operand of `rows` x `columns`, and positions along them. Every size in bytes is checked (`bytes_of`).
struct Lines {
    const char* name;
    generator::Storage storage;
    std::size_t count, positions;

    Lines(const char* name, const generator::Storage& storage, std::size_t rows, std::size_t columns);

    /// The stride that was asked for, 0 meaning none; ArgumentError when lines would overlap.
    std::size_t stride(std::size_t asked) const;
    /// Bytes of a stretch of a line; whole blocks of block floats.
    std::size_t bytes(std::size_t stretch) const;
    /// Bytes from the first element to behind the last one.
    std::size_t extent(std::size_t stride) const { return bytes_of(name, count - 1, bytes(stride), bytes(positions)); }
    Extent in(const void* data, std::size_t stride) const { return {name, data, extent(stride)}; }

    void copy(const void* from, std::size_t from_stride, void* to, std::size_t to_stride) const;
};

}  // namespace bdforge
