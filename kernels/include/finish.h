// Integer results of int32 sums: bias, unscale, shift and round, saturate, ReLU (epilogue.h), in place.
//
// SHIFT and ROUNDING as in accumulator.h; the division by 4^j of FIELD_SCALED is part of the same shift, so that
// rounding happens once. With BIAS the kernel's first argument is an int32 per column, added to the sums.
#pragma once

#include <type_traits>

#include "accumulator.h"
#include "arch.h"
#include "epilogue.h"

#ifdef BIAS
#define BIAS_PARAMETER const int32_t *bias,
#else
#define BIAS_PARAMETER
constexpr const int32_t *bias = nullptr;
#endif

/// C tiles of micro-tiles R x T, finished as elements Out. Nothing is __restrict: results replace sums that were read.
template <unsigned R, unsigned T, class Out> struct Finish {
    static constexpr unsigned step = R * T;
    // A shift of 32-bit lanes into 32-bit lanes goes through 64-bit accumulators, from acc32 it would be ignored.
    static constexpr bool wide = sizeof(Out) == sizeof(int32);
    static constexpr unsigned lanes = wide ? 16 : step;

    const int32 *bias;
    const int32 *c;
    Out *out;

    ALWAYS_INLINE void rows(unsigned) {}

    template <unsigned Field> ALWAYS_INLINE void micro_tile(unsigned column, unsigned first) {
        if constexpr (wide && SHIFT + 2 * Field == 0 && !biased && !relu)
            return;
        aie::vector<int32, step> added;
        if constexpr (biased)
            added = scaled<Field>(spread_columns<R, T>(bias + column * T));
        for (unsigned i = 0; i < step / lanes; ++i) {
            auto sums = aie::load_v<lanes>(c + first + i * lanes);
            if constexpr (biased)
                sums = aie::add(sums, added.template extract<lanes>(i));
            aie::store_v(out + first + i * lanes, narrowed<SHIFT + 2 * Field>(sums));
        }
    }

  private:
    template <unsigned Field>
    static ALWAYS_INLINE aie::vector<int32, step> scaled(const aie::vector<int32, step> &v) {
        if constexpr (Field > 0)
            return aie::upshift(v, 2 * Field);
        else
            return v;
    }

    template <int Shift>
    static ALWAYS_INLINE aie::vector<Out, lanes> narrowed(const aie::vector<int32, lanes> &sums) {
        using Tag = std::conditional_t<wide, acc64, acc32>;
        if constexpr (wide && Shift == 0)
            return rectified(sums);
        else
            return rectified(aie::accum<Tag, lanes>(sums).template to_vector<Out>(Shift));
    }
};

/// The whole kernel.
template <unsigned R, unsigned T, class Out> static ALWAYS_INLINE void finish(const int32 *bias, int32 *c) {
    set_narrowing_modes();
    event0();
    for_micro_tiles<R, T>(Finish<R, T, Out>{bias, c, reinterpret_cast<Out *>(c)});
    event1();
}
