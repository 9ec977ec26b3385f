// Whole registers through narrow.hpp, with what most kernels ask for as loops that compilers turn into vector code.
#pragma once

#include "config.hpp"
#include "narrow.hpp"

namespace hostapi {

/// in / 2^shift to the nearest, ties to even, clamped to T: shift_round_saturate for conv_even and saturate.
template <class T, unsigned N, class Acc> HOSTAPI_INLINE void nearest_even_clamped(const Acc *in, T *out, int shift) {
    constexpr auto lowest = static_cast<Acc>(element<T>::lowest), highest = static_cast<Acc>(element<T>::highest);
    const Acc half = shift == 0 ? Acc{0} : Acc{1} << (shift - 1);
    for (unsigned i = 0; i < N; ++i) {
        const Acc quotient = in[i] >> shift, rest = in[i] & ((Acc{1} << shift) - 1);
        // More than half carries into bit `shift`, exactly half only with an odd quotient.
        const Acc up = shift == 0 ? Acc{0} : (rest + half - 1 + (quotient & 1)) >> shift;
        const Acc rounded = quotient + up;
        out[i] = static_cast<T>(rounded < lowest ? lowest : rounded > highest ? highest : rounded);
    }
}

/// N accumulator lanes to T, under the core's modes.
template <class T, unsigned N, class Acc> HOSTAPI_INLINE void narrow_lanes(const Acc *in, T *out, int shift) {
    constexpr bool fits = element<T>::highest <= static_cast<int64_t>(~uint64_t{0} >> (65 - 8 * sizeof(Acc)));
    const bool usual = core_state.rounding == aie::rounding_mode::conv_even
                       && core_state.saturation == aie::saturation_mode::saturate
                       && shift < static_cast<int>(8 * sizeof(Acc)) - 2;
    if constexpr (fits)
        if (usual)
            return nearest_even_clamped<T, N>(in, out, shift);
    for (unsigned i = 0; i < N; ++i)
        out[i] = shift_round_saturate<T>(in[i], shift);
}

/// N lanes T to accumulators Acc, times 2^shift, under the core's modes.
template <class Acc, unsigned N, class T> HOSTAPI_INLINE void upshift_lanes(const T *in, Acc *out, int shift) {
    constexpr int bits = 8 * sizeof(Acc);
    if (static_cast<int>(element<T>::bits) + shift < bits) {  // no lane can leave the accumulator
        for (unsigned i = 0; i < N; ++i)
            out[i] = static_cast<Acc>(static_cast<std::make_unsigned_t<Acc>>(in[i]) << shift);
        return;
    }
    for (unsigned i = 0; i < N; ++i)
        out[i] = static_cast<Acc>(upshifted<bits>(in[i], shift));
}

}  // namespace hostapi
