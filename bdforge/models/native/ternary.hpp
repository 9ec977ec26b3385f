#pragma once
#include <cstddef>
#include <cstdint>

/// Ternary weights for processors: codes u = w + 1, in blocks of four columns. A block has, for every 256 of K, 64 bytes
/// of each of its columns; byte j of them holds elements j, j + 64, j + 128 and j + 192 at bits 0, 2, 4, 6. So a
/// product reads one stream, unpacks it by shifts and masks whatever the vectors' width, and multiplies what is
/// unpacked with bytes that lie together. K and N are filled up: codes of 1, which are weights of 0.
namespace ternary {

constexpr std::size_t step = 256, columns = 4, step_bytes = 64, block_rows = 4;

inline std::size_t steps(std::size_t K) { return (K + step - 1) / step; }
inline std::size_t blocks(std::size_t N) { return (N + columns - 1) / columns; }

/// sums[m * columns + n] = sum of u * rows[m], of `depth` steps of a block; rows are filled up with zeros.
using Kernel = void (*)(const std::uint8_t* block, const std::int8_t* const* rows, std::size_t depth, std::int32_t* sums);

/// For 1 to block_rows rows.
struct Kernels {
    const char* name;
    Kernel of[block_rows];
};

/// Sums of table[row] * x over `size`, of rows that lie `size` elements apart.
using Dots = void (*)(const void* table, std::size_t rows, std::size_t size, const float* x, float* out);

struct FloatKernels {
    Dots f32, f16, bf16, q8;
};

}  // namespace ternary
