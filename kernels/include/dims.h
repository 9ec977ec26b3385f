// What the build says of a core's tile: -DDIM_M -DDIM_K -DDIM_N, and -DDIM_RHO for asymmetric tile buffering,
// -DA_TRANSPOSED and so on for its operands.
//
// C is m x n and stays in the core over all steps of K; B is k x n. A is m/rho x k, so that a kernel is called rho
// times per step of K: call `part` (0 to rho - 1) updates rows part * m/rho ... of C. When rho is 1 kernels take no
// `part`.
#pragma once

#include <cstdint>

#if !defined(DIM_M) || !defined(DIM_K) || !defined(DIM_N)
// No default: a mismatch with the MLIR would give wrong results and no error.
#error "define the tile with -DDIM_M=m -DDIM_K=k -DDIM_N=n"
#endif
#ifndef DIM_RHO
#define DIM_RHO 1
#endif

static_assert(DIM_M > 0 && DIM_K > 0 && DIM_N > 0, "m, k and n must be positive");
static_assert(DIM_RHO > 0 && DIM_M % DIM_RHO == 0, "m must be a multiple of rho");

constexpr unsigned tile_rows = DIM_M / DIM_RHO;  // of the A tile, and of C in one call
constexpr unsigned tile_depth = DIM_K;
constexpr unsigned tile_columns = DIM_N;  // of B and C

// Passes over C, before the first step of K and after the last one: over all of it, or with C_IN_PARTS over one of rho
// parts, so that the others stay in use.
#if defined(C_IN_PARTS) && DIM_RHO > 1
#define PASS_PARAMETER , int32_t pass
constexpr unsigned pass_rows = tile_rows;
#else
#define PASS_PARAMETER
constexpr int32_t pass = 0;
constexpr unsigned pass_rows = DIM_M;
#endif
constexpr unsigned c_elements = pass_rows * DIM_N;  // of one pass

#if DIM_RHO == 1
#define PART_PARAMETER
constexpr int32_t part = 0;
#else
#define PART_PARAMETER , int32_t part
#endif

// Operands whose micro-tiles lie column by column.
#ifdef A_TRANSPOSED
constexpr bool a_transposed = true;
#else
constexpr bool a_transposed = false;
#endif
#ifdef B_TRANSPOSED
constexpr bool b_transposed = true;
#else
constexpr bool b_transposed = false;
#endif
#ifdef C_TRANSPOSED
constexpr bool c_transposed = true;
#else
constexpr bool c_transposed = false;
#endif

#define ALWAYS_INLINE inline __attribute__((always_inline))
