// What is due in a cycle follows from the bundles of the cycles before. It is worked out once for each such sequence of
// bundles and kept: a loop runs through as many states as it has bundles, with nothing to decide in them but the next.
// Cores of a program share its states, also those that run at the same time: one is made, and a chain is met, by one of
// them; what leads to either is published behind it.
#pragma once

#include <algorithm>
#include <mutex>

#include "compiled.hpp"

namespace engine {

// The bundles of this cycle (first) and of those before, as far as they still have something to do.
using Window = std::array<const Bundle*, kRing>;

constexpr std::int32_t kLeastRing = 4 << 10;

// A step that is due, of the bundle that issued `age` cycles ago. Its event is a copy, so that those of a state lie one
// behind the other: loops of many bundles are bound by what they touch.
struct Call {
    Event event;
    int age;
};

struct State {
    const Bundle* bundle = nullptr;  // of this cycle
    std::atomic<State*> next[2] = {};  // the states that followed last
    std::vector<Call> calls;         // by phase
    int ends[kPhases] = {};          // of each phase in `calls`
    int pending_stores = 0;          // that are due in later cycles
    std::atomic<int> compiled = -1;  // the number of the compiled chain that begins with it
    std::atomic<std::int64_t> ran = 0;  // how often, where it was not compiled
    Window window{};
};

struct States {
    static constexpr std::size_t kMost = 1 << 14;
    const CompiledStates* library = nullptr;
    std::map<std::uint64_t, int> numbers;         // of the library's chains, by the key of the first state
    std::vector<const std::uint64_t*> keys;       // of a chain's states, by number
    std::vector<std::vector<State*>> chains;      // those that were met, by number
    std::vector<std::atomic<Compiled>> functions;  // of those
    std::map<Window, std::unique_ptr<State>> known;
    std::recursive_mutex making;                  // states, or meeting chains: one leads to the other
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

// Whether what a landing forwards is there since the cycle before, by an event of its own that nothing came behind.
inline bool is_forwarded(const State& state, const Call& landing) {
    const auto meets = [&](const Event& event) {
        return event.a[1] < landing.event.a[1] + landing.event.o[0] && landing.event.a[1] < event.a[1] + event.o[0];
    };
    int others = 0;
    bool found = false;
    for (const Call& call : state.calls)
        others += call.event.function != land_word && (call.event.function == land_part || meets(call.event));
    for (int age = 1; age < kRing; ++age)
        for (const Group& group : state.window[age] ? state.window[age]->groups : std::vector<Group>{})
            if (group.delay == age - 1 && group.phase == kForward)
                for (int i = group.first; i < group.first + group.count; ++i) {
                    const Event& event = state.window[age]->events[i];
                    const bool own = age == landing.age && event.offset == landing.event.offset &&
                                     !std::memcmp(event.a, landing.event.a, sizeof event.a);
                    found |= own;
                    others += !own && meets(event);
                }
    return found && others == 1;  // the landing itself
}

// Let landings leave out what is forwarded already.
inline void shorten(State& state) {
    constexpr Function kShort[][2] = {{land<>, land_forwarded<>}, {land<64>, land_forwarded<64>}, {land<256>, land_forwarded<256>}};
    for (Call& call : state.calls)
        for (const auto& [whole, half] : kShort)
            if (call.event.function == whole && is_forwarded(state, call)) {
                call.event.function = half;
                break;
            }
}

// Let the ring hold what may be under way, what one more bundle and a chain leave unused at its end, and that chain.
inline void grow(Program& program) {
    const std::int32_t bytes = (program.depth + 1) * program.most_buffer + 3 * program.chain;
    while (program.ring < bytes) program.ring = std::max(2 * program.ring, kLeastRing);
}

inline void fill(Program& program, State& state, const Window& window) {
    for (int age = 0; age < kRing; ++age)
        if (window[age]) program.depth = std::max(program.depth, age + 1);
    grow(program);
    state.window = window;
    state.bundle = window[0];
    state.calls.clear();
    for (auto& next : state.next) next = nullptr;
    state.pending_stores = 0;
    state.compiled = -1;
    collect(state, kLand);
    shorten(state);
    for (int phase = kForward; phase < kPhases; ++phase) collect(state, phase);
    for (int age = 0; age < kRing; ++age)
        if (const Bundle* bundle = window[age])
            for (const Group& group : bundle->groups)
                if (group.phase == kStore && group.delay > age) state.pending_stores += group.count;
}

// Whether nothing asks in the middle of a state's cycle.
inline bool can_be_compiled(const State& state) {
    for (int i = state.ends[kForward]; state.bundle && i < state.ends[kRequest]; ++i)
        if (state.calls[i].event.function == ask) return false;
    return state.bundle;
}

// What a compiled state follows from: all that its text holds.
inline std::uint64_t key_of(const State& state) {
    std::uint64_t key = 0xCBF29CE484222325;  // FNV-1a, of words
    const auto add = [&](std::uint64_t word) { key = (key ^ word) * 0x100000001B3, key ^= key >> 29; };
    for (const Bundle* bundle : state.window) add(bundle ? bundle->pc : -1);
    const Bundle& bundle = *state.bundle;
    for (int number : {bundle.size, bundle.buffer, bundle.needs, bundle.keeps, state.pending_stores}) add(number);
    for (int end : state.ends) add(end);
    for (const Call& call : state.calls) {
        for (int number : {number_of(call.event.function), call.age, call.event.offset, call.event.place}) add(number);
        for (int place : call.event.a) add(place);
        for (int option : call.event.o) add(option);
    }
    return key;
}

inline State* found(Program& program, const State& before, const Bundle* bundle, State (&own)[2]);

// Let the chain that begins with a state run compiled, if the library has it and all of its states are those of the library.
inline void meet(Program& program, State& state) {
    States& states = *program.states;
    const std::lock_guard held(states.making);
    if (!states.library || state.compiled >= 0 || !can_be_compiled(state)) return;
    const auto entry = states.numbers.find(key_of(state));
    if (entry == states.numbers.end()) return;
    const int number = entry->second;
    State own[2];
    std::vector<State*> chain{&state};
    for (int n = 1; n < states.library->lengths[number]; ++n) {
        const int pc = chain.back()->bundle->pc + chain.back()->bundle->size;
        const Bundle* bundle = pc < 1 << 14 ? program.bundles[pc / 2].get() : nullptr;  // perhaps not translated yet
        State* next = bundle ? found(program, *chain.back(), bundle, own) : own;
        if (next == &own[0] || next == &own[1] || !can_be_compiled(*next) || key_of(*next) != states.keys[number][n]) return;
        chain.push_back(next);
    }
    states.chains[number] = std::move(chain);
    states.functions[number] = states.library->functions[number];
    state.compiled = number;
}

// The state behind one; a core beyond the most states that are kept has one of its own, which no other leads to.
inline State* found(Program& program, const State& before, const Bundle* bundle, State (&own)[2]) {
    Window window{};
    window[0] = bundle;
    for (int age = 1; age < kRing; ++age) {
        const Bundle* earlier = before.window[age - 1];
        window[age] = earlier && earlier->last >= age ? earlier : nullptr;
    }
    States& states = *program.states;
    const std::lock_guard held(states.making);
    const auto place = states.known.find(window);
    if (place != states.known.end()) return place->second.get();
    if (states.known.size() < States::kMost) {
        State* const made = (states.known[window] = std::make_unique<State>()).get();
        fill(program, *made, window);
        meet(program, *made);
        return made;
    }
    State& mine = &before == &own[0] ? own[1] : own[0];
    fill(program, mine, window);
    return &mine;
}

inline State* after(Program& program, State& before, const Bundle* bundle, State (&own)[2]) {
    for (const auto& next : before.next)  // most states have one behind them, the end of a loop two
        if (State* state = next.load(std::memory_order_acquire); state && state->bundle == bundle) return state;
    State* state = found(program, before, bundle, own);
    if (state != &own[0] && state != &own[1]) {
        before.next[1] = before.next[0].load();
        before.next[0] = state;
    }
    return state;
}

constexpr int kMeet = 1 << 8;  // how often a state runs until its chain is looked for

// Beside others a core counts samples, for all would write to one place; of a prime, so that loops are sampled all round.
[[gnu::noinline]] inline void sample_state(Core& core) {
    constexpr int kSample = 61;
    if (++core.unsampled < kSample) return;
    core.unsampled = 0;
    const std::int64_t before = core.state->ran.load(std::memory_order_relaxed), now = before + kSample;
    core.state->ran.store(now, std::memory_order_relaxed);
    if (before / kMeet != now / kMeet) meet(*core.program, *core.state);
}

// A state has run where it is not compiled: perhaps its chain is there by now.
inline void count_state(Core& core) {
    if (core.beside) return sample_state(core);
    const std::int64_t now = core.state->ran.load(std::memory_order_relaxed) + 1;
    core.state->ran.store(now, std::memory_order_relaxed);
    if (now % kMeet == 0) meet(*core.program, *core.state);
}

}  // namespace engine
