// zero_i32: clears one core tile of C before the first step of K.
//
// Contract: c is int32, m x n in any order, V-byte aligned and a multiple of V bytes. Written only.
// V = 32 on AIE2, 64 on AIE2P (include/arch.h). No rounding, saturation or overflow is involved.
// Cost: one store of a vector per cycle, 4 * m * n / V cycles (modelled, not measured).
#include "../include/zero.h"

extern "C" void zero_i32(int32_t *__restrict c PASS_PARAMETER) { clear(c + pass * c_elements); }
