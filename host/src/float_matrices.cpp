#include <algorithm>
#include <thread>
#include <vector>

#include "float_matrices.hpp"

namespace bdforge {
namespace {

constexpr std::size_t side = 64;                 // of a block that is transposed in the first cache: whole cache lines
constexpr std::size_t cache_line = 64;           // bytes
constexpr std::size_t thread_bytes = 256 << 10;  // below, starting a thread takes longer than its work

inline Bf16 converted(float value, Bf16) { return narrowed(value); }
inline Bf16 converted(Bf16 value, Bf16) { return value; }
inline float converted(float value, float) { return value; }
inline float converted(Bf16 value, float) { return widened(value); }

/// A line of results.
struct Line {
    bool add;
    const float* bias;

    Line(const Results& results, std::size_t column)
        : add(results.add), bias(results.bias == nullptr ? nullptr : results.bias + column) {}

    template <class From, class To>
    void write(const From* __restrict from, To* __restrict to, std::size_t count) const {
        std::size_t at = 0;
        for (; at + side <= count; at += side) some<side>(from + at, to + at, at);
        for (; at < count; ++at) some<1>(from + at, to + at, at);
    }

private:
    /// A fixed number of elements, which every compiler turns into vectors.
    template <std::size_t count, class From>
    void some(const From* __restrict from, Bf16* __restrict to, std::size_t) const {
        for (std::size_t i = 0; i < count; ++i) to[i] = converted(from[i], Bf16{});
    }
    template <std::size_t count, class From>
    void some(const From* __restrict from, float* __restrict to, std::size_t at) const {
        float sums[count] = {};
        if (add)
            for (std::size_t i = 0; i < count; ++i) sums[i] = to[i];
        if (bias != nullptr)
            for (std::size_t i = 0; i < count; ++i) sums[i] += bias[at + i];
        for (std::size_t i = 0; i < count; ++i) to[i] = sums[i] + converted(from[i], 0.0F);
    }
};

/// Rows [first, last) of `to`.
template <class From, class To>
inline void plain(const Grid<const From>& from, const Grid<To>& to, const Results& results, std::size_t first,
                  std::size_t last) {
    const Line line(results, 0);
    for (std::size_t row = first; row < last; ++row)
        line.write(from.data + row * from.stride, to.data + row * to.stride, to.columns);
}

/// Asks for what the next block reads of a line.
template <class Element>
inline void ahead(const Element* line) {
    for (std::size_t at = side; at < 2 * side; at += cache_line / sizeof(Element)) __builtin_prefetch(line + at);
}

/// Rows [first, last) of `to` from columns of `from`, block by block: both are read and written in whole cache lines.
/// Blocks hold `Held`, the narrower of the two types.
template <class Held, class From, class To>
inline void transposed(const Grid<const From>& from, const Grid<To>& to, const Results& results, std::size_t first,
                       std::size_t last) {
    Held block[side][side], row[side];
    for (std::size_t left = 0; left < to.columns; left += side) {
        const std::size_t columns = std::min(side, to.columns - left);
        const Line line(results, left);
        for (std::size_t top = first; top < last; top += side) {
            const std::size_t rows = std::min(side, last - top);
            for (std::size_t i = 0; i < columns; ++i) {
                const From* const source = from.data + (left + i) * from.stride + top;
                if (top + side < last) ahead(source);
                Line({}, 0).write(source, block[i], rows);
            }
            for (std::size_t j = 0; j < rows; ++j) {
                for (std::size_t i = 0; i < columns; ++i) row[i] = block[i][j];
                line.write(row, to.data + (top + j) * to.stride + left, columns);
            }
        }
    }
}

// One for each pair of types and way: what is compiled for several processors cannot be a template.
using In = Grid<const float>;
BDFORGE_WIDEST void rows_in(const In& from, const Grid<Bf16>& to, bool turned, std::size_t first, std::size_t last) {
    turned ? transposed<Bf16>(from, to, {}, first, last) : plain(from, to, {}, first, last);
}
BDFORGE_WIDEST void rows_out(const Grid<const float>& from, const Grid<float>& to, bool turned, const Results& results,
                             std::size_t first, std::size_t last) {
    turned ? transposed<float>(from, to, results, first, last) : plain(from, to, results, first, last);
}
BDFORGE_WIDEST void rows_out_bf16(const Grid<const Bf16>& from, const Grid<float>& to, bool turned,
                                  const Results& results, std::size_t first, std::size_t last) {
    turned ? transposed<Bf16>(from, to, results, first, last) : plain(from, to, results, first, last);
}

template <class Element>
std::size_t grid_bytes(const Grid<Element>& grid) {
    return grid.rows * grid.columns * sizeof(Element);
}

}  // namespace

void in_parts(std::size_t count, std::size_t bytes, const std::function<void(std::size_t, std::size_t)>& work) {
    const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t parts = std::max<std::size_t>(std::min({most, bytes / thread_bytes, count}), 1);
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < parts; ++i) others.emplace_back(work, i * count / parts, (i + 1) * count / parts);
    work(0, count / parts);
    for (std::thread& thread : others) thread.join();
}

