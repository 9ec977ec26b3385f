#pragma once
/// A model's layers on the array.

#include <string>
#include <vector>

#include "bdforge/bdforge.hpp"
#include "model.hpp"

namespace bdforge::generate {

/// All layers, and the model's end, packed for built compositions, on the device that BDFORGE_GGML_DEVICE names. Any bdforge::Error; ModelError
/// for a matrix of several scales.
Layers array_layers(const Model& model, const std::vector<std::string>& designs, std::size_t threads);

}  // namespace bdforge::generate
