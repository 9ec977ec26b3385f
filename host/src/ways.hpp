#pragma once
// How a product of floats is run: by which design, as itself or as its transpose, and what that takes of its factors.

#include <vector>

#include "bdforge/floats.hpp"

namespace bdforge {

/// The orders of a design's operands: whether lines are columns.
struct Orders {
    bool a, b, c;
    bool narrow;  // C is bf16
};
/// ArgumentError where it is no GEMM of bf16 with results of f32 or bf16.
Orders orders_of(const Design& design);

/// How a product is run: by which design, and whether as its transpose.
struct Way {
    std::size_t design;
    bool swapped;
    std::size_t elements_turned;
};

/// What an operand of a job is of: a factor, and its matrix' size in the program's memory.
struct Source {
    Factor factor;
    std::size_t rows, columns;  // of the operand
};

/// The product as the design sees it.
struct Seen {
    Source a, b;
    bool c_turned;
};
Seen seen(const FloatProduct& product, bool swapped);

/// The way with the fewest elements turned; ArgumentError where no design takes the sizes.
Way best_way(const std::vector<Design>& designs, const std::vector<Orders>& orders, const FloatProduct& product);

}  // namespace bdforge
