#pragma once
/// Reading files whole, with errors that say what to do.

#include <cstddef>
#include <string>

namespace bdforge {

/// Content of a file; FileError when it cannot be read or is larger than `limit_bytes`. `next_step` ends the message.
std::string read_file(const std::string& path, std::size_t limit_bytes, const std::string& next_step);

/// Folder of `path` with its slash, "" when it has none.
std::string folder_of(const std::string& path);

/// SHA-256 (FIPS 180-4) of `content` in hexadecimal.
std::string sha256(const std::string& content);

}  // namespace bdforge
