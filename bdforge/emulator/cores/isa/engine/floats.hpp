// Floats of the multiplier: normal numbers and zeros.
#pragma once

#include <cmath>

#include "core.hpp"

namespace engine::floats {

constexpr int kLanes = 64;

inline bool known(Core& core, const float* values) {
    for (int i = 0; i < kLanes; ++i)
        if (values[i] != 0 && !std::isnormal(values[i])) {
            core.fail(kOpen, "floats that are subnormal, infinite or no number are open");
            return false;
        }
    return true;
}

inline bool elementwise(Core& core, const std::uint8_t* s1, const std::uint8_t* s2, float* total) {
    float a[kLanes], b[kLanes];
    for (int i = 0; i < kLanes; ++i) {
        save(a + i, std::uint32_t(load<std::uint16_t>(s1 + 2 * i)) << 16);
        save(b + i, std::uint32_t(load<std::uint16_t>(s2 + 2 * i)) << 16);
    }
    if (!known(core, a) || !known(core, b)) return false;
    for (int i = 0; i < kLanes; ++i) total[i] = a[i] * b[i];
    if (!known(core, total)) return false;
    for (int i = 0; i < kLanes; ++i)
        if (total[i] == 0 && a[i] != 0 && b[i] != 0) core.fail(kOpen, "products too small for fp32 are open");
    return !core.fault;
}

// Mantissas in 64 bytes, then an exponent for each 8 of them.
inline bool blocks(Core& core, const std::uint8_t* s1, const std::uint8_t* s2, float* total) {
    double exact[kLanes];
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) {
            int sum = 0;
            for (int k = 0; k < 8; ++k) sum += std::int8_t(s1[8 * i + k]) * std::int8_t(s2[8 * j + k]);
            exact[8 * i + j] = std::ldexp(double(sum), int(s1[64 + i]) + int(s2[64 + j]) - 2 * 127 - 12);
            total[8 * i + j] = float(exact[8 * i + j]);
        }
    if (!known(core, total)) return false;
    for (int i = 0; i < kLanes; ++i)
        if (total[i] == 0 && exact[i] != 0) core.fail(kOpen, "products too small for fp32 are open");
    return !core.fault;
}

// a: accumulator if any, s1, s2, conf, dst; o: accumulators, minus, lanes of bf16 or 0 for block floats.
inline void fmultiply(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[0];
    const std::uint32_t conf = word(core, event, buffer, n + 2);
    const int amode = conf >> 1 & 3, bmode = conf >> 3 & 3, variant = conf >> 5 & 7;
    if (conf & 0x3C00 || conf >> 16) return core.fail(kOpen, "conf %#x of floats is open", conf);
    if (amode != 2 || (event.o[2] ? bmode != 3 || variant != 1 : bmode != 1 || variant != 0))
        return core.fail(kOpen, "amode %d, bmode %d, variant %d of floats are open", amode, bmode, variant);
    float total[kLanes], added[kLanes];
    const std::uint8_t* s1 = core.at(event.a[n], buffer);
    const std::uint8_t* s2 = core.at(event.a[n + 1], buffer);
    if (!(event.o[2] ? elementwise(core, s1, s2, total) : blocks(core, s1, s2, total))) return;
    if (event.o[1])
        for (float& value : total) value = -value;
    if (n && !(conf & 1)) {
        std::memcpy(added, core.at(event.a[0], buffer), sizeof added);
        if (!known(core, added)) return;
        for (int i = 0; i < kLanes; ++i) {
            const float sum = total[i] + added[i];
            const bool plain = total[i] == 0 && added[i] == 0 && !std::signbit(total[i]) && !std::signbit(added[i]);
            if (sum == 0 && !plain) return core.fail(kOpen, "the sign of a sum that is zero is open");
            total[i] = sum;
        }
    }
    if (!known(core, total)) return;
    std::memcpy(core.at(event.a[n + 3], buffer), total, sizeof total);
    core.macs[event.place] += event.o[2] ? event.o[2] : 8 * 8 * 8;
}

inline const Named kTable[] = {{"fmultiply", fmultiply}};

}  // namespace engine::floats
