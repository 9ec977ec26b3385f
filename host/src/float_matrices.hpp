#pragma once
/// Float matrices on the processor, large ones on all its threads: copies between a program's floats and what the array takes
/// and gives, bf16 or f32, as they stand or transposed; products, and by which design and how one is run there.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "bdforge/floats.hpp"
#include "number_formats.hpp"

// The widest vectors that the processor has, chosen when the program starts: one function, compiled for each.

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_UNDEFINED__) && !defined(__SANITIZE_THREAD__)
#define BDFORGE_WIDEST __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define BDFORGE_WIDEST
#endif

namespace bdforge {

/// A matrix in memory: `rows` of `columns` elements, `stride` elements from row to row.
template <class Element>
struct Grid {
    Element* data;
    std::size_t rows, columns, stride;
};

/// to = from, or its transpose where `turned` (`from` then has `to`'s columns as rows). Rounds to nearest, ties to even;
/// NaN stays NaN.
void copy_in(const Grid<const float>& from, const Grid<Bf16>& to, bool turned);

/// What becomes of results on their way back: `add` to what is there; plus `bias`, a float for each column, null for none.
struct Results {
    bool add = false;
    const float* bias = nullptr;
};

/// to = from, or its transpose where `turned`.
void copy_out(const Grid<const float>& from, const Grid<float>& to, bool turned, const Results& results = {});
void copy_out(const Grid<const Bf16>& from, const Grid<float>& to, bool turned, const Results& results = {});

/// Calls work(first, last) for parts of [0, count), at the same time where `bytes` of memory are worth the threads. `work`
/// must not throw.
void in_parts(std::size_t count, std::size_t bytes, const std::function<void(std::size_t, std::size_t)>& work);

/// The product on the processor, in f32.
void compute_on_cpu(const FloatProduct& product);

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
