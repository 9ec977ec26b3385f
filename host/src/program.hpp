#pragma once
#include "bdforge/json.hpp"
#include "bdforge/program.hpp"

namespace bdforge {

/// The program and the target of a manifest's `sequence`. ManifestError names the first thing that is missing, wrong or
/// unknown; what is amiss between its parts `generator::check` finds.
generator::Design read_sequence(const JsonView& sequence);

}  // namespace bdforge
