// Floats of the multiplier: normal numbers and zeros.
#pragma once

#include <algorithm>
#include <cmath>

#include "core.hpp"

namespace engine::floats {

constexpr int kLanes = 64;

inline bool known(Core& core, const float* values, int count) {
    for (int i = 0; i < count; ++i)
        if (values[i] != 0 && !std::isnormal(values[i])) {
            core.fail(kOpen, "floats that are subnormal, infinite or no number are open");
            return false;
        }
    return true;
}

// Whether a conf chooses what is known: floats, with a bmode and a variant.
inline bool chosen(Core& core, std::uint32_t conf, int bmode, int variant) {
    const int found[] = {int(conf >> 1 & 3), int(conf >> 3 & 3), int(conf >> 5 & 7)};
    if (conf & 0x3C00 || conf >> 16)
        core.fail(kOpen, "conf %#x of floats is open", conf);
    else if (found[0] != 2 || found[1] != bmode || found[2] != variant)
        core.fail(kOpen, "amode %d, bmode %d, variant %d of floats are open", found[0], found[1], found[2]);
    return !core.fault;
}

inline bool widened(Core& core, const std::uint8_t* from, float* to, int count) {
    for (int i = 0; i < count; ++i) save(to + i, std::uint32_t(load<std::uint16_t>(from + 2 * i)) << 16);
    return known(core, to, count);
}

inline bool elementwise(Core& core, const std::uint8_t* s1, const std::uint8_t* s2, float* total, int count) {
    float a[kLanes], b[kLanes];
    if (!widened(core, s1, a, count) || !widened(core, s2, b, count)) return false;
    for (int i = 0; i < count; ++i) total[i] = a[i] * b[i];
    if (!known(core, total, count)) return false;
    for (int i = 0; i < count; ++i)
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
    if (!known(core, total, kLanes)) return false;
    for (int i = 0; i < kLanes; ++i)
        if (total[i] == 0 && exact[i] != 0) core.fail(kOpen, "products too small for fp32 are open");
    return !core.fault;
}

// The sum of a few terms with one rounding, to nearest even. Sums in double are mostly exact; what they lose is kept as
// a chain of rests (Shewchuk's expansions), and decides at last to which side the sum is odd, which fp32 then rounds.
inline float rounded_once(const double* terms, int n) {
    double rests[9];
    int used = 0;
    for (int i = 0; i < n; ++i) {
        double total = terms[i];
        int kept = 0;
        for (int j = 0; j < used; ++j) {
            const double other = rests[j], sum = total + other, part = sum - other;
            const double lost = (total - part) + (other - (sum - part));
            if (lost != 0) rests[kept++] = lost;
            total = sum;
        }
        rests[kept++] = total;
        used = kept;
    }
    while (used && rests[used - 1] == 0) --used;
    if (!used) return 0;
    double total = rests[used - 1];
    if (used > 1 && !(load<std::uint64_t>(&total) & 1)) total = std::nextafter(total, rests[used - 2] > 0 ? INFINITY : -INFINITY);
    return float(total);
}

// Whether fp32 holds a sum; what is lost is found as by Knuth's two-sum.
inline bool is_exact(double one, double other, double& total) {
    total = one + other;
    const double part = total - one, lost = (one - (total - part)) + (other - part);
    return lost == 0 && double(float(total)) == total;
}

inline bool same_in_any_order(const double* terms, int n) {
    double total = terms[0], pair = 0;
    for (int i = 1; i < n; ++i)
        if (!is_exact(total, terms[i], total)) return false;
    for (int i = 0; i < n; ++i)
        for (int j = i + 1; j < n; ++j)
            if (!is_exact(terms[i], terms[j], pair)) return false;
    return true;
}

// AIE2P's sums: one addition in fp32, or a rounding of three terms; zero is +0.
inline bool summed(Core& core, float (*terms)[kLanes], int n, int count, float* total) {
    bool told = true, plain = true;
    for (int lane = 0; lane < count; ++lane) {
        double found[3];
        bool zeros = true;
        for (int i = 0; i < n; ++i) {
            found[i] = terms[i][lane];
            zeros &= terms[i][lane] == 0 && !std::signbit(terms[i][lane]);
        }
        total[lane] = n == 1 ? terms[0][lane] : n == 2 ? terms[0][lane] + terms[1][lane] : rounded_once(found, n);
        told &= n < 3 || same_in_any_order(found, n);
        plain &= n < 2 || total[lane] != 0 || zeros;
        if (n > 1 && total[lane] == 0) total[lane] = 0;
    }
    return known(core, total, count) && (told || core.assume(Core::kRounding)) && (plain || core.assume(Core::kZeroSign));
}

// AIE2's sum of a lane: terms are rounded at the greatest exponent, to 23 bits behind the point, then their sum.
inline float aligned(const double* terms, const int* exponents, int n) {
    constexpr int kFraction = 23;
    int top = -149;
    for (int i = 0; i < n; ++i)
        if (terms[i] != 0) top = std::max(top, exponents[i]);
    double total = 0;
    for (int i = 0; i < n; ++i) total += std::nearbyint(std::ldexp(terms[i], kFraction - top));
    return float(std::ldexp(total + 0.0, top - kFraction));
}

inline int exponent(float value) { return value == 0 ? 0 : std::ilogb(value); }

// a: accumulators, s1, s2, conf, dst, what is unknown; o: accumulators, minus, lanes of bf16 or 0 for block floats.
inline void fmultiply(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[0], count = event.o[2] ? event.o[2] : kLanes;
    const std::uint32_t conf = word(core, event, buffer, n + 2);
    if (!chosen(core, conf, event.o[2] ? 3 : 1, event.o[2] ? 1 : 0)) return;
    float terms[3][kLanes], total[kLanes];
    const std::uint8_t* s1 = core.at(event.a[n], buffer);
    const std::uint8_t* s2 = core.at(event.a[n + 1], buffer);
    if (!(event.o[2] ? elementwise(core, s1, s2, terms[0], count) : blocks(core, s1, s2, terms[0]))) return;
    if (event.o[1])
        for (float& value : terms[0]) value = -value;
    int used = 1;
    for (int i = conf & 1; i < n; ++i, ++used) {
        std::memcpy(terms[used], core.at(event.a[i], buffer), sizeof(float) * count);
        if (!known(core, terms[used], count)) return;
    }
    if (!summed(core, terms, used, count, total)) return;
    std::uint8_t* to = core.at(event.a[n + 3], buffer);
    std::memcpy(to, total, sizeof(float) * count);
    core.macs[event.place] += event.o[2] ? event.o[2] : 8 * 8 * 8;
    if (count == kLanes) return;
    std::memset(to + sizeof(float) * count, 0, sizeof(float) * (kLanes - count));
    put(core, event, buffer, n + 4, 0xFF00);
}

// a: accumulators, conf, dst; o: bits, minus acc1, minus acc2, accumulators and 4 for AIE2.
inline void faccumulate(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[3] & 3, count = event.o[0] / 32;
    const std::uint32_t conf = word(core, event, buffer, n), amode = conf >> 1 & 3;
    if (conf & 0x3C01 || conf >> 16) return core.fail(kOpen, "conf %#x of floats is open", conf);
    if (amode != 2) return core.fail(kOpen, "amode %u of an addition of floats is open", amode);
    float terms[2][kLanes], total[kLanes];
    const bool aie2 = event.o[3] & 4;
    if (n == 1) std::fill(terms[1], terms[1] + count, -0.0f);  // the sign of its zeros is open
    for (int i = 0; i < n; ++i) {
        std::memcpy(terms[i], core.at(event.a[i], buffer), sizeof(float) * count);
        if (!known(core, terms[i], count)) return;
        for (int lane = 0; lane < count; ++lane) {
            if (event.o[1 + i]) terms[i][lane] = -terms[i][lane];
        }
    }
    for (int lane = 0; aie2 && lane < count; ++lane) {
        const double both[] = {terms[0][lane], terms[1][lane]};
        const int exponents[] = {exponent(terms[0][lane]), exponent(terms[1][lane])};
        total[lane] = aligned(both, exponents, n);
    }
    if (!(aie2 ? known(core, total, count) : summed(core, terms, 2, count, total))) return;
    std::memcpy(core.at(event.a[n + 1], buffer), total, sizeof(float) * count);
}

// a: accumulators, s1, s2, conf, dst; o: accumulators, minus. AIE2's 4 x 8 by 8 x 4.
inline void fmatrix(Core& core, const Event& event, std::uint8_t* buffer) {
    constexpr int kRows = 4, kDepth = 8, kColumns = 4, kCount = kRows * kColumns;
    const int n = event.o[0];
    const std::uint32_t conf = word(core, event, buffer, n + 2);
    if (!chosen(core, conf, 3, 0)) return;
    float a[kRows * kDepth], b[kDepth * kColumns], added[kCount], total[kCount];
    const bool adds = n && !(conf & 1);
    if (!widened(core, core.at(event.a[n], buffer), a, kRows * kDepth)) return;
    if (!widened(core, core.at(event.a[n + 1], buffer), b, kDepth * kColumns)) return;
    if (adds) std::memcpy(added, core.at(event.a[0], buffer), sizeof added);
    if (adds && !known(core, added, kCount)) return;
    for (int lane = 0; lane < kCount; ++lane) {
        double terms[kDepth + 1];
        int exponents[kDepth + 1];
        for (int k = 0; k < kDepth; ++k) {
            const float x = a[lane / kColumns * kDepth + k], y = b[k * kColumns + lane % kColumns], product = x * y;
            if (!known(core, &product, 1)) return;
            if (product == 0 && x != 0 && y != 0) return core.fail(kOpen, "products too small for fp32 are open");
            terms[k] = event.o[1] ? -product : product;
            exponents[k] = exponent(x) + exponent(y);
        }
        if (adds) terms[kDepth] = added[lane];
        if (adds) exponents[kDepth] = exponent(added[lane]);
        total[lane] = aligned(terms, exponents, kDepth + adds);
    }
    if (!known(core, total, kCount)) return;
    std::memcpy(core.at(event.a[n + 3], buffer), total, sizeof total);
    core.macs[event.place] += kCount * kDepth;
}

inline const Named kTable[] = {{"fmultiply", fmultiply}, {"fmatrix", fmatrix}, {"faccumulate", faccumulate}};

}  // namespace engine::floats
