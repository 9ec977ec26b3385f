#pragma once
// bfp16ebs8: blocks of 8 values that share an exponent; the same as `bdforge/devices/formats/bfp16.py`, which says the rules.

#include <array>
#include <cstdint>

namespace bdforge {

constexpr std::int64_t block_values = 8, block_bytes = 9, tile_bytes = block_values * block_bytes;

using Block = std::array<std::uint8_t, block_bytes>;

/// Whether a block may hold them: no infinity, no NaN.
bool finite(const std::array<float, block_values>& values);
Block encode(const std::array<float, block_values>& values);
std::array<float, block_values> decode(const Block& block);

}  // namespace bdforge
