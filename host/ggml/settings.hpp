#pragma once
/// What users choose by variables, and what they are told.

#include <cstddef>
#include <string>

#include "bdforge/error.hpp"

namespace bdforge::ggml {

struct Settings {
    std::string design;    // BDFORGE_GGML_DESIGN: a built design's folder, or the image in it
    std::string device;    // BDFORGE_GGML_DEVICE: as of Device::open, "0" without
    std::size_t rows = 0;  // BDFORGE_GGML_ROWS: products of fewer are left to others; 0: as the device is
    bool counts = false;   // BDFORGE_GGML_COUNTS: whether a stream tells at its end what it did
};

/// BDFORGE_GGML_DEVICE.
std::string device_name();
/// ArgumentError names the variable, its value and what it may be.
Settings settings();

/// A line on stderr that begins with our name.
void say(const std::string& line);
/// The same, unless a line for `about` was said before.
void say_once(const std::string& about, const std::string& line);

}  // namespace bdforge::ggml
