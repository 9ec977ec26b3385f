// Nibbles to bytes, as a loop that compilers turn into vector code.
#pragma once

#include <cstdint>
#include <cstring>

#include "config.hpp"

namespace hostapi {

/// 2 * Bytes lanes, the low nibble of each byte first; sign-extended when Signed.
template <unsigned Bytes, bool Signed> HOSTAPI_INLINE void unpack_nibbles(const uint8_t *in, void *out) {
    alignas(64) uint16_t pairs[Bytes];
    for (unsigned i = 0; i < Bytes; ++i)
        pairs[i] = static_cast<uint16_t>((in[i] & 15) | (in[i] >> 4) << 8);
    alignas(64) uint8_t lanes[2 * Bytes];
    std::memcpy(lanes, pairs, sizeof lanes);
    if constexpr (Signed)
        for (unsigned i = 0; i < 2 * Bytes; ++i)
            lanes[i] = static_cast<uint8_t>((lanes[i] ^ 8) - 8);
    std::memcpy(out, lanes, sizeof lanes);
}

}  // namespace hostapi
