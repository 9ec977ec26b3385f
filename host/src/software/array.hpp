#pragma once
#include "controller.hpp"

namespace bdforge::software {

/// Computes what the array makes of the controller's streams: every core's tiles of C, exactly, in no modelled time.
/// RunError when streams and parameters do not fit together, or B holds code 3.
void compute(const Facts& facts, Controller& controller);

}  // namespace bdforge::software
