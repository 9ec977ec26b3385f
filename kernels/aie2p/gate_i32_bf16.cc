// gate_i32_bf16: makes bfloat16 results f(gate) * up of the int32 sums of two matrices in one core tile of C, in place.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   scales, core_row   only when FUNCTION is silu, as of finish_i32_bf16, which needs SCALE and ARRAY_ROWS too; n scales of
//       columns, in the order of c's columns.
//   c   int32, m x n, micro-tiled [m/R][n/8][R][8] (inside column by column when C_TRANSPOSED), V-byte aligned. Column
//       blocks of 8 are gate's and up's in turn. The m x n/2 results replace it from its first byte on, dense, in the
//       order [m/R][n/16][R][8]. Once per C tile, after the last step of K.
//   m % R == 0, n % 16 == 0; n % 32 == 0 when FIELD_SCALED, which says that column block 4 q + j of c is scaled by 4^j.
//   FUNCTION = relu2   result = max(gate, 0)^2 * up of the sums as they are, within (2^-8 + 2^-11) |result|; +0 where it is 0.
//              silu    result = bf16(bf16(g * s) * u), s = bf16(sigmoid(g)) of include/sigmoid.h, with g and u the scaled sums
//                      as finish_i32_bf16 makes them.
//   Range of relu2: sums are below 2^31 and results integers, so they are 0 or from 1 to 2^93: no float overflows, and
//       parts of 2^-16 of them are normal numbers.
//   Rounding: set to conv_even by every call, saturation to none, and stay; machine code of relu2 leaves symmetric_floor.
//
// relu2 multiplies numbers of two bfloat16 parts, each cut towards 0. High is cut from what is 2 units of the last place
// less, so that the rest is never 0: the sign of a float sum that cancels is not known on every device. A part is off by
// less than 2^-7, so two are by 2^-14 at most: twice of the gate, of its square and of up, and the two products of low
// parts that are left out are 2^-14 each: 6 * 2^-14 and some roundings of 2^-24. The last rounding adds near half a unit
// to the number's bits and cuts: twice 1.0 in bfloat16, a constant that is at hand. So it is off by 2^-8 + 2^-15.
//
// Cost (modelled, not measured): 64 results take 2 conversions of sums, 12 of parts, 6 products and 6 sums; a pair of
//   micro-tiles is 53 cycles on AIE2P where this project assembles it, 18 of them to make floats; of silu 355, 182 of them
//   to scale.
#include "../include/finish_floats.h"
#include "../include/sigmoid.h"

#ifndef FUNCTION
#error "say what becomes of the gate: -DFUNCTION=relu2, or silu"
#endif

