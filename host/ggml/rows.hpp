#pragma once
/// What the host does to rows before and after a product: int8 codes in, scaled floats out.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <vector>

namespace bdforge::ggml {

/// Splits work over so many threads.
struct Workers {
    std::size_t threads = 1;

    /// Calls `act(first, last)` for ranges that together are 0 to `count`, none smaller than `least` unless it is the last.
    template <class Act>
    void each(std::size_t count, std::size_t least, Act act) const {
        const std::size_t size = std::max(least, (count + threads - 1) / threads);
        std::vector<std::future<void>> others;
        for (std::size_t first = size; first < count; first += size)
            others.push_back(std::async(std::launch::async, act, first, std::min(count, first + size)));
        act(std::size_t{0}, std::min(count, size));
        for (auto& other : others) other.get();
    }
};

/// Rows of K codes with a scale each: a row is about its codes times its scale.
struct Codes {
    std::size_t rows = 0, K = 0;
    std::vector<std::int8_t> codes;
    std::vector<float> scales;
};

/// Codes of `rows` rows of K floats, `stride` floats apart: a row's largest magnitude becomes 127, ties go to even, as
/// BitNet b1.58 quantises tokens. The scale of a row that holds infinities or no numbers is no number.
void quantise(const float* x, std::size_t stride, std::size_t rows, std::size_t K, const Workers& workers, Codes& made);

/// Where a product goes: rows of N floats, `stride` apart, written or added to.
struct Target {
    float* y;
    std::size_t stride;
    bool add;
};

/// y = sums * the row's scale * the column's; sums have `stride` numbers from row to row.
void scale(const std::int32_t* sums, std::size_t stride, const std::vector<float>& rows,
           const std::vector<float>& columns, const Workers& workers, const Target& target);

/// y = rows x columns numbers of bf16, given as words.
void widen(const std::uint16_t* words, std::size_t stride, std::size_t rows, std::size_t columns,
           const Workers& workers, const Target& target);

}  // namespace bdforge::ggml
