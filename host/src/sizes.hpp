#pragma once
// Sizes by name as parameters of a design's sequence program.

#include <cstdint>
#include <optional>
#include <vector>

#include "state.hpp"

namespace bdforge {

/// Those that are given, and 0 for leading dimensions that are not. ArgumentError for names that are no parameters.
std::vector<std::optional<std::int64_t>> some_parameters(const DesignState& design, const Sizes& sizes);

/// All of them; ArgumentError for one that is missing.
generator::Parameters all_parameters(const DesignState& design, const Sizes& sizes);

/// ArgumentError where an operand depends on sizes that are not given.
void require_known(const DesignState& design, const generator::Operand& operand,
                   const generator::detail::Values& values);

}  // namespace bdforge
