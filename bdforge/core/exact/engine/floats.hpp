// Floats of the multiplier.
#pragma once

#include <algorithm>
#include <cmath>

#include "bytes.hpp"

namespace engine::floats {

constexpr int kLanes = 64;

constexpr float kTiny = 0x1p-126f;

template <class F>
inline bool finite(Core& core, const F* values, int count) {
    for (int i = 0; i < count; ++i)
        if (!std::isfinite(values[i])) {
            core.fail(kOpen, "floats that are infinite or no number are open");
            return false;
        }
    return true;
}

inline bool subnormal(double value) { return value != 0 && std::abs(value) < kTiny; }

// Whether a conf chooses what is known: floats, with a bmode and a variant.
inline bool chosen(Core& core, std::uint32_t conf, int bmode, int variant) {
    const int found[] = {int(conf >> 1 & 3), int(conf >> 3 & 3), int(conf >> 5 & 7)};
    if (conf & 0x3C00 || conf >> 16)
        core.fail(kOpen, "conf %#x of floats is open", conf);
    else if (found[0] != 2 || found[1] != bmode || found[2] != variant)
        core.fail(kOpen, "amode %d, bmode %d, variant %d of floats are open", found[0], found[1], found[2]);
    return !core.fault;
}

inline void widened(const std::uint8_t* from, float* to, int count) {
    for (int i = 0; i < count; ++i) save(to + i, std::uint32_t(load<std::uint16_t>(from + 2 * i)) << 16);
}

inline bool elementwise(Core& core, const std::uint8_t* s1, const std::uint8_t* s2, double* total, int count, bool& tiny) {
    float a[kLanes], b[kLanes];
    widened(s1, a, count);
    widened(s2, b, count);
    if (!finite(core, a, count) || !finite(core, b, count)) return false;
    for (int i = 0; i < count; ++i) {
        total[i] = double(a[i]) * b[i];
        tiny |= subnormal(a[i]) || subnormal(b[i]);
    }
    return true;
}

// Mantissas in 64 bytes, then an exponent for each 8 of them.
inline void blocks(const std::uint8_t* s1, const std::uint8_t* s2, double* total) {
    std::uint8_t columns[kLanes];
    std::int32_t sums[kLanes];
    for (int k = 0; k < 8; ++k)
        for (int j = 0; j < 8; ++j) columns[8 * k + j] = s2[8 * j + k];
    bytes::product(8, s1, columns, true, true, sums);
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) {
            const auto power = std::uint64_t(1023 + int(s1[64 + i]) + int(s2[64 + j]) - 2 * 127 - 12) << 52;  // always normal
            total[8 * i + j] = double(sums[8 * i + j]) * load<double>(&power);
        }
}

