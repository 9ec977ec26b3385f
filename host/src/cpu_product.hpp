#pragma once
#include "bdforge/floats.hpp"

namespace bdforge {

/// The product on the processor, in f32, on all its threads.
void compute_on_cpu(const FloatProduct& product);

}  // namespace bdforge
