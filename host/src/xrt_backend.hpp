#pragma once
#include <memory>
#include <string>

#include "bdforge/backend.hpp"

namespace bdforge {

/// An NPU by XRT's index ("0") or PCI address ("0000:c5:00.1"); DeviceError when there is none, or no XRT was built in.
std::shared_ptr<Backend> open_xrt(const std::string& name);

/// XRT's version as it was compiled in, "none" without XRT.
std::string xrt_version();

}  // namespace bdforge