namespace gates {

template <unsigned N> using Ints = aie::vector<int32, N>;
template <unsigned N> using Floats32 = aie::vector<float, N>;

/// The upper halves of float32: what is cut towards 0, in any rounding mode.
template <unsigned N> static ALWAYS_INLINE aie::vector<bfloat16, N> upper(const Ints<N> &bits) {
    return aie::filter_odd(bits.template cast_to<int16>()).template cast_to<bfloat16>();
}

/// A float32 in two parts.
template <unsigned N> struct Parts {
    aie::vector<bfloat16, N> high, low;

    /// x is not 0.
    static ALWAYS_INLINE Parts of(const Floats32<N> &x) {
        const auto high = upper<N>(aie::sub(x.template cast_to<int32>(), aie::broadcast<int32, N>(2)));
        const auto rest = aie::msc(aie::accum<accfloat, N>(x), high, aie::broadcast<bfloat16, N>(1.0F));
        return {high, upper<N>(rest.template to_vector<float>().template cast_to<int32>())};
    }
};

/// max(gate, 0)^2 * up.
template <unsigned R, unsigned T> struct relu2 {
    static constexpr unsigned step = R * T, lanes = step < float_lanes ? step : float_lanes;

    const int32 *c;

    ALWAYS_INLINE void rows(unsigned) {}

    template <unsigned Field> ALWAYS_INLINE aie::vector<bfloat16, step> pair(unsigned, unsigned first) const {
        aie::vector<bfloat16, step> found;
        for (unsigned i = 0; i < step / lanes; ++i)
            found.insert(i, product<Field>(aie::load_v<lanes>(c + first + i * lanes),
                                           aie::load_v<lanes>(c + first + step + i * lanes)));
        return found;
    }

  private:
    /// Of sums that are scaled by 4^Field and 4^(Field + 1), where they are.
    template <unsigned Field>
    static ALWAYS_INLINE aie::vector<bfloat16, lanes> product(const Ints<lanes> &gate, const Ints<lanes> &up) {
        constexpr unsigned up_field = field_scaled ? Field + 1 : Field;
        const auto zero = aie::zeros<int32, lanes>();
        const auto none = aie::le(gate, zero) | aie::eq(up, zero);
        // 1 stands for the gates and ups whose result is 0
        const auto gates = aie::to_float<float>(aie::max(gate, aie::broadcast<int32, lanes>(1 << 2 * Field)), 2 * Field);
        const auto ups = aie::to_float<float>(
            aie::select(up, aie::broadcast<int32, lanes>(1 << 2 * up_field), aie::eq(up, zero)), 2 * up_field);
        const auto g = Parts<lanes>::of(gates), u = Parts<lanes>::of(ups);
        const auto square = aie::mac(aie::mac(aie::mul(g.high, g.high), g.high, g.low), g.high, g.low);
        const auto s = Parts<lanes>::of(square.template to_vector<float>());
        const auto z = aie::mac(aie::mac(aie::mul(s.high, u.high), s.low, u.high), s.high, u.low);
        const auto bits = z.template to_vector<float>().template cast_to<int32>();
        const auto rounded = upper<lanes>(aie::add(bits, aie::broadcast<int32, lanes>(0x7f00)));
        return aie::select(rounded, aie::zeros<bfloat16, lanes>(), none);
    }
};

#if defined(SCALE)
/// SiLU of a scaled gate times scaled up.
template <unsigned R, unsigned T> struct silu : FinishFloats<R, T, int32> {
    using Base = FinishFloats<R, T, int32>;
    static constexpr unsigned step = Base::step, lanes = Base::lanes;

    explicit silu(const int32 *sums, const float *row_scales, const float *column_scales)
        : Base{row_scales, column_scales, sums, nullptr} {}

    template <unsigned Field> ALWAYS_INLINE aie::vector<bfloat16, step> pair(unsigned column, unsigned first) const {
        constexpr unsigned up_field = field_scaled ? Field + 1 : Field;
        const auto gate = Base::template results<Field>(column, first);
        const auto up = Base::template results<up_field>(column + 1, first + step);
        aie::vector<bfloat16, step> found;
        for (unsigned i = 0; i < step / lanes; ++i) {
            const auto g = gate.template extract<lanes>(i);
            const auto on = aie::mul(g, Sigmoid<lanes>::of_itself(g)).template to_vector<bfloat16>();
            found.insert(i, aie::mul(on, up.template extract<lanes>(i)).template to_vector<bfloat16>());
        }
        return found;
    }
};
#endif

/// Pairs of micro-tiles, the gate's before up's.
template <unsigned R, unsigned T, class Pairs> static ALWAYS_INLINE void gate(Pairs pairs, bfloat16 *out) {
    constexpr unsigned step = R * T, together = field_scaled ? 4 : 2;
    static_assert(pass_rows % R == 0 && tile_columns % (together * T) == 0, "n must be a multiple of 2 t, 4 t when FIELD_SCALED");
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::none);
    event0();
    unsigned first = 0;
    for (unsigned row = 0; row < pass_rows / R; ++row) {
        pairs.rows(row);
        for (unsigned column = 0; column < tile_columns / T; column += together) {
            aie::store_v(out + first / 2, pairs.template pair<0>(column, first));
            if constexpr (field_scaled)
                aie::store_v(out + first / 2 + step, pairs.template pair<2>(column + 2, first + 2 * step));
            first += together * step;
        }
    }
    event1();
}

}  // namespace gates

extern "C" void gate_i32_bf16(EPILOGUE_TILE_PARAMETER int32_t *c CORE_ROW_PARAMETER PASS_PARAMETER) {
    int32_t *const sums = c + pass * c_elements;
    auto *const out = reinterpret_cast<bfloat16 *>(sums);
#ifdef SCALE
    static_assert(epilogue_rows % 8 == 0, "the scales of columns must begin at a whole vector");
    const float *const rows = scales + core_row * DIM_M + pass * pass_rows;
    gates::gate<mac_rows, 8>(gates::FUNCTION<mac_rows, 8>(sums, rows, scales + epilogue_rows), out);
#else
    gates::gate<mac_rows, 8>(gates::FUNCTION<mac_rows, 8>{sums}, out);
#endif
}
