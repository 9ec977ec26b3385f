// attention_cap_bf16: scores x become SOFT_CAP tanh(x / SOFT_CAP), as Gemma's do (kernels/include/attention.h).
//
// Contract. s of all tiles, before masks: of T = s - MAGIC in 1/256, T' = a tanh(T / a), a = 256 SOFT_CAP / SCORE_SCALE
//   2^-K, with e = 2^-|2 log2(e) T / a|:
//   1. T is cut to 16 a either way, where tanh is 1 and e has an exponent still, and |T| to 16 bits, of which the last
//      is 2^shift, 1 at least; times the factor it is e's exponent;
//   2. e by exp2.h; float addition makes 1 + e, of which 15 bits of fraction are kept;
//   3. 1 / (1 + e) by a quadratic and a step of Newton's, as sigmoid.h's: within 1.1e-4;
//   4. tanh = (1 - e) / (1 + e) in 15 bits, times a.
//   T' is within a 2^-12 + 2^shift of a tanh(T / a). It is at most 2^87 in powers of two, so M never moves.
//   Saturation is off when it ends.
#include "../include/attention.h"
#include "../include/exp2.h"

namespace attention {

static_assert(SOFT_CAP >= 1 && SOFT_CAP <= 60, "SOFT_CAP must be 1 to 60: weights up to 2^87");

/// Of |T| / 2^shift to 2 log2(e) |T| / a with 16 bits of fraction: a factor, and how many bits too large it is.
struct Cap {
    int32 most = 0, limit = 0;  // a; of |T|
    int shift = 0, less = 0;
    uint32 factor = 0;
    constexpr Cap() {
        double a = 256.0 * SOFT_CAP / static_cast<double>(SCORE_SCALE);
        for (int i = 0; i < scale.exponent; ++i) a /= 2;
        for (int i = 0; i > scale.exponent; --i) a *= 2;
        most = static_cast<int32>(a + 0.5);
        while (a / (1 << shift) > 12800) ++shift;  // so that 16 bits reach 5 a
        limit = 16 * most < (65535 << shift) ? 16 * most : 65535 << shift;
        double found = 65536 * 2 * 1.4426950408889634 * (1 << shift) / a;
        for (; found < 32768; found *= 2) ++less;
        factor = static_cast<uint32>(found + 0.5);
    }
};
constexpr Cap cap;

using Powers = FixedPowers<32>;

/// tanh of 16-bit magnitudes, in 15 bits.
static inline Powers::Words tanh_of(const Powers::Words &size) {
    const auto product = Powers::product(size, Powers::words(cap.factor));
    const auto exponent = aie::sub(aie::broadcast<int32, 32>(127 << 16), product.template to_vector<int32>(cap.less));
    const auto parts = exponent.template cast_to<uint16>();
    const auto behind = Powers::power(aie::filter_even(parts));
    const auto bits_of_e = Powers::scaled(aie::filter_odd(parts), behind).template to_vector<int32>(0);
    const auto one = aie::broadcast<bfloat16, 32>(1.0F);
    const Powers::Sums e(bits_of_e.template cast_to<float>());
    const auto bits = aie::mac(e, one, one).template to_vector<float>().template cast_to<int32>();
    const auto cut = aie::bit_and(bits, aie::broadcast<int32, 32>(0x7fffff00));
    const Powers::Words whole = Powers::Wide(cut).template to_vector<uint16>(8);  // 1 + e, 15 bits of fraction
    const auto first = Powers::line(aie::broadcast<int16, 32>(10592), whole, 16, 0x10000 - 23831);
    const Powers::Words guess = Powers::line(first, whole, 14, 17377 << 2).template cast_to<uint16>();
    const auto left = aie::msc(aie::zeros<acc64, 32>(), guess, whole).template to_vector<uint16>(15);
    const Powers::Words inverse = Powers::product(guess, left).template to_vector<uint16>(14);
    const Powers::Words rest = aie::sub(Powers::words(0), whole);  // 1 - e = 2 - (1 + e)
    return Powers::product(rest, inverse).template to_vector<uint16>(16);
}

}  // namespace attention

extern "C" void attention_cap_bf16(float *__restrict s) {
    using namespace attention;
    set_float_modes();
    aie::set_saturation(aie::saturation_mode::none);
    event0();
    const auto nothing = aie::zeros<int32, 32>();
    for (unsigned i = 0; i < DIM_M * DIM_N; i += 32) {
        int32 *const at = reinterpret_cast<int32 *>(s) + i;
        const auto high = aie::max(aie::load_v<32>(at), magic - cap.limit);
        const auto bits = aie::min(high, magic + cap.limit);
        const auto distance = aie::sub(bits, aie::broadcast<int32, 32>(magic));
        const auto negative = aie::lt(distance, static_cast<int32>(0));
        const auto size = aie::select(distance, aie::sub(nothing, distance), negative);
        const auto narrow = aie::max(Powers::Wide(size).template to_vector<uint16>(cap.shift), static_cast<uint16>(1));
        const auto tanh = tanh_of(narrow);
        const auto capped = Powers::product(tanh, Powers::words(cap.most)).template to_vector<int32>(15);
        const auto found = aie::select(capped, aie::sub(nothing, capped), negative);
        aie::store_v(at, aie::add(found, aie::broadcast<int32, 32>(magic)));
    }
    event1();
}
