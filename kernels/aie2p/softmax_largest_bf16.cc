// softmax_largest_bf16: the largest number of a row of ROW_ELEMENTS, chunk by chunk of TILE_ELEMENTS bfloat16.
//
// Contract. As softmax_bf16 has it, with TILE_ELEMENTS of the row at a time; ROW_ELEMENTS % TILE_ELEMENTS == 0.
//   given     a chunk of x.
//   made      room for a chunk of y; not used.
//   state     4 V bytes, V-byte aligned; they stay from a row's first chunk to its results.
//   chunk     0 for the first one of a row.
#include "../include/softmax.h"

extern "C" void softmax_largest_bf16(const bfloat16 *__restrict given, bfloat16 *__restrict, int32 *__restrict state,
                                     int32 chunk) {
    using namespace softmax;
    begin();
    event0();
    bfloat16 *kept = largest_at(state);
    aie::store_v(kept, larger(chunk == 0 ? lowest() : Lanes(aie::load_v<lanes>(kept)), given));
    event1();
}
