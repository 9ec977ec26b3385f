// aie::print of the API: nothing, as on the device without a simulator.
#pragma once

#include "aie.hpp"

namespace aie {

template <class... X> void print(const X &...) {}
template <class... X> void print_fixed(const X &...) {}

}  // namespace aie
