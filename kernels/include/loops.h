// Loop hints for Peano, placed directly before a `for`; nothing elsewhere.
#pragma once

#if defined(__AIECC__)
#define BDFORGE_PRAGMA(text) _Pragma(#text)
// A promise: a loop that runs fewer times is undefined behaviour. Derive n from DIM_M, DIM_K, DIM_N.
#define LOOP_MIN_ITERATIONS(n) BDFORGE_PRAGMA(clang loop min_iteration_count(n))
#define LOOP_NO_UNROLL BDFORGE_PRAGMA(clang loop unroll(disable))
#define LOOP_UNROLL BDFORGE_PRAGMA(clang loop unroll(full))
#else
#define LOOP_MIN_ITERATIONS(n)
#define LOOP_NO_UNROLL
#define LOOP_UNROLL
#endif