// The sum of a few terms, which fp32 rounds once, to nearest even. Sums in double are mostly exact; what they lose is kept as
// a chain of rests (Shewchuk's expansions), and decides at last to which side the sum is odd, which fp32 then rounds.
inline double rounded_once(const double* terms, int n) {
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
    double total = rests[--used], rest = 0;
    while (used && rest == 0) {  // the greatest ones may still add up to what a double holds
        const double other = rests[--used], sum = total + other;
        rest = other - (sum - total);
        total = sum;
    }
    if (rest != 0 && !(load<std::uint64_t>(&total) & 1)) total = std::nextafter(total, rest > 0 ? INFINITY : -INFINITY);
    return total;
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

// AIE2P's sums of exact terms, rounded once; one that is no normal number is zero, with its sign if it is `sign`ed.
inline bool summed(Core& core, double (*terms)[kLanes], int n, int count, bool tiny, bool sign, float* total) {
    bool told = true;
    for (int lane = 0; lane < count; ++lane) {
        double given[3];
        for (int i = 0; i < n; ++i) given[i] = terms[i][lane];
        const double exact = n == 1 ? given[0] : n == 2 ? given[0] + given[1] : rounded_once(given, n);
        const float found = float(exact);
        told &= n < 3 || same_in_any_order(given, n);
        if (!std::isfinite(found)) return core.fail(kOpen, "a sum beyond fp32 is open"), false;
        const bool small = exact != 0 && std::abs(found) < kTiny;
        tiny |= small;
        total[lane] = small ? (sign ? std::copysign(0.0f, found) : 0.0f) : n > 1 && exact == 0 ? 0.0f : found;
    }
    if (!told && !core.assume(Core::kRounding)) return false;
    if (tiny) core.assumed |= 1 << Core::kSubnormal;
    return true;
}

constexpr std::uint32_t kMadeNan = 0x7F800001;  // AIE2's; one that came in may have other bits

// The word of AIE2's sum of a lane: terms are rounded at the greatest exponent, to 23 bits behind the point, then their
// sum. One that is no normal number is zero, with its sign if it is `sign`ed.
inline std::uint32_t aligned(const double* terms, const int* exponents, int n, bool sign) {
    constexpr int kFraction = 23;
    int top = -266;
    bool up = false, down = false, none = false;
    for (int i = 0; i < n; ++i) {
        none |= std::isnan(terms[i]);
        up |= terms[i] == INFINITY;
        down |= terms[i] == -INFINITY;
        if (terms[i] != 0 && std::isfinite(terms[i])) top = std::max(top, exponents[i]);
    }
    if (none || (up && down)) return kMadeNan;
    if (up || down) return up ? 0x7F800000 : 0xFF800000;
    double total = 0;
    for (int i = 0; i < n; ++i) total += std::nearbyint(std::ldexp(terms[i], kFraction - top));
    const float found = float(std::ldexp(total + 0.0, top - kFraction));
    if (total != 0 && std::abs(found) < kTiny) return sign && total < 0 ? 0x80000000 : 0;
    return load<std::uint32_t>(&found);
}

inline int exponent(float value) { return value == 0 || !std::isfinite(value) ? 0 : std::max(std::ilogb(value), -126); }

inline bool numbers(Core& core, const float* values, int count) {
    for (int i = 0; i < count; ++i)
        if (std::isnan(values[i])) return core.fail(kOpen, "what becomes of a NaN is open"), false;
    return true;
}

// Exact products of bfloat16; whether all factors are finite and normal or zero.
inline bool usual_products(const std::uint8_t* s1, const std::uint8_t* s2, double* terms, int count) {
    std::uint32_t odd = 0;
    for (int i = 0; i < count; ++i) {
        const std::uint32_t a = load<std::uint16_t>(s1 + 2 * i), b = load<std::uint16_t>(s2 + 2 * i);
        const std::uint32_t wide_a = a << 16, wide_b = b << 16;
        for (std::uint32_t x : {a, b}) odd |= std::uint32_t((x & 0x7F80) == 0x7F80) | std::uint32_t((x & 0x7FFF) - 1u < 0x7Fu);
        terms[i] = double(load<float>(&wide_a)) * load<float>(&wide_b);
    }
    return !odd;
}

// Magnitudes that are no normal numbers of fp32, or zero; each may be told, or made a zero.
inline std::uint64_t odd_one(double value) {
    constexpr std::uint64_t kLeast = 0x3810000000000000, kMost = 0x47EFFFFFE0000000;
    const std::uint64_t magnitude = load<std::uint64_t>(&value) << 1 >> 1;
    return std::uint64_t(magnitude - 1 < kLeast - 1) | std::uint64_t(magnitude > kMost);
}

// As `summed` of a product and at most one accumulator, where nothing is to be told: false if something may be.
inline bool usual_sums(double* terms, const std::uint8_t* added, bool minus, int count, std::uint8_t* to) {
    std::uint64_t odd = 0;
    float others[kLanes], made[kLanes];
    const double sign = minus ? -1 : 1;
    std::fill(others, others + count, -0.0f);
    if (added) std::memcpy(others, added, sizeof(float) * count);
    for (int i = 0; i < count; ++i) {
        const double product = terms[i] * sign, other = others[i], sum = product + other;
        odd |= odd_one(product) | odd_one(other) | odd_one(sum);
        made[i] = float(sum);
    }
    if (odd) return false;
    for (int i = 0; added && i < count; ++i) made[i] += 0.0f;  // sums that cancel are +0
    std::memcpy(to, made, sizeof(float) * count);
    return true;
}

// Behind a product's lanes.
inline void finished(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[0], count = event.o[2] ? event.o[2] : kLanes;
    core.macs[event.place] += event.o[2] ? event.o[2] : 8 * 8 * 8;
    if (count == kLanes) return;
    std::memset(core.at(event.a[n + 3], buffer) + sizeof(float) * count, 0, sizeof(float) * (kLanes - count));
    put(core, event, buffer, n + 4, 0xFF00);
}

// a: accumulators, s1, s2, conf, dst, what is unknown; o: accumulators, minus, lanes of bf16 or 0 for block floats.
inline void fmultiply(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[0], count = event.o[2] ? event.o[2] : kLanes;
    const std::uint32_t conf = word(core, event, buffer, n + 2);
    if (!chosen(core, conf, event.o[2] ? 3 : 1, event.o[2] ? 1 : 0)) return;
    double terms[3][kLanes];
    float total[kLanes];
    bool tiny = false;
    const std::uint8_t* s1 = core.at(event.a[n], buffer);
    const std::uint8_t* s2 = core.at(event.a[n + 1], buffer);
    const int first = int(conf & 1);
    bool usual = n - first < 2;
    if (!event.o[2]) blocks(s1, s2, terms[0]);
    else usual = usual && usual_products(s1, s2, terms[0], count);
    const std::uint8_t* added = n > first ? core.at(event.a[first], buffer) : nullptr;
    if (usual && usual_sums(terms[0], added, event.o[1] != 0, count, core.at(event.a[n + 3], buffer)))
        return finished(core, event, buffer);
    if (event.o[2] && !elementwise(core, s1, s2, terms[0], count, tiny)) return;
    for (int i = 0; i < count; ++i) {
        if (std::isinf(float(terms[0][i])))
            return core.fail(kOpen, "a product beyond fp32 is no number, and nobody told its bits");
        if (event.o[1]) terms[0][i] = -terms[0][i];
    }
    int used = 1;
    for (int i = first; i < n; ++i, ++used) {
        float values[kLanes];
        std::memcpy(values, core.at(event.a[i], buffer), sizeof(float) * count);
        if (!finite(core, values, count)) return;
        for (int lane = 0; lane < count; ++lane) {
            terms[used][lane] = values[lane];
            tiny |= subnormal(values[lane]);
        }
    }
    if (!summed(core, terms, used, count, tiny, false, total)) return;
    std::memcpy(core.at(event.a[n + 3], buffer), total, sizeof(float) * count);
    finished(core, event, buffer);
}

// a: accumulators, conf, dst; o: bits, minus acc1, minus acc2, accumulators and 4 for AIE2.
inline void faccumulate(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[3] & 3, count = event.o[0] / 32;
    const std::uint32_t conf = word(core, event, buffer, n), amode = conf >> 1 & 3;
    if (conf & 0x3C01 || conf >> 16) return core.fail(kOpen, "conf %#x of floats is open", conf);
    if (amode != 2) return core.fail(kOpen, "amode %u of an addition of floats is open", amode);
    float given[2][kLanes], total[kLanes];
    double terms[2][kLanes];
    const bool aie2 = event.o[3] & 4;
    bool tiny = false;
    for (int i = 0; i < n; ++i) {
        std::memcpy(given[i], core.at(event.a[i], buffer), sizeof(float) * count);
        if (aie2 ? !numbers(core, given[i], count) : !finite(core, given[i], count)) return;
        for (int lane = 0; lane < count; ++lane) {
            terms[i][lane] = event.o[1 + i] ? -given[i][lane] : given[i][lane];
            tiny |= subnormal(given[i][lane]);
        }
    }
    if (n == 1) std::fill(terms[1], terms[1] + count, -0.0);
    for (int lane = 0; aie2 && lane < count; ++lane) {
        const double both[] = {terms[0][lane], terms[1][lane]};
        const int exponents[] = {exponent(given[0][lane]), n > 1 ? exponent(given[1][lane]) : 0};
        save(total + lane, aligned(both, exponents, n, true));
    }
    if (!aie2 && !summed(core, terms, 2, count, tiny, true, total)) return;
    std::memcpy(core.at(event.a[n + 1], buffer), total, sizeof(float) * count);
}

// a: accumulators, s1, s2, conf, dst; o: accumulators, minus. AIE2's 4 x 8 by 8 x 4.
inline void fmatrix(Core& core, const Event& event, std::uint8_t* buffer) {
    constexpr int kRows = 4, kDepth = 8, kColumns = 4, kCount = kRows * kColumns;
    const int n = event.o[0];
    const std::uint32_t conf = word(core, event, buffer, n + 2);
    if (!chosen(core, conf, 3, 0)) return;
    float a[kRows * kDepth], b[kDepth * kColumns], added[2][kCount], total[kCount];
    const int first = int(conf & 1);  // the first accumulator may be dropped
    widened(core.at(event.a[n], buffer), a, kRows * kDepth);
    widened(core.at(event.a[n + 1], buffer), b, kDepth * kColumns);
    if (!numbers(core, a, kRows * kDepth) || !numbers(core, b, kDepth * kColumns)) return;
    for (int i = first; i < n; ++i) {
        std::memcpy(added[i], core.at(event.a[i], buffer), sizeof added[i]);
        if (!numbers(core, added[i], kCount)) return;
    }
    for (int lane = 0; lane < kCount; ++lane) {
        double terms[kDepth + 2];
        int exponents[kDepth + 2], used = kDepth;
        for (int k = 0; k < kDepth; ++k) {
            const float x = a[lane / kColumns * kDepth + k], y = b[k * kColumns + lane % kColumns];
            terms[k] = event.o[1] ? -(double(x) * y) : double(x) * y;
            exponents[k] = exponent(x) + exponent(y);
        }
        for (int i = first; i < n; ++i, ++used) {
            terms[used] = added[i][lane];
            exponents[used] = exponent(added[i][lane]);
        }
        save(total + lane, aligned(terms, exponents, used, false));
    }
    std::memcpy(core.at(event.a[n + 3], buffer), total, sizeof total);
    core.macs[event.place] += kCount * kDepth;
}

inline constexpr Named kTable[] = {{"fmultiply", fmultiply}, {"fmatrix", fmatrix}, {"faccumulate", faccumulate}};

}  // namespace engine::floats
