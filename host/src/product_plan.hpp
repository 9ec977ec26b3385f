#pragma once
// How a product of floats is run: by which design, as itself or as its transpose, and what that takes of its factors.

#include <vector>

#include "bdforge/floats.hpp"

namespace bdforge {

/// The orders of a design's operands: whether lines are columns.
struct OperandOrders {
    bool a, b, c;
    bool narrow;  // C is bf16
};
/// ArgumentError where it is no GEMM of bf16 with results of f32 or bf16.
OperandOrders orders_of(const Design& design);

/// How a product is run: by which design, and whether as its transpose.
struct ProductPlan {
    std::size_t design;
    bool swapped;
    std::size_t elements_turned;
};

/// What an operand of a job is of: a factor, and its matrix' size in the program's memory.
struct MatrixSource {
    Factor factor;
    std::size_t rows, columns;  // of the operand
};

/// The product as the design sees it.
struct ProductOperands {
    MatrixSource a, b;
    bool c_turned;
};
ProductOperands operands_of(const FloatProduct& product, bool swapped);

/// The plan with the fewest elements turned; ArgumentError where no design takes the sizes.
ProductPlan plan_product(const std::vector<Design>& designs, const std::vector<OperandOrders>& orders,
                         const FloatProduct& product);

}  // namespace bdforge
