#pragma once
// What users read of a device: its faults, and with BDFORGE_DEVICE_TRACE what programs ask of it, in the file that
// BDFORGE_DEVICE_LOG names.

#include <string>

namespace npu {

/// A fault: a line on stderr, which names the file that holds the whole text.
void report(const std::string& what, const std::string& text);
/// A line in the file, if anybody wants it.
void trace(const std::string& line);

}  // namespace npu
