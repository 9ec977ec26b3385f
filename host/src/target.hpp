#pragma once
#include "bdforge/json.hpp"
#include "bdforge/target.hpp"

namespace bdforge {

/// A manifest's `sequence.target`; ManifestError names the first thing that is missing or wrong.
generator::Target read_target(const JsonView& target);

}  // namespace bdforge
