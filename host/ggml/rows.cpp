#include "rows.hpp"

#include <cstring>
#include <limits>

#include "number_formats.hpp"

namespace bdforge::ggml {
namespace {

constexpr std::size_t rows_least = 16;              // of a thread's share
constexpr std::int32_t infinity_bits = 0x7f800000;  // of a magnitude; those of numbers are below
constexpr float least = 1e-5F;                      // a row of zeros is divided by this
constexpr float most = 127.0F;
constexpr float whole = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded to whole numbers, ties to even

/// The bits of the largest magnitude. Floats above 0 are in the order of their bits.
std::int32_t largest_bits(const float* x, std::size_t count) {
    std::int32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t bits = std::bit_cast<std::int32_t>(x[i]) & 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/// Codes of a row; its scale.
float quantise_row(const float* x, std::size_t count, std::int8_t* codes) {
    const std::int32_t bits = largest_bits(x, count);
    if (bits >= infinity_bits) {
        std::memset(codes, 0, count);
        return std::numeric_limits<float>::quiet_NaN();
    }
    const float steps = 1.0F / std::max(std::bit_cast<float>(bits), least) * most;
    for (std::size_t i = 0; i < count; ++i)
        codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>((x[i] * steps + whole) - whole));
    return 1.0F / steps;
}

/// Writes or adds `value(row, column)` everywhere.
template <class Value>
void put(std::size_t rows, std::size_t columns, const Workers& workers, const Target& target, Value value) {
    workers.each(rows, rows_least, [&, value](std::size_t first, std::size_t last) {
        for (std::size_t row = first; row < last; ++row) {
            float* const y = target.y + row * target.stride;
            if (target.add)
                for (std::size_t column = 0; column < columns; ++column) y[column] += value(row, column);
            else
                for (std::size_t column = 0; column < columns; ++column) y[column] = value(row, column);
        }
    });
}

}  // namespace

void quantise(const float* x, std::size_t stride, std::size_t rows, std::size_t K, const Workers& workers,
              Codes& made) {
    made.rows = rows, made.K = K;
    made.codes.resize(rows * K);
    made.scales.resize(rows);
    workers.each(rows, rows_least, [&](std::size_t first, std::size_t last) {
        for (std::size_t row = first; row < last; ++row)
            made.scales[row] = quantise_row(x + row * stride, K, made.codes.data() + row * K);
    });
}

void scale(const std::int32_t* sums, std::size_t stride, const std::vector<float>& rows,
           const std::vector<float>& columns, const Workers& workers, const Target& target) {
    put(rows.size(), columns.size(), workers, target,
        [sums, stride, row_scales = rows.data(), column_scales = columns.data()](std::size_t row, std::size_t column) {
            return static_cast<float>(sums[row * stride + column]) * row_scales[row] * column_scales[column];
        });
}

void widen(const std::uint16_t* words, std::size_t stride, std::size_t rows, std::size_t columns,
           const Workers& workers, const Target& target) {
    put(rows, columns, workers, target,
        [words, stride](std::size_t row, std::size_t column) { return widened(words[row * stride + column]); });
}

}  // namespace bdforge::ggml
