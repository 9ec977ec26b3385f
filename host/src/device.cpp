#include <algorithm>
#include <cctype>
#include <glob.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "backend.hpp"
#include "bdforge/design.hpp"

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

std::shared_ptr<Context> Backend::open(const Image& image) {
    const auto file = image.manifest.files.find("xclbin");
    if (image.full_elf || file == image.manifest.files.end() || file->second.sha256.empty()) return load(image);
    const std::string& design = image.manifest.design;
    const std::scoped_lock lock(guard_);
    Opened& opened = by_image_[file->second.sha256];
    std::shared_ptr<Context> found = opened.context.lock();
    if (found && !opened.designs.contains(design) && found->admits(image)) {
        opened.designs.insert(design);
        return found;
    }
    found = load(image);
    opened = {found, {design}};
    return found;
}

std::string Device::name() const { return backend_->name(); }
bool Device::is_npu() const { return backend_->is_npu(); }

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

namespace {

constexpr rlim_t heap_bytes = rlim_t{64} << 20;  // XRT 2.25's libxrt_driver_xdna locks a heap of this size

std::vector<std::string> files(const std::string& pattern) {
    glob_t found{};
    std::vector<std::string> paths;
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    return paths;
}

bool locks_enough() {
    rlimit limit{};
    return getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > heap_bytes;
}

}  // namespace

std::string missing_for_npu(const std::string& root) {
    if (files(root + "sys/module/amdxdna").empty())
        return "the kernel driver amdxdna is not loaded; Linux 6.14 or newer has it: sudo modprobe amdxdna (older: "
               "build "
               "github.com/amd/xdna-driver)";
    const std::vector<std::string> nodes = files(root + "dev/accel/accel*");
    if (nodes.empty())
        return "there is no /dev/accel/accel*; load the driver; check that the NPU is enabled in the firmware";
    for (const std::string& node : nodes) {
        if (access(node.c_str(), R_OK | W_OK) != 0)
            return "cannot open " + node + "; sudo usermod -aG render $USER, then log in again";
    }
    if (!locks_enough())
        return "this process may not lock the 64 MiB that XRT locks; sudo prlimit --memlock=unlimited --pid $$ in its "
               "shell, 'bdforge doctor' says how to make that stay";
    return "";
}

}  // namespace bdforge
