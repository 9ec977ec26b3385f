// zero_i16: clears one core tile of C before the first step of K.
//
// Contract: c is int16, m x n in any order, 32-byte aligned and a multiple of 32 bytes. Written only.
// No rounding, saturation or overflow is involved.
// Cost: one 256-bit store per cycle, m * n / 16 cycles (modelled, not measured).
#include "../include/zero.h"
#include "arch.h"

extern "C" void zero_i16(int16_t *__restrict c) { clear(c); }