void copy_in(const Grid<const float>& from, const Grid<Bf16>& to, bool turned) {
    in_parts(to.rows, grid_bytes(from),
             [&](std::size_t first, std::size_t last) { rows_in(from, to, turned, first, last); });
}

void copy_out(const Grid<const float>& from, const Grid<float>& to, bool turned, const Results& results) {
    in_parts(to.rows, grid_bytes(to),
             [&](std::size_t first, std::size_t last) { rows_out(from, to, turned, results, first, last); });
}

void copy_out(const Grid<const Bf16>& from, const Grid<float>& to, bool turned, const Results& results) {
    in_parts(to.rows, grid_bytes(to),
             [&](std::size_t first, std::size_t last) { rows_out_bf16(from, to, turned, results, first, last); });
}

namespace {

constexpr std::size_t tile_rows = 8;  // of C and A, for each pass over B
constexpr std::size_t lanes = 32;     // of sums, a fixed number, which every compiler turns into vectors

float element(const Factor& factor, std::size_t rows, std::size_t columns, std::size_t row, std::size_t column) {
    return factor.turned ? factor.data[column * rows + row] : factor.data[row * columns + column];
}

/// c += a * b, element by element.
inline void add_scaled(const float* __restrict b, float a, float* __restrict c, std::size_t count) {
    std::size_t at = 0;
    for (; at + lanes <= count; at += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) c[at + lane] += a * b[at + lane];
    for (; at < count; ++at) c[at] += a * b[at];
}

inline float dot(const float* a, const float* b, std::size_t count) {
    float sums[lanes] = {}, sum = 0;
    std::size_t at = 0;
    for (; at + lanes <= count; at += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[at + lane] * b[at + lane];
    for (; at < count; ++at) sum += a[at] * b[at];
    for (const float lane : sums) sum += lane;
    return sum;
}

/// Rows [first, last) of C.
BDFORGE_WIDEST void rows_of(const FloatProduct& product, std::size_t first, std::size_t last) {
    const auto& [M, K, N, a, b, c, add, bias] = product;
    std::vector<float> lines(tile_rows * K);
    for (std::size_t top = first; top < last; top += tile_rows) {
        const std::size_t rows = std::min(tile_rows, last - top);
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t k = 0; k < K; ++k) lines[row * K + k] = element(a, M, K, top + row, k);
            float* const sums = c + (top + row) * N;
            if (!add) std::fill_n(sums, N, 0.0F);
            for (std::size_t column = 0; bias != nullptr && column < N; ++column) sums[column] += bias[column];
        }
        for (std::size_t k = 0; !b.turned && k < K; ++k)
            for (std::size_t row = 0; row < rows; ++row)
                add_scaled(b.data + k * N, lines[row * K + k], c + (top + row) * N, N);
        for (std::size_t column = 0; b.turned && column < N; ++column)
            for (std::size_t row = 0; row < rows; ++row)
                c[(top + row) * N + column] += dot(lines.data() + row * K, b.data + column * K, K);
    }
}

}  // namespace

void compute_on_cpu(const FloatProduct& product) {
    const std::size_t bytes =
        product.M * product.N * product.K;  // each worth a multiplication, as long as a byte's copy
    in_parts(product.M, bytes, [&](std::size_t first, std::size_t last) { rows_of(product, first, last); });
}

}  // namespace bdforge
