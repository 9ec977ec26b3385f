// rope_bf16: rotary position embedding of a token's heads, TILE_ELEMENTS / HEAD_DIM rows of HEAD_DIM bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, t, y   bfloat16, V-byte aligned; y apart from x and t. x and y are TILE_ELEMENTS long, the token's row t of the
//             table HEAD_DIM: cosines c of HEAD_DIM / 2 angles, then their sines s.
//   HEAD_DIM % V == 0, TILE_ELEMENTS % HEAD_DIM == 0.
//   Pair i of a head is a = x[i], b = x[i + HEAD_DIM / 2], or a = x[2 i], b = x[2 i + 1] with -DNEIGHBOURS. y holds, in
//   the places of a and b, bf16(a c[i] - b s[i]) and bf16(b c[i] + a s[i]).
//   y is within 2^-8 of itself, 2^-16 (|a| + |b|) (|c[i]| + |s[i]|) and 2^-99 of these formulas; below 2^-100 it is 0.
//   x and t are finite, and so are the sums. a, b, c, s are 0, or |x| from 2^-75 on and |t| from 2^-24: smaller ones may
//   count as 0.
//   Rounding: set to conv_even by every call, and stays.
//
// No sum is zero, whose sign the core does not tell: each starts at 2^-100 and an odd bit, which no product is, and c
// counts for c (1 + 2^-17), so that a c, of 16 bits, has another bit behind them and never equals b s.
//
// Cost (modelled, not measured): V elements take two loads, six products and two stores, two conversions and two
//   selections of three operations each, neighbours four shuffles more: 6 or 10 cycles of the busiest slot.
#include "../include/arch.h"
#include "../include/loops.h"

#if !defined(TILE_ELEMENTS) || !defined(HEAD_DIM)
#error "say how long heads and a token are: -DHEAD_DIM=elements -DTILE_ELEMENTS=elements of all heads"
#endif

namespace rope {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
constexpr unsigned half = HEAD_DIM / 2;
using Lanes = aie::vector<bfloat16, lanes>;
using Sums = aie::accum<accfloat, lanes>;
constexpr int32 least = 0x0d800001;    // 2^-100 (1 + 2^-23)
constexpr int16 least_kept = 0x0d81;  // bfloat16's bits of the least number above 2^-100

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

static inline Lanes without_least(const Sums &sums) {
    const Lanes y = sums.template to_vector<bfloat16>();
    const auto size = aie::bit_and(y.template cast_to<int16>(), aie::broadcast<int16, lanes>(0x7fff));
    return aie::select(y, aie::zeros<bfloat16, lanes>(), aie::lt(size, least_kept));
}

}  // namespace rope

extern "C" void rope_bf16(const bfloat16 *__restrict x, const bfloat16 *__restrict t, bfloat16 *__restrict y) {
    using namespace rope;
    static_assert(HEAD_DIM > 0 && half % lanes == 0, "half a head must be whole vectors");
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % HEAD_DIM == 0, "a token must be whole heads");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    const Sums start(aie::broadcast<int32, lanes>(least).template cast_to<float>());
    for (unsigned i = 0; i < half; i += lanes) {
        const Lanes c = aie::load_v<lanes>(t + i), s = aie::load_v<lanes>(t + half + i);
        const Lanes more = aie::mul(c, aie::broadcast<bfloat16, lanes>(0x1p-17F)).template to_vector<bfloat16>();
        LOOP_MIN_ITERATIONS(TILE_ELEMENTS / HEAD_DIM)
        for (unsigned head = 0; head < TILE_ELEMENTS; head += HEAD_DIM) {
            const unsigned at = head + i / lanes * step;
            const auto [a, b] = load(x + at);
            const Sums left = aie::msc(aie::mac(aie::mac(start, a, c), a, more), b, s);
            const Sums right = aie::mac(aie::mac(aie::mac(start, b, c), b, more), a, s);
            store(y + at, {without_least(left), without_least(right)});
        }
    }
    event1();
}
