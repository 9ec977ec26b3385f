#pragma once
/// Copies between a program's floats and what the array takes and gives: bf16 or f32, as they stand or transposed. Large
/// ones are shared by all the processor's threads.

#include <cstddef>
#include <cstdint>
#include <functional>

namespace bdforge {

/// A matrix in memory: `rows` of `columns` elements, `stride` elements from row to row.
template <class Element>
struct Grid {
    Element* data;
    std::size_t rows, columns, stride;
};

/// bf16 as 16-bit words, the upper halves of floats.
using Bf16 = std::uint16_t;

/// to = from, or its transpose where `turned` (`from` then has `to`'s columns as rows). Rounds to nearest, ties to even;
/// NaN stays NaN.
void copy_in(const Grid<const float>& from, const Grid<Bf16>& to, bool turned);

/// What becomes of results on their way back: `add` to what is there; plus `bias`, a float for each column, null for none.
struct Results {
    bool add = false;
    const float* bias = nullptr;
};

/// to = from, or its transpose where `turned`.
void copy_out(const Grid<const float>& from, const Grid<float>& to, bool turned, const Results& results = {});
void copy_out(const Grid<const Bf16>& from, const Grid<float>& to, bool turned, const Results& results = {});

/// Calls work(first, last) for parts of [0, count), at the same time where `bytes` of memory are worth the threads. `work`
/// must not throw.
void in_parts(std::size_t count, std::size_t bytes, const std::function<void(std::size_t, std::size_t)>& work);

}  // namespace bdforge
