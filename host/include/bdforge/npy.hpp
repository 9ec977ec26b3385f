#pragma once
/// Matrices of int8 in NumPy's `.npy` files (format versions 1.0 to 3.0).

#include <cstdint>
#include <string>
#include <vector>

namespace bdforge {

/// A row-major matrix.
struct Int8Matrix {
    std::size_t rows;
    std::size_t columns;
    std::vector<std::int8_t> values;
};

/// Reads a file that `numpy.save` wrote; FileError when it cannot be read or is no such file, WeightError when it
/// holds something else than a row-major int8 matrix, or less of it than it says.
Int8Matrix load_npy(const std::string& path);

}  // namespace bdforge
