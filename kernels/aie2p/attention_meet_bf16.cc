// attention_meet_bf16: whether results of two ranges of keys are relative to different M (kernels/include/attention.h).
//
// Contract. before, words: states of the range before and of the own one. The own has_moved is 1 where a row's powers j
//   differ, else 0. Those of rows that have seen no key are 0.
#include "../include/attention.h"

extern "C" void attention_meet_bf16(const int32 *__restrict before, int32 *__restrict words) {
    using namespace attention;
    const int32 *const theirs = reinterpret_cast<const State *>(before)->power;
    State *const state = reinterpret_cast<State *>(words);
    event0();
    uint32 differ = 0;
    for (unsigned i = 0; i < DIM_M; i += 16)
        differ |= aie::neq(aie::load_v<16>(theirs + i), aie::load_v<16>(state->power + i)).count();
    state->has_moved = differ != 0;
    event1();
}
