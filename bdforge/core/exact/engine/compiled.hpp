// Compiled chains: what a library is generated from by the states that a program runs through (`states_text.hpp`).
// Events are constants in it, so that compilers make of a step that is there for all events what it does for this one,
// and what is the same in all cycles of a chain is asked once, as it is entered.
#pragma once

#include "cycle.hpp"
#include "functions.hpp"

namespace engine {

// The cycles of a chain: how many bundles are left, and which of its states was the last; the next chain's number, or
// that it is left to the engine's own ways, stops at a fault, or has not begun, since it would not run to its end.
using Compiled = int (*)(Core&, std::int64_t&, int&);
enum { kLeave = -1, kStop = -2, kRefuse = -3 };

// `keys` say which states chains are of, chain behind chain: they are taken for no others, whatever program asks for them.
struct CompiledStates {
    std::int32_t count, bytes;  // chains, and their buffers at most
    const std::int32_t* lengths;
    const std::uint64_t* keys;
    const Compiled* functions;
    void (*take)(const Tables&);
};

// A step, with the buffer of its bundle.
template <int Number>
BDFORGE_OFTEN void step(Core& core, const Event& event, std::uint8_t* buffer) {
    constexpr Function function = function_of(Number);
    function(core, event, buffer + event.offset);
}

// What a chain asks as it is entered: its bundles, delay slots that may be left, places of the loop's registers, the
// first and the last address, whether it asks itself if memory is kept.
struct Entry {
    int length, slots, lc, le;
    std::uint32_t first, last;
    bool keeps;
};

// Whether a chain runs from its first to its last bundle unless a branch or a kept memory ends it, whose cycles ask.
BDFORGE_OFTEN bool enters(const Core& core, std::int64_t budget, const Entry& entry) {
    if (budget < entry.length || core.slots_left > entry.slots || (!entry.keeps && core.kept >= core.cycle)) return false;
    if (entry.length == 1 || !load<std::uint32_t>(core.registers + entry.lc)) return true;
    const auto le = load<std::uint32_t>(core.registers + entry.le);  // no loop may end before the chain does
    return le < entry.first || le >= entry.last;
}

// Behind the cycles up to the n-th state's.
BDFORGE_OFTEN void ran(Core& core, std::int64_t& budget, int& last, std::int64_t cycle, int n) {
    core.cycle = cycle + n + 1;
    core.bundles += n + 1;
    budget -= n + 1;
    last = n;
}

// In the middle of the n-th state's cycle.
BDFORGE_SELDOM int stopped(Core& core, std::int64_t& budget, int& last, std::int64_t cycle, int n, int pc) {
    ran(core, budget, last, cycle, n);
    --core.cycle;
    core.pc = pc;
    core.middle = 1;
    return kStop;
}

// Whether a branch goes on behind this cycle.
BDFORGE_OFTEN bool branches(Core& core) {
    if (!core.slots_left || --core.slots_left) return false;
    core.pc = core.target;
    return true;
}

}  // namespace engine
