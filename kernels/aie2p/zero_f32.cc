// zero_f32: clears one core tile of C before the first step of K.
//
// Contract: c is float32, m x n in any order, 64-byte aligned and a multiple of 64 bytes. Written only.
// No rounding, saturation or overflow is involved.
// Cost: one 512-bit store per cycle, m * n / 16 cycles (modelled, not measured).
#include "../include/zero.h"

extern "C" void zero_f32(float *__restrict c) { clear(c); }
