#pragma once
#include <string>

namespace bdforge {

/// The first thing that an NPU needs of this machine and that is not below `root`: what, and how to mend it; "" when
/// all is there. The order and the advice are those of 'bdforge doctor' (Python's bdforge.runtime.toolchain.machine).
std::string missing_for_npu(const std::string& root = "/");

}  // namespace bdforge
