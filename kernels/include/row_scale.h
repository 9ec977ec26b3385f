// What a row of a product of codes and weights is scaled by: its own scale, times that of all rows.
#pragma once

#include "row_values.h"

namespace row_scale {

/// s c, within 2^-22 of itself, as products take it.
static inline row_values::Floats factor(const float *s, const float *c) {
    const auto all = [](const float *x) {
        return row_values::parts(row_values::Sums(aie::broadcast<float, row_values::lanes>(*x)));
    };
    return row_values::parts(row_values::product(all(s), all(c)));
}

/// Sums and r times a factor, its least part first.
static inline row_values::Sums added(const row_values::Sums &sums, const row_values::Lanes &r,
                                     const row_values::Floats &factor) {
    return aie::mac(aie::mac(aie::mac(sums, r, factor.low), r, factor.middle), r, factor.high);
}

}  // namespace row_scale
