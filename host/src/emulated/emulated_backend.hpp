#pragma once
#include "bdforge/backend.hpp"

namespace bdforge {

/// A device without an NPU: instruction streams run on the emulated array that bdforge's device server holds, exactly
/// and slowly; its times say nothing. DeviceError when no server can be reached or started.
std::shared_ptr<Backend> open_emulated();

}  // namespace bdforge
