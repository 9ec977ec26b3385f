// Steps that every instruction has: reading, landing, addresses, memory, branches, requests.
#pragma once

#include <utility>

#include "cycle.hpp"

namespace engine {

// a: source, destination; o: bytes of both, unless they are fixed; the rest of the destination is zeroed.
template <int Bytes = 0>
BDFORGE_OFTEN void copy(Core& core, const Event& event, std::uint8_t* buffer) {
    std::uint8_t* to = core.at(event.a[1], buffer);
    if constexpr (Bytes) return move<Bytes>(core.at(event.a[0], buffer), to);
    std::memmove(to, core.at(event.a[0], buffer), event.o[0]);
    std::memset(to + event.o[0], 0, event.o[1] - event.o[0]);
}

// a: buffer, register; o: mask. Scalars are not forwarded.
BDFORGE_OFTEN void land_word(Core& core, const Event& event, std::uint8_t* buffer) {
    save(core.registers + event.a[1], load<std::uint32_t>(buffer + ~event.a[0]) & std::uint32_t(event.o[0]));
}

template <int Bytes, class... Image>
BDFORGE_OFTEN void set(Core& core, const Event& event, std::uint8_t* buffer, Image... image) {
    const std::uint8_t* from = buffer + ~event.a[0];
    std::uint8_t* to = core.registers + event.a[1];
    if constexpr (Bytes) move<Bytes>(from, to + image...);
    else (std::memcpy(to + image, from, event.o[0]), ...);
}

// a: buffer, register; o: bytes, unless they are fixed. Vectors are kept a second time, as forwarding shows them.
template <int Bytes = 0>
BDFORGE_OFTEN void forward(Core& core, const Event& event, std::uint8_t* buffer) {
    set<Bytes>(core, event, buffer, kRegisters);
}

template <int Bytes = 0>
BDFORGE_OFTEN void land(Core& core, const Event& event, std::uint8_t* buffer) {
    set<Bytes>(core, event, buffer, 0, kRegisters);
}

// As `land`, where what is forwarded has stayed: states find that out (`pipeline.hpp`).
template <int Bytes = 0>
BDFORGE_OFTEN void land_forwarded(Core& core, const Event& event, std::uint8_t*) {
    std::uint8_t* const to = core.registers + event.a[1];
    if constexpr (Bytes) move<Bytes>(to + kRegisters, to);
    else std::memcpy(to, to + kRegisters, event.o[0]);
}

// a: register; o: bytes. Words that no source tells stop the core.
inline void known(Core& core, const Event& event, std::uint8_t*) {
    for (int at = event.a[0]; at < event.a[0] + event.o[0]; at += 4)
        if (core.unknown[at / 4]) return core.fail(kUnknown, "%d", at);
}

// a: mask of 16-byte pieces that are unknown, register; o: bytes, their place in the result, only as forwarding shows.
inline void tell(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t pieces = word(core, event, buffer, 0);
    for (int i = 0; i < event.o[0]; i += 4) {
        const std::uint8_t unknown = pieces >> ((event.o[1] + i) / 16) & 1;
        core.unknown[(event.a[1] + kRegisters + i) / 4] = unknown;
        if (!event.o[2]) core.unknown[(event.a[1] + i) / 4] = unknown;
    }
}

// a: buffer, register, number of the part; o: bytes of a part.
inline void land_part(Core& core, const Event& event, std::uint8_t* buffer) {
    const int bytes = event.o[0], first = int(word(core, event, buffer, 2)) * bytes;
    for (int half = 0; half < 2; ++half) {
        const int to = half * kRegisters + event.a[1] + first;
        std::memcpy(core.registers + to, buffer + ~event.a[0] + first, bytes);
        std::memset(core.unknown + to / 4, 0, bytes / 4);
    }
}

// a: part of the cascade, the following one, whether that is unknown.
inline void count_part(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t following = word(core, event, buffer, 0) + 1;
    put(core, event, buffer, 1, following < 4 ? following : 0);
    put(core, event, buffer, 2, following >= 4);
}

// a: source, d, what is unknown.
inline void low_half(Core& core, const Event& event, std::uint8_t* buffer) {
    std::uint8_t* to = core.at(event.a[1], buffer);
    std::memmove(to, core.at(event.a[0], buffer), 16);
    std::memset(to + 16, 0, 16);
    put(core, event, buffer, 2, 2);
}

// a: answer, word, whether there was one, what is unknown.
inline void polled(Core& core, const Event& event, std::uint8_t* buffer) {
    const auto answer = load<std::uint64_t>(core.at(event.a[0], buffer));
    const std::uint32_t there = answer >> 32 & 1;
    put(core, event, buffer, 1, there ? std::uint32_t(answer) : 0);
    put(core, event, buffer, 2, there);
    put(core, event, buffer, 3, !there);
}

// Addresses lie at 0 of the buffer, stepped pointers at 4, counters at 8 and 12.
BDFORGE_OFTEN void step(std::uint8_t* buffer, int i, std::uint32_t value) { save(buffer + 4 * i, value & kAddressMask); }

BDFORGE_OFTEN void walk_index(Core& core, const Event& event, std::uint8_t* buffer) {
    step(buffer, 0, word(core, event, buffer, 0) + word(core, event, buffer, 1));
}

BDFORGE_OFTEN void walk_post(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t base = word(core, event, buffer, 0);
    step(buffer, 0, base);
    step(buffer, 1, base + word(core, event, buffer, 1));
}

struct Dimension {
    std::uint32_t m, dn, dj, dc;
};

BDFORGE_OFTEN void walk_2d(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t base = word(core, event, buffer, 0);
    const auto d = load<Dimension>(core.at(event.a[1], buffer));
    const bool ends = d.dc == d.dn;
    step(buffer, 0, base);
    step(buffer, 1, base + (ends ? d.m : d.dj));
    step(buffer, 2, ends ? 0 : d.dc + 1);
}

inline void walk_3d(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t base = word(core, event, buffer, 0);
    const auto low = load<Dimension>(core.at(event.a[1], buffer));
    const auto high = load<Dimension>(core.at(event.a[2], buffer));
    const bool inner = low.dc != low.dn, outer = high.dc != high.dn;
    step(buffer, 0, base);
    step(buffer, 1, base + (inner ? low.dj : outer ? high.dj : low.m));
    step(buffer, 2, inner ? low.dc + 1 : 0);
    step(buffer, 3, inner ? high.dc : outer ? high.dc + 1 : 0);
}

// The place of an access in memory, or nothing and a fault.
BDFORGE_SELDOM std::uint8_t* place_at(Core& core, std::uint32_t address, int bytes, const char* verb, bool aligned = true) {
    static const char* const kNames[] = {"south", "west", "north", "own"};
    const int window = int(address >> 16) - 4;
    if (aligned && address & std::uint32_t(bytes - 1))
        core.fail(kAccess, "%s %d bytes at 0x%x, which is no multiple of %d", verb, bytes, address, bytes);
    else if (window < 0 || window > 3)
        core.fail(kAccess, "%s %d bytes at 0x%x; data memory is from 0x40000 to 0x7ffff", verb, bytes, address);
    else if (!core.windows[window])
        core.fail(kAccess, "%s %d bytes at 0x%x, but there is no core's memory to the %s", verb, bytes, address,
                  kNames[window]);
    return core.fault ? nullptr : core.windows[window] + (address & 0xFFFF);
}

inline std::uint8_t* place(Core& core, std::uint8_t* buffer, int bytes, const char* verb, int& window, int& start) {
    const std::uint32_t address = load<std::uint32_t>(buffer);
    window = int(address >> 16) - 4;
    start = int(address & 0xFFFF);
    std::uint8_t* const found = place_at(core, address, bytes, verb);
    if (found) use_bank(core, address);
    return found;
}

// Faults where nobody wrote some of the bytes, if somebody keeps account of that.
inline void check_written(Core& core, std::uint32_t address, int bytes) {
    for (int i = 0; i < bytes; ++i) {
        const std::uint32_t at = address + i, window = (at >> 16) - 4;
        if (window < 4 && core.written[window] && !core.written[window][at & 0xFFFF])
            return core.fail(kAccess, "loads %d bytes at %#x, which nobody has written", bytes, address);
    }
}

// a: -, destination; o: bytes.
BDFORGE_SELDOM void load_memory(Core& core, const Event& event, std::uint8_t* buffer) {
    int window, start;
    const int bytes = event.o[0];
    const std::uint8_t* from = place(core, buffer, bytes, "loads", window, start);
    if (!from) return;
    if (const std::uint8_t* written = core.written[window])
        for (int i = 0; i < bytes; ++i)
            if (!written[start + i])
                return core.fail(kAccess, "loads %d bytes at %#x, which nobody has written", bytes,
                                 load<std::uint32_t>(buffer));
    std::uint8_t* to = core.at(event.a[1], buffer);
    if (bytes < 8) std::memset(to, 0, 8);
    std::memcpy(to, from, bytes);
}

// What a step that uses banks adds to those of its cycle.
template <Function F>
BDFORGE_SELDOM std::uint64_t banks_of(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint64_t before = std::exchange(core.in_bank, 0);
    F(core, event, buffer);
    return std::exchange(core.in_bank, before);
}

// The same of vectors, without a detour where nothing is wrong; the banks it uses.
template <int Bytes>
BDFORGE_OFTEN std::uint64_t load_at(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t address = load<std::uint32_t>(buffer);
    const std::uint8_t* const window = core.usual[address >> 14];
    if (address % Bytes || !window) return banks_of<load_memory>(core, event, buffer);
    move<Bytes>(window + address, core.at(event.a[1], buffer));
    return count_access(core, address);
}

template <int Bytes>
BDFORGE_OFTEN void load_fixed(Core& core, const Event& event, std::uint8_t* buffer) {
    core.in_bank += load_at<Bytes>(core, event, buffer);
}

// a: pointer, destination; o: bytes, and how many of them from the pointer on are used.
inline void load_line(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t address = load<std::uint32_t>(buffer);
    const std::uint8_t* from = place_at(core, address, event.o[0], "loads");
    if (!from) return;
    use_bank(core, address);
    check_written(core, word(core, event, buffer, 0), event.o[1]);
    std::memcpy(buffer + ~event.a[1], from, event.o[0]);
}

// a: addresses, destination; o: bits of an element, bytes of half a line, number of the first address. Even elements
// come from the first half of a line, odd ones from the second.
inline void gather(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t half = std::uint32_t(event.o[1]);
    const std::uint8_t* addresses = core.at(event.a[0], buffer) + 4 * event.o[2];
    std::uint8_t* to = buffer + ~event.a[1];
    for (int i = 0, before = -1; i < 4; ++i) {
        const std::uint32_t at = load<std::uint32_t>(addresses + 4 * i) & kAddressMask & ~std::uint32_t(event.o[0] / 4 - 1);
        const std::uint32_t first = (at & (2 * half - 1)) >> 1, line = (at & ~(2 * half - 1)) + half * (i & 1);
        const std::uint8_t* from = place_at(core, line, int(half), "loads");
        if (!from) return;
        check_written(core, line + first, event.o[0] / 8);
        for (std::uint32_t j = 0; j < 8; ++j) to[8 * i + j] = from[(first + j) % half];
        if (!(i & 1) || before != int(line >> 14)) use_bank(core, line);
        before = int(line >> 14);
    }
}

// a: source, how many bytes; they lie in one line.
inline void store_some(Core& core, const Event& event, std::uint8_t* buffer) {
    const int bytes = int(word(core, event, buffer, 1));
    if (!bytes) return;
    const std::uint32_t address = load<std::uint32_t>(buffer);
    std::uint8_t* to = place_at(core, address, bytes, "stores", false);
    if (!to) return;
    use_bank(core, address);
    std::memcpy(to, core.at(event.a[0], buffer), bytes);
    if (core.written[(address >> 16) - 4]) std::memset(core.written[(address >> 16) - 4] + (address & 0xFFFF), 1, bytes);
}

// a: source; o: bytes.
BDFORGE_SELDOM void store_any(Core& core, const Event& event, std::uint8_t* buffer) {
    int window, start;
    const int bytes = event.o[0];
    std::uint8_t* to = place(core, buffer, bytes, "stores", window, start);
    if (!to) return;
    std::memcpy(to, core.at(event.a[0], buffer), bytes);
    if (core.written[window]) std::memset(core.written[window] + start, 1, bytes);
}

BDFORGE_OFTEN std::uint64_t store_at(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t address = load<std::uint32_t>(buffer), bytes = event.o[0];
    std::uint8_t* const window = core.usual[address >> 14];
    if (address & (bytes - 1) || !window) return banks_of<store_any>(core, event, buffer);
    const std::uint8_t* from = core.at(event.a[0], buffer);
    if (bytes == 64) move<64>(from, window + address);
    else if (bytes == 32) move<32>(from, window + address);
    else std::memcpy(window + address, from, bytes);
    return count_access(core, address);
}

BDFORGE_OFTEN void store_memory(Core& core, const Event& event, std::uint8_t* buffer) {
    core.in_bank += store_at(core, event, buffer);
}

// a: target, condition, lr, decremented, carry; o: kind (0 always, 1 if zero, 2 if not), call, decrement, return.
inline void branch(Core& core, const Event& event, std::uint8_t* buffer) {
    if (core.slots_left)
        return core.fail(kControl, "a branch in a delay slot of another: no source tells where execution goes on");
    const std::uint32_t condition = event.o[0] ? word(core, event, buffer, 1) : 0;
    if (event.o[0] == 0 || (event.o[0] == 1) == (condition == 0)) {
        const std::uint32_t target = word(core, event, buffer, 0) & kAddressMask;
        if (!event.o[3] && target % 16)
            return core.fail(kControl, "a branch to %#x, which is no multiple of 16: cores hang there", target);
        core.target = int(target);
        core.slots_left = 6;
    }
    if (event.o[1]) {
        if (core.bundle->after_slots < 0)
            return core.fail(kControl, "the delay slots of a call reach beyond program memory");
        put(core, event, buffer, 2, std::uint32_t(core.bundle->after_slots));
    }
    if (event.o[2]) {
        put(core, event, buffer, 3, condition - 1);
        put(core, event, buffer, 4, condition != 0);
    }
}

// a: five values, data, answer; o: number of the request, bytes of data, bytes of the answer.
inline void ask(Core& core, const Event& event, std::uint8_t* buffer) {
    core.request = event.o[0];
    for (int i = 0; i < 5; ++i) core.request_values[i] = word(core, event, buffer, i);
    core.request_bytes = event.o[1] ? event.o[1] : event.o[2];
    core.request_data = core.at(event.o[1] ? event.a[5] : event.a[6], buffer);
}

}  // namespace engine
