#include "bdforge/error.hpp"
#include "backend.hpp"

namespace bdforge {

std::shared_ptr<Backend> open_xrt(const std::string& name) {
    throw DeviceError(
        "device " + name +
        ": this library was built without XRT; install libxrt-dev, build it again (device emulated needs none)");
}

std::string xrt_version() { return "none"; }

}  // namespace bdforge
