// What a core keeps of a row from chunk to chunk, as lanes of words in its memory.
#pragma once

#include "arch.h"

namespace row_state {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);

static inline aie::vector<int32, lanes> load(const int32 *state) {
    return aie::concat(aie::load_v<lanes / 2>(state), aie::load_v<lanes / 2>(state + lanes / 2));
}
static inline void store(int32 *state, const aie::vector<int32, lanes> &kept) {
    aie::store_v(state, kept.template extract<lanes / 2>(0));
    aie::store_v(state + lanes / 2, kept.template extract<lanes / 2>(1));
}

}  // namespace row_state
