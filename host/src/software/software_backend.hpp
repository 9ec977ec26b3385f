#pragma once
#include "bdforge/backend.hpp"

namespace bdforge {

/// A device without an NPU: executes instruction streams on the host, exactly and slowly; its times say nothing.
std::shared_ptr<Backend> open_software();

}  // namespace bdforge
