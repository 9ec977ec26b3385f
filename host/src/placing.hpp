#pragma once
#include "bdforge/manifest.hpp"
#include "bdforge/packing.hpp"
#include "generator.hpp"

namespace bdforge {

/// Where each weight of a K x N matrix stands in packed B; the twin of Python's `bdforge.runtime.packed_weights`.
/// The last slab of K and the last n-tile move back until they end with the matrix, so that A and C need no padding;
/// rows that the slab before holds too have weight 0, or they would count twice.
struct Placing {
    Places rows;
    Places columns;
};

/// For sizes that `Generator::check` took.
Placing placing(const generator::Layouts& layouts, std::size_t K, std::size_t N);

/// The tile that `pack` makes for a design.
PackedTile packed_tile(const Manifest& manifest);

/// B as a user has it: lines `stride` elements apart, rows where B is packed.
struct BMatrix {
    const void* data;
    std::size_t K, N, stride;
};

/// Writes B as the array reads it, in `generator.b_bytes(K, N)` bytes. ArgumentError for a type that only Python packs,
/// WeightError as `pack`.
void write_b(const Manifest& manifest, const Generator& generator, const BMatrix& b, void* out);

}  // namespace bdforge
