// Operations that move lanes: broadcasts, extracts, inserts, shifts, shuffles.
#pragma once

#include "lanes.hpp"

namespace engine::places {

using lanes::kBytes;
using lanes::of_width;
using lanes::read;
using lanes::write;

inline bool lane_exists(Core& core, int bits, std::uint32_t index) {
    const int count = 8 * kBytes / bits;
    if (index < std::uint32_t(count)) return true;
    core.fail(kOpen, "lane %u of %d: what an index beyond the last lane does is open", index, count);
    return false;
}

BDFORGE_OFTEN void broadcast(const std::uint8_t* from, std::uint8_t* to, int bytes) {
    if (bytes < 16)
        return of_width(8 * bytes, [&](auto u, auto) BDFORGE_INLINED {
            using T = decltype(u);
            *reinterpret_cast<lanes::Wide<T>*>(to) = load<T>(from) + lanes::Wide<T>{};
        });
    std::uint8_t lane[16];
    std::memcpy(lane, from, bytes);
    for (int i = 0; i < kBytes; i += bytes) std::memcpy(to + i, lane, bytes);
}

// a: s1, index, sign, d; o: bits.
inline void vextract(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t index = word(core, event, buffer, 1);
    if (!lane_exists(core, event.o[0], index)) return;
    const bool sign = word(core, event, buffer, 2) != 0;
    of_width(event.o[0], [&](auto u, auto s) {
        const auto lane = read<decltype(u)>(core, event, buffer, 0).lane[index];
        save(core.at(event.a[3], buffer), sign ? std::int64_t(decltype(s)(lane)) : std::int64_t(std::uint64_t(lane)));
    });
}

// a: s1, source, index, d; o: bits.
inline void vinsert(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t index = word(core, event, buffer, 2);
    if (!lane_exists(core, event.o[0], index)) return;
    of_width(event.o[0], [&](auto u, auto) {
        using T = decltype(u);
        auto x = read<T>(core, event, buffer, 0);
        x.lane[index] = load<T>(core.at(event.a[1], buffer));
        write(core, event, buffer, 3, x);
    });
}

// a: s1, s2, d; o: bits. High: the scalar s2 comes in on top; low: the scalar s1 at lane 0.
template <bool High>
void vpush(Core& core, const Event& event, std::uint8_t* buffer) {
    const int bytes = event.o[0] / 8;
    std::uint8_t both[kBytes + 8];
    std::memcpy(both, core.at(event.a[0], buffer), High ? kBytes : bytes);
    std::memcpy(both + (High ? kBytes : bytes), core.at(event.a[1], buffer), High ? bytes : kBytes);
    std::memcpy(core.at(event.a[2], buffer), both + (High ? bytes : 0), kBytes);
}

inline void shifted(Core& core, const std::uint8_t* s1, const std::uint8_t* s2, std::uint32_t shift, std::uint8_t* to) {
    if (shift > kBytes) return core.fail(kOpen, "shifts by more than 64 bytes are open, this one is by %u", shift);
    std::uint8_t both[2 * kBytes];
    std::memcpy(both, s1, kBytes);
    std::memcpy(both + kBytes, s2, kBytes);
    std::memcpy(to, both + shift, kBytes);
}

// a: s1, s2, shift, d.
inline void vshift(Core& core, const Event& event, std::uint8_t* buffer) {
    shifted(core, core.at(event.a[0], buffer), core.at(event.a[1], buffer), word(core, event, buffer, 2),
            core.at(event.a[3], buffer));
}

// a: s1, step, s2, shift, d.
inline void vshift_align(Core& core, const Event& event, std::uint8_t* buffer) {
    static constexpr int kSteps[] = {0, 4, 8, 16, 32};
    const std::uint32_t step = word(core, event, buffer, 1) & 7, shift = word(core, event, buffer, 3);
    if (step > 4) return core.fail(kOpen, "step %u of an aligned shift is open: known are 0 to 4", step);
    const std::uint8_t *s1 = core.at(event.a[0], buffer), *s2 = core.at(event.a[2], buffer);
    std::uint8_t* to = core.at(event.a[4], buffer);
    if (!step) return shifted(core, s1, s2, shift, to);
    const int high = int(std::min<std::uint32_t>(shift, kBytes)), by = kSteps[step];
    std::uint8_t made[kBytes] = {};
    std::memcpy(made, s1 + by, kBytes - by);
    std::memcpy(made + kBytes - high, s2, high);
    std::memcpy(to, made, kBytes);
}

// Source byte of each result byte by mode: handed over by Python.
struct Routes {
    std::uint8_t byte[64][kBytes];
};

inline Routes kRoutes;

inline void shuffle(Core& core, const std::uint8_t* both, std::uint32_t mode, int modes, std::uint8_t* to) {
    if (mode >= std::uint32_t(modes))
        return core.fail(kOpen, "shuffle mode %u is unassigned: there are 0 to %d", mode, modes - 1);
    for (int i = 0; i < kBytes; ++i) to[i] = both[kRoutes.byte[mode][i]];
}

// a: s1, s2, mode, d; o: modes that there are.
inline void vshuffle(Core& core, const Event& event, std::uint8_t* buffer) {
    std::uint8_t both[2 * kBytes];
    std::memcpy(both, core.at(event.a[0], buffer), kBytes);
    std::memcpy(both + kBytes, core.at(event.a[1], buffer), kBytes);
    shuffle(core, both, word(core, event, buffer, 2), event.o[0], core.at(event.a[3], buffer));
}

// A lane in all lanes. a: source, index if the lane is one of several, mode if they are shuffled then, d; o: bits, modes
// that there are.
template <bool Extract, bool Shuffle>
BDFORGE_OFTEN void vbroadcast(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t index = Extract ? word(core, event, buffer, 1) : 0;
    if (!lane_exists(core, event.o[0], index)) return;
    const int bytes = event.o[0] / 8;
    const std::uint8_t* from = core.at(event.a[0], buffer) + index * bytes;
    std::uint8_t* to = core.at(event.a[1 + Extract + Shuffle], buffer);
    if (!Shuffle) return broadcast(from, to, bytes);
    std::uint8_t both[2 * kBytes] = {};  // modes of two registers have zeros for the second
    broadcast(from, both, bytes);
    shuffle(core, both, word(core, event, buffer, 1 + Extract) & 63, event.o[1], to);
}

inline constexpr Named kTable[] = {
    {"vbroadcast", vbroadcast<false, false>}, {"vextract", vextract}, {"vinsert", vinsert},
    {"vextract_broadcast", vbroadcast<true, false>}, {"vpush_high", vpush<true>}, {"vpush_low", vpush<false>},
    {"vshift", vshift}, {"vshift_align", vshift_align}, {"vshuffle", vshuffle}, {"vbroadcast_shuffle", vbroadcast<false, true>},
    {"vextract_broadcast_shuffle", vbroadcast<true, true>},
};

}  // namespace engine::places
