// quantise_largest_f32: the largest number of a row, chunk by chunk of TILE_ELEMENTS float32.
//
// Contract. As quantise_f32 has it, with TILE_ELEMENTS of the row at a time, in order; operands as of
//   quantise_largest_bf16, of float32.
#include "../include/quantise_floats.h"

extern "C" void quantise_largest_f32(const float *__restrict given, int8 *__restrict, int32 *__restrict state,
                                     int32 chunk) {
    using namespace quantise_floats;
    event0();
    const Largest before = chunk == 0 ? aie::zeros<int32, lanes>() : row_state::load(state);
    row_state::store(state, larger(before, given));
    event1();
}
