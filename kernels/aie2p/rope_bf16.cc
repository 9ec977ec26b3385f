// rope_bf16: rotary position embedding of a token's heads, TILE_ELEMENTS / HEAD_DIM rows of HEAD_DIM bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, t, y   bfloat16, V-byte aligned; y apart from x and t. x and y are TILE_ELEMENTS long, the token's row t of the
//             table HEAD_DIM: cosines c of HEAD_DIM / 2 angles, then their sines s.
//   HEAD_DIM % V == 0, TILE_ELEMENTS % HEAD_DIM == 0.
//   Pair i of a head is a = x[i], b = x[i + HEAD_DIM / 2], or a = x[2 i], b = x[2 i + 1] with -DNEIGHBOURS. y holds, in
//   the places of a and b, bf16(a c[i] - b s[i]) and bf16(b c[i] + a s[i]).
//   y is within 2^-8 of itself, 2^-16 (|a| + |b|) (|c[i]| + |s[i]|) and 2^-99 of these formulas; below 2^-100 it is 0.
//   OUTPUT_HEADS=20,5,5: heads are of so many groups, one behind the other, which TURNED=1,1,0 has in as many words; those
//   of a 0 are as if all angles were 0.
//   SCALED: rows x, t, s, c, y. y is that times the token's scale s and its group's scale c[g], floats at multiples of 4
//   bytes, and rounded once: within 2^-8 of itself and 2^-16 of |s c| (|a| + |b|) (|c[i]| + |s[i]|). s, c[g] and their products
//   are 0 or of magnitude 2^-90 to 2^90; terms are 0 or from 2^-90 on, and so are their products with those.
//   x and t are finite, and so are the sums. a, b, c, s are 0, or |x| from 2^-75 on and |t| from 2^-24: smaller ones may
//   count as 0.
//   Rounding: set to conv_even by every call, and stays.
//
// Without scales no sum is zero, whose sign the core does not tell: each starts at 2^-100 and an odd bit, which no product
// is, and c counts for c (1 + 2^-17), so that a c, of 16 bits, has another bit behind them and never equals b s. With scales
// what a zero's sign is does not matter, for its products are added to +0.
//
// Cost (modelled, not measured): V elements take two loads, six products and two stores, two conversions and two
//   selections of three operations each, neighbours four shuffles more: 6 or 10 cycles of the busiest slot. With scales
//   sixteen products, four differences and eight conversions: 35 or 41 cycles in machine code (counted).
#include "../include/arch.h"
#include "../include/loops.h"
#include "../include/row_scale.h"

#if !defined(TILE_ELEMENTS) || !defined(HEAD_DIM)
#error "say how long heads and a token are: -DHEAD_DIM=elements -DTILE_ELEMENTS=elements of all heads"
#endif
#ifndef OUTPUT_HEADS
#define OUTPUT_HEADS TILE_ELEMENTS / HEAD_DIM
#define TURNED 1
#endif

namespace rope {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
constexpr unsigned half = HEAD_DIM / 2;
constexpr unsigned heads[] = {OUTPUT_HEADS};
constexpr bool turns[] = {TURNED};
constexpr unsigned groups = sizeof(heads) / sizeof(heads[0]);
using Lanes = aie::vector<bfloat16, lanes>;
using Sums = aie::accum<accfloat, lanes>;

constexpr unsigned all() {
    unsigned sum = 0;
    for (unsigned one : heads) sum += one;
    return sum;
}

#ifdef NEIGHBOURS
constexpr unsigned step = 2 * lanes, other = lanes;
#else
constexpr unsigned step = lanes, other = half;
#endif

struct Pair {
    Lanes a, b;
};

static inline Pair load(const bfloat16 *__restrict x) {
    const Lanes first = aie::load_v<lanes>(x), second = aie::load_v<lanes>(x + other);
#ifdef NEIGHBOURS
    const auto [a, b] = aie::interleave_unzip(first, second, 1);
    return {a, b};
#else
    return {first, second};
#endif
}

static inline void store(bfloat16 *__restrict y, const Pair &found) {
#ifdef NEIGHBOURS
    const auto [first, second] = aie::interleave_zip(found.a, found.b, 1);
#else
    const auto &[first, second] = found;
#endif
    aie::store_v(y, first);
    aie::store_v(y + other, second);
}

#ifdef SCALED
#define GIVEN_SCALES const float *__restrict row, const float *__restrict of_group,
using Scale = row_values::Floats;

/// A vector's angles, and what results are multiplied with.
struct Angles {
    Lanes c, s;
    Scale scale;

    Sums begun(const Lanes &x) const { return aie::mac(aie::zeros<accfloat, lanes>(), x, c); }
    Lanes rounded(const Sums &sums) const {
        return row_values::product(row_values::parts(sums), scale).template to_vector<bfloat16>();
    }
};
#else
#define GIVEN_SCALES
constexpr int32 least = 0x0d800001;    // 2^-100 (1 + 2^-23)
constexpr int16 least_kept = 0x0d81;  // bfloat16's bits of the least number above 2^-100
using Scale = Lanes;                  // what c counts for beside itself

struct Angles {
    Lanes c, s;
    Scale more;

    Sums begun(const Lanes &x) const {
        const Sums start(aie::broadcast<int32, lanes>(least).template cast_to<float>());
        return aie::mac(aie::mac(start, x, c), x, more);
    }
    Lanes rounded(const Sums &sums) const {
        const Lanes y = sums.template to_vector<bfloat16>();
        const auto size = aie::bit_and(y.template cast_to<int16>(), aie::broadcast<int16, lanes>(0x7fff));
        return aie::select(y, aie::zeros<bfloat16, lanes>(), aie::lt(size, least_kept));
    }
};
#endif

static inline Pair turn(const Pair &x, const Angles &by) {
    const Sums left = aie::msc(by.begun(x.a), x.b, by.s), right = aie::mac(by.begun(x.b), x.a, by.s);
    return {by.rounded(left), by.rounded(right)};
}

}  // namespace rope

extern "C" void rope_bf16(const bfloat16 *__restrict x, const bfloat16 *__restrict t,
                          GIVEN_SCALES bfloat16 *__restrict y) {
    using namespace rope;
    static_assert(HEAD_DIM > 0 && half % lanes == 0, "half a head must be whole vectors");
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % HEAD_DIM == 0, "a token must be whole heads");
    static_assert(all() == TILE_ELEMENTS / HEAD_DIM, "a token must be all groups' heads");
    static_assert(sizeof(turns) == groups, "say of each group whether it is turned");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    for (unsigned group = 0, first = 0; group < groups; first += heads[group++] * HEAD_DIM) {
#ifdef SCALED
        const Scale scale = row_scale::factor(row, of_group + group);
#endif
        for (unsigned i = 0; i < half; i += lanes) {
            const Lanes c = turns[group] ? aie::load_v<lanes>(t + i) : row_values::ones();
            const Lanes s = turns[group] ? aie::load_v<lanes>(t + half + i) : aie::zeros<bfloat16, lanes>();
#ifndef SCALED
            const Scale scale =
                aie::mul(c, aie::broadcast<bfloat16, lanes>(0x1p-17F)).template to_vector<bfloat16>();
#endif
            const Angles angles{c, s, scale};
            LOOP_MIN_ITERATIONS(1)
            for (unsigned head = 0; head < heads[group] * HEAD_DIM; head += HEAD_DIM) {
                const unsigned at = first + head + i / lanes * step;
                store(y + at, turn(load(x + at), angles));
            }
        }
    }
    event1();
}
