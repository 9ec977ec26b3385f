// quantise_largest_bf16: the largest number of a row, chunk by chunk of TILE_ELEMENTS bfloat16.
//
// Contract. As quantise_bf16 has it, with TILE_ELEMENTS of the row at a time, in order.
//   given     a chunk of x.
//   made      not used.
//   state     2 V bytes, V-byte aligned; they stay from a row's first chunk to its results.
//   chunk     0 for the first one of a row.
#include "../include/quantise.h"

extern "C" void quantise_largest_bf16(const bfloat16 *__restrict given, int8 *__restrict, int32 *__restrict state,
                                      int32 chunk) {
    using namespace quantise;
    event0();
    int16 *kept = reinterpret_cast<int16 *>(state);
    const Largest before = chunk == 0 ? aie::zeros<int16, lanes>() : Largest(aie::load_v<lanes>(kept));
    aie::store_v(kept, larger(before, given));
    event1();
}
