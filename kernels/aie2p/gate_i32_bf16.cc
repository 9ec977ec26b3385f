// gate_i32_bf16: makes bfloat16 results f(gate) * up of the int32 sums of two matrices in one core tile of C, in place.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   scales, core_row   only when SCALE, as of finish_i32_bf16, which needs ARRAY_ROWS too; n scales of columns, in the order
//       of c's columns.
//   c   int32, m x n, micro-tiled [m/R][n/8][R][8] (inside column by column when C_TRANSPOSED), V-byte aligned. Column
//       blocks of 8 are gate's and up's in turn. The m x n/2 results replace it from its first byte on, dense, in the
//       order [m/R][n/16][R][8]. Once per C tile, after the last step of K.
//   m % R == 0, n % 16 == 0; n % 32 == 0 when FIELD_SCALED, which says that column block 4 q + j of c is scaled by 4^j.
//   gate, up   what finish_i32_bf16 makes of the sums: bfloat16 of them as they are, or scaled when SCALE.
//   FUNCTION = relu2   result = bf16(bf16(max(gate, 0)^2) * up): the bits of elementwise_bf16's relu2_gate.
//              silu    result = bf16(bf16(gate * sigmoid(gate)) * up): the bits of its silu_gate.
//   Range of relu2 as it is: sums are below 2^31, so results are 0 or from 1 to 2^93, and no float overflows. A result
//       whose gate is 0 is a 0 of up's sign.
//   Rounding: set to conv_even by every call, saturation to none, and stay.
//
// Cost (modelled, not measured): a pair of micro-tiles is 20 cycles on AIE2P where this project assembles it, 14 of them to
//   make bfloat16 of sums; of silu 355, 182 of them to scale.
#include "../include/finish_floats.h"
#include "../include/functions.h"

#ifndef FUNCTION
#error "say what becomes of the gate: -DFUNCTION=relu2, or silu"
#endif

namespace gates {

/// A function of a gate's results, times up's.
template <unsigned R, unsigned T> struct Gated : FinishFloats<R, T, int32> {
    using Base = FinishFloats<R, T, int32>;
    static constexpr unsigned step = Base::step, lanes = Base::lanes;
    using Function = functions_of_bf16::gate<functions_of_bf16::FUNCTION, lanes>;

    template <unsigned Field> ALWAYS_INLINE aie::vector<bfloat16, step> pair(unsigned column, unsigned first) const {
        constexpr unsigned up_field = field_scaled ? Field + 1 : Field;
        const auto gate = Base::template results<Field>(column, first);
        const auto up = Base::template results<up_field>(column + 1, first + step);
        aie::vector<bfloat16, step> found;
        for (unsigned i = 0; i < step / lanes; ++i)
            found.insert(i, Function::of(gate.template extract<lanes>(i), up.template extract<lanes>(i)));
        return found;
    }
};

/// Pairs of micro-tiles, the gate's before up's.
template <unsigned R, unsigned T> static ALWAYS_INLINE void gate(Gated<R, T> pairs) {
    constexpr unsigned step = R * T, together = field_scaled ? 4 : 2;
    static_assert(pass_rows % R == 0 && tile_columns % (together * T) == 0, "n must be a multiple of 2 t, 4 t when FIELD_SCALED");
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::none);
    event0();
    unsigned first = 0;
    for (unsigned row = 0; row < pass_rows / R; ++row) {
        pairs.rows(row);
        for (unsigned column = 0; column < tile_columns / T; column += together) {
            aie::store_v(pairs.out + first / 2, pairs.template pair<0>(column, first));
            if constexpr (field_scaled)
                aie::store_v(pairs.out + first / 2 + step, pairs.template pair<2>(column + 2, first + 2 * step));
            first += together * step;
        }
    }
    event1();
}

}  // namespace gates

extern "C" void gate_i32_bf16(EPILOGUE_TILE_PARAMETER int32_t *c CORE_ROW_PARAMETER PASS_PARAMETER) {
    int32_t *const sums = c + pass * c_elements;
    static_assert(epilogue_rows % 8 == 0, "the scales of columns must begin at a whole vector");
    const float *const rows = scales + core_row * DIM_M + pass * pass_rows;
    gates::gate<mac_rows, 8>({rows, scales + epilogue_rows, sums, reinterpret_cast<bfloat16 *>(sums)});
}
