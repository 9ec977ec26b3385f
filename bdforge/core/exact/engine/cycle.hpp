// Parts of a cycle, of a bundle whose numbers are read, or are constants of a compiled state.
#pragma once

#include <algorithm>

#include "core.hpp"

namespace engine {

// The pass of a hardware loop that ends with this bundle; where it goes on, or -1.
BDFORGE_OFTEN std::int64_t loop_start(Core& core, int pc) {
    const auto lc = load<std::uint32_t>(core.registers + core.lc);
    if (!lc || load<std::uint32_t>(core.registers + core.le) != std::uint32_t(pc)) return -1;
    save(core.registers + core.lc, lc - 1);
    return lc > 1 ? std::int64_t(load<std::uint32_t>(core.registers + core.ls)) : -1;
}

// Whether a bundle waits, since a narrow store keeps memory.
BDFORGE_OFTEN bool is_kept(const Core& core, int needs) { return needs >= 0 && core.cycle + needs <= core.kept; }

// Room for the buffers of what may be under way by now.
inline void widen(Core& core) {
    const std::int32_t ring = core.program->ring.load(std::memory_order_relaxed);  // it grows before a state is there
    if (core.ring_end - core.ring_first >= ring) return;
    core.next_buffer = core.ring_first = core.ring_end;
    core.ring_end += ring;
}

// Adjacent buffers, of as many bytes.
BDFORGE_OFTEN std::uint8_t* room(Core& core, int bytes) {
    if (core.next_buffer + bytes > core.ring_end) core.next_buffer = core.ring_first;
    std::uint8_t* const found = core.buffers + core.next_buffer;
    core.next_buffer += bytes;
    return found;
}

// The buffer of the bundle that issues in a cycle.
BDFORGE_OFTEN void hold(Core& core, std::int64_t cycle, std::uint8_t* buffer) {
    std::uint8_t** const at = core.buffer_of + std::uint64_t(cycle) % kRing;
    at[0] = at[kRing] = buffer;
}

BDFORGE_OFTEN void issue(Core& core, int keeps, int bytes) {
    if (keeps) core.kept = core.cycle + keeps;
    hold(core, core.cycle, room(core, bytes));
}

// The buffer of the bundle that issued `age` cycles ago.
BDFORGE_OFTEN std::uint8_t* buffer_of(const Core& core, int age) {
    return core.buffer_of[kRing + std::uint64_t(core.cycle) % kRing - age];
}

BDFORGE_SELDOM void mark(Core& core, int pc, std::int64_t cycle) {
    if (core.marked == kMostMarks) return;
    core.part = core.parts[pc / 2];
    core.marks[core.marked++] = {cycle, core.conflicts, core.part};
}

// The bundle at an address runs in a cycle.
BDFORGE_OFTEN void count_bundle(Core& core, bool parts, int pc, std::int64_t cycle) {
    ++core.counts[pc / 2];
    if (parts && core.parts[pc / 2] != core.part) mark(core, pc, cycle);
}

// An access of a bank, which serves one in a cycle: four bits for each bank.
BDFORGE_OFTEN std::uint64_t count_access(Core& core, std::uint32_t address) {
    const std::uint32_t bank = address >> 14 & 15;
    ++core.uses[bank];
    return std::uint64_t(1) << 4 * bank;
}

BDFORGE_OFTEN void use_bank(Core& core, std::uint32_t address) { core.in_bank += count_access(core, address); }

BDFORGE_SELDOM void count_waits(Core& core, std::uint64_t banks) {
    std::uint64_t most = 1;
    for (; banks; banks >>= 4) most = std::max(most, banks & 15);
    core.conflicts += std::int64_t(most) - 1;
}

BDFORGE_OFTEN void count_conflicts(Core& core, std::uint64_t banks) {
    if (banks & 0xEEEEEEEEEEEEEEEE) count_waits(core, banks);  // some bank has two or more
}

// Behind the bundle at an address, of so many bytes, with which a loop may end; false at a fault.
BDFORGE_OFTEN bool advance(Core& core, int pc, int size, std::int64_t start) {
    if (core.slots_left) {
        if (start >= 0) {
            core.fail(kControl, "a hardware loop goes round in a delay slot: no source tells where execution goes on");
            return false;
        }
        if (!--core.slots_left) {
            core.pc = core.target;
            return true;
        }
    }
    core.pc = start >= 0 ? int(start) : pc + size;
    return true;
}

}  // namespace engine
