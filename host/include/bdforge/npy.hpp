#pragma once
/// Arrays in NumPy's `.npy` files (format versions 1.0 to 3.0).

#include <cstddef>
#include <string>
#include <vector>

namespace bdforge {

/// A row-major array of one or two axes. `type` is NumPy's, such as "|i1" or "<f4", whose last digits are its bytes.
struct NpyArray {
    std::string type;
    std::vector<std::size_t> shape;
    std::vector<std::byte> bytes;
};

/// Reads a file that `numpy.save` wrote; FileError when it cannot be read or is no such file, WeightError when it
/// holds something else than such an array, or less of it than it says.
NpyArray load_npy(const std::string& path);

/// Writes a file that `numpy.load` reads; FileError when it cannot.
void save_npy(const std::string& path, const NpyArray& array);

}  // namespace bdforge
