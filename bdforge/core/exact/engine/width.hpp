// Operations that change the width of lanes.
#pragma once

#include <algorithm>

#include "core.hpp"

namespace engine::width {

using I = std::int64_t;

inline I lane_of(const std::uint8_t* from, int bits, int index, bool sign) {
    if (bits == 4) {
        const int nibble = from[index / 2] >> (index % 2 * 4) & 15;
        return sign && nibble > 7 ? nibble - 16 : nibble;
    }
    switch (bits) {
        case 8: return sign ? I(load<std::int8_t>(from + index)) : I(from[index]);
        case 16: return sign ? I(load<std::int16_t>(from + 2 * index)) : I(load<std::uint16_t>(from + 2 * index));
        case 32: return sign ? I(load<std::int32_t>(from + 4 * index)) : I(load<std::uint32_t>(from + 4 * index));
    }
    return load<I>(from + 8 * index);
}

inline void put_lane(std::uint8_t* to, int bits, int index, I value) {
    switch (bits) {
        case 4:
            if (index % 2) to[index / 2] = std::uint8_t(to[index / 2] & 15) | std::uint8_t(value << 4);
            else to[index / 2] = std::uint8_t(value & 15);
            return;
        case 8: to[index] = std::uint8_t(value); return;
        case 16: return save(to + 2 * index, std::uint16_t(value));
        case 32: return save(to + 4 * index, std::uint32_t(value));
    }
    save(to + 8 * index, value);
}

// Lanes of the first place, each made another of those at the place `to`.
template <class F>
inline void each_lane(Core& core, const Event& event, std::uint8_t* buffer, int count, int bits, bool sign, int to,
                      int result_bits, F made) {
    const std::uint8_t* from = core.at(event.a[0], buffer);
    std::uint8_t* result = core.at(event.a[to], buffer);
    for (int i = 0; i < count; ++i) put_lane(result, result_bits, i, made(lane_of(from, bits, i, sign)));
}

inline bool known_modes(Core& core, std::uint32_t rounding, std::uint32_t saturate) {
    if (rounding > 13 || (rounding > 3 && rounding < 8))
        core.fail(kOpen, "crRnd is %u, which no source assigns a rounding", rounding);
    else if (saturate == 2)
        core.fail(kOpen, "crSat is 2, which no source explains");
    return !core.fault;
}

inline I clamped(I value, int bits, std::uint32_t saturate, bool sign) {
    if (!saturate) return value;
    const I high = sign ? (I(1) << (bits - 1)) - 1 : (I(1) << bits) - 1;
    const I low = sign ? (saturate == 3 ? -high : -high - 1) : 0;
    return value < low ? low : value > high ? high : value;
}

inline I rounded(I value, int shift, std::uint32_t rounding) {
    if (!shift) return value;
    const I quotient = value >> shift;
    const std::uint64_t rest = std::uint64_t(value) & ((std::uint64_t(1) << shift) - 1);
    const std::uint64_t half = std::uint64_t(1) << (shift - 1);
    if (!rest) return quotient;
    bool up = rest > half;
    if (rounding < 8 || rest == half) switch (rounding) {
        case 0: case 8: up = false; break;
        case 1: case 9: up = true; break;
        case 2: case 10: up = value < 0; break;
        case 3: case 11: up = value >= 0; break;
        case 12: up = quotient & 1; break;
        case 13: up = !(quotient & 1); break;
    }
    return quotient + up;
}

constexpr int kSrsBias = 4;  // shifts by 60 to 63 are up by 4 to 1

// Up by `by` bits: low bits are right, and those of a result that is clamped are beyond its range if they should be.
inline I raised(I value, int by, std::uint32_t saturate) {
    constexpr I kFar = I(1) << 58;
    if (saturate) value = std::clamp(value, -kFar, kFar);
    return I(std::uint64_t(value) << by);
}

// a: source, shift, rounding, saturation, lanes of 64 bits, sign, d; o: bits of source and result.
inline void srs(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t rounding = word(core, event, buffer, 2), saturate = word(core, event, buffer, 3);
    if (!known_modes(core, rounding, saturate)) return;
    const int lane = word(core, event, buffer, 4) ? 64 : 32, count = event.o[0] / lane, bits = event.o[1] / count;
    const int shift = (int(word(core, event, buffer, 1) & 63) + kSrsBias) % 64 - kSrsBias;
    const bool sign = word(core, event, buffer, 5) != 0;
    each_lane(core, event, buffer, count, lane, true, 6, bits, [&](I value) {
        const I moved = shift < 0 ? raised(value, -shift, saturate) : rounded(value, shift, rounding);
        return clamped(moved, bits, saturate, sign);
    });
}

// a: source, shift, saturation, lanes of 64 bits, sign, d; o: bits of source and result.
inline void ups(Core& core, const Event& event, std::uint8_t* buffer) {
    const int lane = word(core, event, buffer, 3) ? 64 : 32, count = event.o[1] / lane, bits = event.o[0] / count;
    const int shift = int(word(core, event, buffer, 1) & 63);
    const bool saturate = word(core, event, buffer, 2) != 0, sign = word(core, event, buffer, 4) != 0;
    const __int128 limit = __int128(1) << (lane - 1);
    each_lane(core, event, buffer, count, bits, sign, 5, lane, [&](I narrow) {
        const __int128 value = __int128(narrow) << shift;
        if (saturate && (value < -limit || value >= limit))
            core.fail(kOpen, "what saturation makes of a shift that overflows a lane is open");
        return I(value);
    });
}

// a: source, 8 bits, sign, d; o: bits of the source.
inline void unpack(Core& core, const Event& event, std::uint8_t* buffer) {
    const int bits = word(core, event, buffer, 1) ? 8 : 4, count = event.o[0] / bits;
    const bool sign = word(core, event, buffer, 2) != 0;
    each_lane(core, event, buffer, count, bits, sign, 3, 2 * bits, [](I value) { return value; });
}

// a: source, saturation, 16 bits, sign, d; o: bits of the source.
inline void pack(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t saturate = word(core, event, buffer, 1);
    if (!known_modes(core, 0, saturate)) return;
    const int bits = word(core, event, buffer, 2) ? 16 : 8, count = event.o[0] / bits;
    const bool sign = word(core, event, buffer, 3) != 0;
    each_lane(core, event, buffer, count, bits, true, 4, bits / 2,
              [&](I value) { return clamped(value, bits / 2, saturate, sign); });
}

// a: source, d; o: lanes.
inline void widen_bf16(Core& core, const Event& event, std::uint8_t* buffer) {
    each_lane(core, event, buffer, event.o[0], 16, false, 1, 32, [](I lane) { return lane << 16; });
}

// a: source, rounding, d; o: lanes.
inline void narrow_bf16(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t rounding = word(core, event, buffer, 1);
    if (!known_modes(core, rounding, 0)) return;
    each_lane(core, event, buffer, event.o[0], 32, false, 2, 16, [&](I lane) {
        const I magnitude = lane & 0x7FFFFFFF;
        if (magnitude > 0x7F800000) core.fail(kOpen, "a NaN made narrower is open");
        const bool negative = lane >> 31;
        const I found = rounded(negative ? -magnitude : magnitude, 16, rounding);
        return negative ? 0x8000 | -found : found;
    });
}

inline int exponent_of(std::uint32_t word) { return int(word >> 23 & 255); }

constexpr int kBlock = 8, kBlocks = 8;

// Numbers in their blocks' scales: two's complement rounded down, or magnitudes to nearest even. Whether any block has one
// that is too large, by block.
inline unsigned mantissas(const std::uint32_t* words, const int* shared, bool nearest, std::int32_t* to) {
    unsigned beyond = 0;
    for (int block = 0; block < kBlocks; ++block) {
        std::int32_t most = 0;
        for (int i = kBlock * block; i < kBlock * (block + 1); ++i) {
            const int exponent = exponent_of(words[i]), shift = std::min(17 + shared[block] - exponent, 30);
            const std::int32_t magnitude = exponent ? (1 << 23) | (words[i] & 0x7FFFFF) : 0, minus = -std::int32_t(words[i] >> 31);
            const std::int32_t value = nearest ? magnitude : (magnitude ^ minus) - minus, quotient = value >> shift;
            const std::int32_t rest = magnitude & ((std::int32_t(1) << shift) - 1), half = std::int32_t(1) << (shift - 1);
            const std::int32_t rounded = quotient + (rest + (quotient & 1) > half);
            to[i] = nearest ? (rounded ^ minus) - minus : quotient;
            most = std::max(most, to[i]);
        }
        beyond |= unsigned(most > 127) << block;
    }
    return beyond;
}

// 64 numbers as block floats: mantissas, then an exponent for each 8 of them.
inline bool as_blocks(Core& core, const std::uint8_t* source, std::uint32_t rounding, std::uint8_t* to) {
    if (rounding != 0 && rounding != 12) return core.fail(kOpen, "crRnd %u of block floats is open", rounding), false;
    std::uint32_t words[kBlock * kBlocks];
    std::int32_t made[kBlock * kBlocks];
    int shared[kBlocks];
    std::memcpy(words, source, sizeof words);
    for (int block = 0; block < kBlocks; ++block) {
        int most = 0;
        bool odd = false, zero = false, negative = false;
        for (int i = kBlock * block; i < kBlock * (block + 1); ++i) {
            const int exponent = exponent_of(words[i]);
            odd |= (exponent == 255) | ((exponent == 0) & ((words[i] & 0x7FFFFF) != 0));
            zero |= exponent == 0;
            negative |= (exponent == 0) & (words[i] >> 31 != 0);
            most = std::max(most, exponent);
        }
        if (odd) core.fail(kOpen, "block floats of subnormal or infinite numbers or of none are open");
        else if (zero && ((most && most < 7) || (!rounding && negative)))
            core.fail(kOpen, "a zero among block floats is open where it is negative or all are small");
        if (core.fault) return false;
        shared[block] = most;
    }
    if (const unsigned beyond = mantissas(words, shared, rounding, made)) {
        for (int block = 0; block < kBlocks; ++block) shared[block] += beyond >> block & 1;
        mantissas(words, shared, rounding, made);
    }
    for (int i = 0; i < kBlock * kBlocks; ++i) to[i] = std::uint8_t(made[i]);
    for (int block = 0; block < kBlocks; ++block) {
        if (shared[block] == 255) return core.fail(kOpen, "block floats that overflow are open"), false;
        to[kBlock * kBlocks + block] = std::uint8_t(shared[block]);
    }
    return true;
}

// a: source, rounding, d.
inline void blocks_bfp16(Core& core, const Event& event, std::uint8_t* buffer) {
    as_blocks(core, core.at(event.a[0], buffer), word(core, event, buffer, 1), core.at(event.a[2], buffer));
}

// a: source, scale, d.
inline void floor_bf16(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t shift = word(core, event, buffer, 1);
    if (shift >= 32) return core.fail(kOpen, "a scale by %u is open: known are 0 to 31", shift);
    each_lane(core, event, buffer, 16, 16, false, 2, 32, [&](I lane) {
        const int exponent = lane >> 7 & 255;
        if (exponent == 255 || (!exponent && lane & 127))
            core.fail(kOpen, "floats to integers are open but of normal numbers");
        const I magnitude = exponent ? 128 | (lane & 127) : 0, value = lane >> 15 ? -magnitude : magnitude;
        const int power = exponent - 134 + int(shift);
        const I found = power >= 0 ? value * (I(1) << std::min(power, 40)) : value >> std::min(-power, 40);
        if (found < -(I(1) << 31) || found >= I(1) << 31)
            core.fail(kOpen, "floats beyond the range of integers are open");
        return found;
    });
}

// a: source, scale, d.
inline void to_float(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t source = word(core, event, buffer, 0), shift = word(core, event, buffer, 1);
    if (shift) return core.fail(kOpen, "a scale by %u of a scalar is open", shift);
    const float found = float(std::int32_t(source));
    if (double(found) != double(std::int32_t(source)))
        return core.fail(kOpen, "an integer that is rounded to a float is open");
    save(core.at(event.a[2], buffer), found);
}

// a: source, scale, d.
inline void to_integer(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t shift = word(core, event, buffer, 1);
    if (shift) return core.fail(kOpen, "a scale by %u of a scalar is open", shift);
    const float value = load<float>(core.at(event.a[0], buffer));
    if (!(value >= -2147483648.0f && value < 2147483648.0f) || value != float(std::int32_t(value)))
        return core.fail(kOpen, "a float that is no integer of 32 bits is open");
    put(core, event, buffer, 2, std::uint32_t(std::int32_t(value)));
}

inline constexpr Named kTable[] = {
    {"srs", srs}, {"ups", ups}, {"unpack", unpack}, {"pack", pack}, {"widen_bf16", widen_bf16},
    {"narrow_bf16", narrow_bf16}, {"blocks_bfp16", blocks_bfp16}, {"floor_bf16", floor_bf16}, {"to_float", to_float},
    {"to_integer", to_integer},
};

}  // namespace engine::width
