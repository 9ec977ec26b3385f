// Compiled states: what a library is generated from by those that a program runs through (`states_text.hpp`). Events are
// constants in it, so that compilers make of a step that is there for all events what it does for this one.
#pragma once

#include "cycle.hpp"
#include "functions.hpp"

namespace engine {

// A compiled state's cycle: how many bundles are left, and the next state's number, or that it is left to the engine's
// own ways, or stops at a fault.
using Compiled = int (*)(Core&, std::int64_t&);
enum { kLeave = -1, kStop = -2 };

// `keys` say which states `functions` are of: they are taken for no others, whatever program asks for them.
struct CompiledStates {
    std::int32_t count;
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

// In the middle of a cycle.
BDFORGE_SELDOM int stopped(Core& core, std::int64_t start) {
    core.loop_start = start;
    core.middle = 1;
    return kStop;
}

// A cycle in state S, as the engine's own `cycle`; what follows, by number.
template <class S>
int compiled(Core& core, std::int64_t& budget) {
    --budget;
    issue(core, S::kKeeps, S::kBuffer);
    S::land(core);
    const std::int64_t start = count_bundle(core, S::kPc);
    core.in_bank = 0;
    if (!S::branch(core)) return stopped(core, start);
    S::operate(core);
    core.next_request = S::kRequests;
    if (core.fault) return stopped(core, start);
    count_conflicts(core);
    ++core.cycle;
    return advance(core, S::kPc, S::kSize, start) ? S::next(core) : kStop;
}

}  // namespace engine
