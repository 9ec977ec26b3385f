#pragma once
/// Files whole, with errors that say what to do; arrays in NumPy's `.npy` files (format versions 1.0 to 3.0).

#include <cstddef>
#include <string>
#include <vector>

namespace bdforge {

/// Content of a file; FileError when it cannot be read or is larger than `limit_bytes`. `next_step` ends the message.
std::string read_file(const std::string& path, std::size_t limit_bytes, const std::string& next_step);

/// Folder of `path` with its slash, "" when it has none.
std::string folder_of(const std::string& path);

/// SHA-256 (FIPS 180-4) of `content` in hexadecimal.
std::string sha256(const std::string& content);

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
