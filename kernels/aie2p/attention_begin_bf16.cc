// attention_begin_bf16: a core takes up its next item: which one it is (kernels/include/attention.h).
//
// Contract. The state becomes that of no key seen; the item's queries are not needed yet.
//   parameters  words: 0 rounds (not read), 1 queries, 2 keys
//   round       from 0; row of the core's stream of keys, column of the core on it
// A unit is one KV head's pass: COLUMNS items, which share a stream of blocks. Items of a KV head are numbered by block
// of queries, then by heads of the group, HEADS at a time. Unit u is pass u / KV_HEADS, for KV head u % KV_HEADS; each
// round takes ROWS units, a stream each, the last and longest ones first; in every other round those of the second pass
// come before those of the first, so that no stream has the longer ones each time. What the last round lacks is filled
// up with units that others did, a pass that is short of items with its last one; a last block of queries moves back
// until it ends with them. With KV_SPLITS above 1 the columns of a stream have that many ranges of its blocks instead,
// of n the ones from n column / KV_SPLITS on, down to a whole one.
#include "../include/attention.h"

#if !defined(GROUP) || !defined(KV_HEADS) || !defined(COLUMNS) || !defined(ROWS)
#error "say -DGROUP (heads to a KV head), -DKV_HEADS, -DROWS and -DCOLUMNS"
#endif

namespace attention {

static_assert(GROUP % HEADS == 0, "HEADS of an item are all of a GROUP, or part of it");
static_assert(KV_SPLITS == 1 || COLUMNS == 1, "with KV_SPLITS the columns of a stream have one item in common");
constexpr int32 items_aside = GROUP / HEADS;  // of a block of queries

static inline int32 at_least(int32 x, int32 least) { return x < least ? least : x; }
static inline int32 at_most(int32 x, int32 most) { return x > most ? most : x; }

/// Where the block of queries number `block` begins.
static inline int32 first_query(int32 block, int32 queries) {
    return at_most(block * item_queries, at_least(queries - item_queries, 0));
}

/// Items of a KV head.
static inline int32 items_of(int32 queries) { return (queries + item_queries - 1) / item_queries * items_aside; }

/// The unit that a stream takes in a round.
static inline int32 unit_of(int32 round, int32 stream, int32 queries) {
    const int32 units = (items_of(queries) + COLUMNS - 1) / COLUMNS * KV_HEADS;
    const int32 first = at_least(units - (round + 1) * ROWS, 0), of_pass = at_most(KV_HEADS - first % KV_HEADS, ROWS);
    const int32 place = stream + (round & 1) * of_pass;
    return at_most(first + place - (place < ROWS ? 0 : ROWS), units - 1);
}

/// Blocks of keys that a pass gets, or a range of it: from state->block on.
static inline void take_item(State *state, int32 unit, int32 column) {
    const int32 queries = state->queries, keys = state->keys;
    const int32 first = unit / KV_HEADS * COLUMNS, last = at_most(first + COLUMNS, items_of(queries)) - 1;
    const int32 before = CAUSAL ? keys - queries : 0;
    int32 end = (keys + DIM_N - 1) / DIM_N;
    if (CAUSAL)
        end = at_most((before + first_query(last / items_aside, queries) + item_queries - 1) / DIM_N + 1, end);
    state->block = WINDOW ? at_least(before + first_query(first / items_aside, queries) + 1 - WINDOW, 0) / DIM_N : 0;
    state->blocks = end - state->block;
    if (KV_SPLITS > 1) {
        const int32 from = state->blocks * column / KV_SPLITS;
        state->blocks = state->blocks * (column + 1) / KV_SPLITS - from;
        state->block += from;
    }
    state->position = before + first_query(at_most(first + column, last) / items_aside, queries);
}

}  // namespace attention

extern "C" void attention_begin_bf16(int32 *__restrict words, const int32 *__restrict parameters, int32_t round,
                                     int32_t row, int32_t column) {
    using namespace attention;
    State *const state = reinterpret_cast<State *>(words);
    event0();
    state->queries = parameters[1];
    state->keys = parameters[2];
    take_item(state, unit_of(round, row, state->queries), column);
    for (unsigned i = 0; i < DIM_M; ++i) {
        state->power[i] = 0;
        state->offset[i] = 1;
    }
    const auto zeros = aie::zeros<int32, 16>();
    const auto begin = aie::broadcast<int32, 16>(float_bits(-1, scale.exponent - 14));
    for (unsigned i = 0; i < DIM_M; i += 2) {  // rows of two tiles
        aie::store_v(reinterpret_cast<int32 *>(state->begin + i), begin);
        aie::store_v(reinterpret_cast<int32 *>(state->sums + i), zeros);
    }
    event1();
}
