// What is due in a cycle follows from the bundles of the cycles before. It is worked out once for each such sequence of
// bundles and kept: a loop runs through as many states as it has bundles, with nothing to decide in them but the next.
#pragma once

#include <algorithm>

#include "core.hpp"

namespace engine {

// The bundles of this cycle (first) and of those before, as far as they still have something to do.
using Window = std::array<const Bundle*, kRing>;

// A step that is due, of the bundle that issued `age` cycles ago. Its event is a copy, so that those of a state lie one
// behind the other: loops of many bundles are bound by what they touch.
struct Call {
    Event event;
    int age;
};

struct State {
    const Bundle* bundle = nullptr;  // of this cycle
    State* next[2] = {};             // the states that followed last
    std::vector<Call> calls;         // by phase
    int ends[kPhases] = {};          // of each phase in `calls`
    int pending_stores = 0;          // that are due in later cycles
    Window window{};
};

struct States {
    static constexpr std::size_t kMost = 1 << 14;
    std::map<Window, std::unique_ptr<State>> known;
    State empty;
};

inline void collect(State& state, int phase) {
    for (int age = kRing - 1; age >= 0; --age)
        if (const Bundle* bundle = state.window[age])
            for (const Group& group : bundle->groups)
                if (group.delay == age && group.phase == phase)
                    for (int i = 0; i < group.count; ++i) state.calls.push_back({bundle->events[group.first + i], age});
    state.ends[phase] = int(state.calls.size());
}

inline void fill(State& state, const Window& window) {
    state.window = window;
    state.bundle = window[0];
    state.calls.clear();
    state.next[0] = state.next[1] = nullptr;
    state.pending_stores = 0;
    for (int phase = 0; phase < kPhases; ++phase) collect(state, phase);
    for (int age = 0; age < kRing; ++age)
        if (const Bundle* bundle = window[age])
            for (const Group& group : bundle->groups)
                if (group.phase == kStore && group.delay > age) state.pending_stores += group.count;
}

// The state behind one; a core beyond the most states that are kept has one of its own, which no other leads to.
inline State* found(States& states, const State& before, const Bundle* bundle, State (&own)[2]) {
    Window window{};
    window[0] = bundle;
    for (int age = 1; age < kRing; ++age) {
        const Bundle* earlier = before.window[age - 1];
        window[age] = earlier && earlier->last >= age ? earlier : nullptr;
    }
    const auto place = states.known.find(window);
    if (place != states.known.end()) return place->second.get();
    if (states.known.size() < States::kMost) {
        auto made = std::make_unique<State>();
        fill(*made, window);
        return (states.known[window] = std::move(made)).get();
    }
    State& mine = &before == &own[0] ? own[1] : own[0];
    fill(mine, window);
    return &mine;
}

inline State* after(States& states, State& before, const Bundle* bundle, State (&own)[2]) {
    for (State* state : before.next)  // most states have one behind them, the end of a loop two
        if (state && state->bundle == bundle) return state;
    State* state = found(states, before, bundle, own);
    if (state != &own[0] && state != &own[1]) {
        before.next[1] = before.next[0];
        before.next[0] = state;
    }
    return state;
}

}  // namespace engine
