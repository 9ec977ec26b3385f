// zero_i32: clears one core tile of C before the first step of K.
//
// Contract: c is int32, m x n in any order, 64-byte aligned; m % 16 == 0, n % 32 == 0. Written only.
// No rounding, saturation or overflow is involved.
// Cost: one 512-bit store per cycle, m * n / 16 cycles (modelled, not measured).
#include <aie_api/aie.hpp>

#include "dims.h"
#include "loops.h"

extern "C" void zero_i32(int32_t *__restrict c) {
    constexpr unsigned lanes = 16;  // 512 bit
    const auto zeros = aie::zeros<int32, lanes>();
    event0();
    LOOP_MIN_ITERATIONS((DIM_M) * (DIM_N) / 16)
    for (unsigned i = 0; i < DIM_M * DIM_N / lanes; ++i) {
        aie::store_v(c, zeros);
        c += lanes;
    }
    event1();
}
