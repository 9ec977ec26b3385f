// Elements of rows as products take them: lanes of bfloat16, or floats as the sum of three such parts, which is exact.
#pragma once

#include "arch.h"
#include "row_state.h"

namespace row_values {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
using Lanes = aie::vector<bfloat16, lanes>;
using Sums = aie::accum<accfloat, lanes>;

static inline Lanes ones() { return aie::broadcast<bfloat16, lanes>(1.0F); }

struct Floats {
    Sums whole;
    Lanes high, middle, low;
};

static inline Lanes load(const bfloat16 *x) { return aie::load_v<lanes>(x); }
static inline Sums load_sums(const float *x) {
    return Sums(aie::concat(aie::load_v<lanes / 2>(x), aie::load_v<lanes / 2>(x + lanes / 2)));
}
static inline Floats parts(const Sums &whole) {
    Floats found;
    found.whole = whole;
    found.high = whole.template to_vector<bfloat16>();
    const Sums rest = aie::msc(whole, found.high, ones());
    found.middle = rest.template to_vector<bfloat16>();
    found.low = aie::msc(rest, found.middle, ones()).template to_vector<bfloat16>();
    return found;
}
static inline Floats load(const float *x) { return parts(load_sums(x)); }
static inline void store(float *y, const Sums &sums) {
    row_state::store(reinterpret_cast<int32 *>(y), sums.template to_vector<float>().template cast_to<int32>());
}
static inline void store(bfloat16 *y, const Sums &sums) { aie::store_v(y, sums.template to_vector<bfloat16>()); }

/// Sums and x.
static inline Sums added(const Sums &sums, const Lanes &x) { return aie::mac(sums, x, ones()); }
static inline Sums added(const Sums &sums, const Floats &x) { return aie::add(sums, x.whole); }

/// Sums and x w.
static inline Sums product_added(const Sums &sums, const Lanes &x, const Lanes &w) { return aie::mac(sums, x, w); }
static inline Sums product_added(const Sums &sums, const Floats &x, const Lanes &w) {
    return aie::mac(aie::mac(aie::mac(sums, x.low, w), x.middle, w), x.high, w);
}
static inline Sums product(const Lanes &x, const Lanes &w) { return aie::mul(x, w); }
static inline Sums product(const Floats &x, const Lanes &w) {
    return aie::mac(aie::mac(aie::mul(x.low, w), x.middle, w), x.high, w);
}
/// Within 2^-22 of itself, for products of lower parts are left out; +0 where it is 0.
static inline Sums product(const Floats &x, const Floats &w) {
    const Sums least = aie::mac(aie::zeros<accfloat, lanes>(), x.low, w.high);
    const Sums less = aie::mac(aie::mac(least, x.middle, w.middle), x.high, w.low);
    return aie::mac(aie::mac(aie::mac(less, x.middle, w.high), x.high, w.middle), x.high, w.high);
}

/// Sums and x x; of floats but for what is below 2^-25 of it.
static inline Sums square_added(const Sums &sums, const Lanes &x) { return aie::mac(sums, x, x); }
static inline Sums square_added(const Sums &sums, const Floats &x) {
    const Lanes twice = aie::mul(x.high, aie::broadcast<bfloat16, lanes>(2.0F)).template to_vector<bfloat16>();
    const Sums small = aie::mac(aie::mac(aie::mul(x.low, twice), x.middle, x.middle), x.middle, twice);
    return aie::mac(aie::add(sums, small), x.high, x.high);
}

}  // namespace row_values
