#include "bdforge/device.hpp"

#include <algorithm>
#include <cctype>

#include "emulated/emulated_backend.hpp"
#include "xrt_backend.hpp"

namespace bdforge {
namespace {

/// Parts of the names that the driver amdxdna gives, as mlir-aie's test configuration lists them.
struct NamePart {
    const char* part;
    const char* array;
};
constexpr NamePart name_parts[] = {
    {"npu1", "npu1"}, {"phoenix", "npu1"}, {"hawk point", "npu1"}, {"npu4", "npu2"},
    {"npu5", "npu2"}, {"npu6", "npu2"},    {"strix", "npu2"},      {"krackan", "npu2"},
};

}  // namespace

Device Device::open(const std::string& name) {
    const bool emulated = name == "emulated" || name == "software";  // what it was called before
    return Device(emulated ? open_emulated() : open_xrt(name));
}

bool has_array(const std::string& device_name, const std::string& mlir_device) {
    std::string lower = device_name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::string array = mlir_device.substr(0, mlir_device.find('_'));
    return std::any_of(std::begin(name_parts), std::end(name_parts), [&](const NamePart& known) {
        return lower.find(known.part) != std::string::npos && array == known.array;
    });
}

}  // namespace bdforge
