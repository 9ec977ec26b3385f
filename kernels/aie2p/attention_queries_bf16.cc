// attention_queries_bf16: a core keeps a pair of rows of tiles of its item's queries (kernels/include/attention.h).
//
// Contract. given holds the queries, those of each pair behind QUERIES_FROM elements of something else; those of the pair
// go to q, and its sums, where given may lie, become 0.
#include "../include/attention.h"

#ifndef QUERIES_FROM
#define QUERIES_FROM 0
#endif

extern "C" void attention_queries_bf16(const bfloat16 *given, bfloat16 *__restrict q, float *o, int32_t pair) {
    using namespace attention;
    event0();
    given += pair * (QUERIES_FROM + pair_elements) + QUERIES_FROM;
    q += pair * pair_elements;
    o += pair * pair_elements;
    LOOP_MIN_ITERATIONS(pair_elements / 32)
    for (unsigned i = 0; i < pair_elements; i += 32)
        aie::store_v(q + i, aie::load_v<32>(given + i));
    const auto nothing = aie::zeros<float, 16>();
    LOOP_MIN_ITERATIONS(pair_elements / 16)
    for (unsigned i = 0; i < pair_elements; i += 16)
        aie::store_v(o + i, nothing);
    event1();
}
