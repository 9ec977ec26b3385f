// Runs translated programs: cycle by cycle, the events that are due. Called from Python by plain functions.
#include <string>

#include "floats.hpp"
#include "lanes.hpp"
#include "multiply.hpp"
#include "places.hpp"
#include "scalar.hpp"
#include "steps.hpp"
#include "width.hpp"

namespace engine {
namespace {

const Named kSteps[] = {
    {"copy", copy}, {"copy4", copy_fixed<4>}, {"copy32", copy_fixed<32>}, {"copy64", copy_fixed<64>},
    {"copy256", copy_fixed<256>}, {"land_word", land_word}, {"forward64", forward_fixed<64>}, {"forward256", forward_fixed<256>},
    {"land", land}, {"land32", land_fixed<32>},
    {"land64", land_fixed<64>}, {"land256", land_fixed<256>}, {"forward", forward}, {"walk_index", walk_index},
    {"walk_post", walk_post}, {"walk_2d", walk_2d}, {"walk_3d", walk_3d}, {"load", load_memory},
    {"store", store_memory}, {"branch", branch}, {"ask", ask},
};

template <class F>
void each_function(F f) {
    for (const Named& n : kSteps) f(n);
    for (const Named& n : scalar::kTable) f(n);
    for (const Named& n : lanes::kTable) f(n);
    for (const Named& n : places::kTable) f(n);
    for (const Named& n : width::kTable) f(n);
    for (const Named& n : multiply::kTable) f(n);
    for (const Named& n : floats::kTable) f(n);
}

// The pass of a hardware loop that ends with this bundle; where it goes on, or -1.
std::int64_t loop_start(Core& core) {
    const auto lc = load<std::uint32_t>(core.registers + core.lc);
    if (!lc || load<std::uint32_t>(core.registers + core.le) != std::uint32_t(core.pc)) return -1;
    save(core.registers + core.lc, lc - 1);
    return lc > 1 ? std::int64_t(load<std::uint32_t>(core.registers + core.ls)) : -1;
}

inline void issue(Core& core, const Bundle& bundle) {
    const unsigned now = unsigned(core.cycle) % kRing;
    const Event* events = bundle.events.data();
    std::uint8_t* buffers = core.buffers[now][0];
    for (const Group& group : bundle.groups) {
        Due& due = core.ring[(now + group.delay) % kRing];
        due.items[group.phase][due.count[group.phase]++] = {events + group.first, events + group.first + group.count,
                                                            buffers};
    }
}

inline void run_phase(Core& core, Due& due, Phase phase) {
    const int count = due.count[phase];
    for (int i = 0; i < count; ++i) {
        const Item& item = due.items[phase][i];
        for (const Event* event = item.first; event != item.last; ++event)
            event->function(core, *event, item.buffers + event->offset);
    }
    due.count[phase] = 0;
}

void count_conflicts(Core& core) {
    int most = 1;
    for (int i = 0; i < core.bank_count; ++i) {
        int same = 0;
        for (int j = 0; j < core.bank_count; ++j) same += core.banks[i] == core.banks[j];
        if (same > most) most = same;
    }
    core.conflicts += most - 1;
}

bool advance(Core& core) {
    const std::int64_t start = core.loop_start;
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
    core.pc = start >= 0 ? int(start) : core.pc + core.bundle->size;
    return true;
}

// Begin a cycle: what lands, and the next bundle.
int begin(Core& core, std::int64_t& budget) {
    Due& due = core.ring[unsigned(core.cycle) % kRing];
    core.bundle = nullptr;
    if (!core.stopping) {
        if (budget <= 0) return kBudget;
        if (core.pc >= 1 << 14 || core.pc & 1 || !core.program->bundles[core.pc / 2]) return kTranslate;
        --budget;
        core.bundle = core.program->bundles[core.pc / 2].get();
    } else if (core.drained++ == kDepth) {
        return kDone;
    }
    run_phase(core, due, kLand);
    run_phase(core, due, kForward);
    if (core.bundle) {
        ++core.bundles;
        ++core.counts[core.pc / 2];
        issue(core, *core.bundle);
        core.loop_start = loop_start(core);
    }
    core.bank_count = 0;
    core.next_item = core.next_request = 0;
    core.middle = 1;
    return kStepped;
}

// A DONE is a request that only stops; others wait for an answer.
int requests(Core& core, Due& due) {
    while (core.next_item < due.count[kRequest]) {
        const Item& item = due.items[kRequest][core.next_item];
        while (item.first + core.next_request != item.last) {
            const Event& event = item.first[core.next_request++];
            event.function(core, event, item.buffers + event.offset);
            if (core.fault) return kFault;
            if (event.function != ask) continue;
            if (core.request) return kAsk;
            core.stopping = 1;
        }
        ++core.next_item;
        core.next_request = 0;
    }
    due.count[kRequest] = 0;
    return kStepped;
}

int cycle(Core& core, std::int64_t& budget) {
    if (!core.middle)
        if (const int status = begin(core, budget); status != kStepped) return status;
    Due& due = core.ring[unsigned(core.cycle) % kRing];
    if (due.count[kRequest])
        if (const int status = requests(core, due); status != kStepped) return status;
    run_phase(core, due, kRead);
    run_phase(core, due, kOperate);
    run_phase(core, due, kStore);
    if (core.fault) return kFault;
    if (core.bank_count > 1) count_conflicts(core);
    ++core.cycle;
    core.middle = 0;
    return core.bundle && !advance(core) ? kFault : kStepped;
}

}  // namespace
}  // namespace engine

using namespace engine;

extern "C" {

// Names of functions, in the order of their numbers, separated by spaces.
const char* engine_functions() {
    static std::string names;
    if (names.empty()) each_function([](const Named& n) { names += std::string(n.name) + " "; });
    return names.c_str();
}

Program* engine_program() { return new Program; }
void engine_drop_program(Program* program) { delete program; }

struct Row {
    std::int32_t function, flight, delay, phase, a[8], o[4];
};

// Add a bundle; its rows are sorted by delay and phase.
void engine_add(Program* program, int pc, int size, int after_slots, const Row* rows, int count) {
    static std::vector<Function> functions;
    if (functions.empty()) each_function([](const Named& n) { functions.push_back(n.function); });
    auto bundle = std::make_unique<Bundle>();
    bundle->size = size;
    bundle->after_slots = after_slots;
    for (int i = 0; i < count; ++i) {
        Event event{functions[rows[i].function], rows[i].flight * kBuffer, {}, {}};
        std::memcpy(event.a, rows[i].a, sizeof event.a);
        std::memcpy(event.o, rows[i].o, sizeof event.o);
        if (!i || rows[i].delay != rows[i - 1].delay || rows[i].phase != rows[i - 1].phase)
            bundle->groups.push_back({rows[i].delay, rows[i].phase, i, 0});
        ++bundle->groups.back().count;
        bundle->events.push_back(event);
    }
    program->bundles[pc / 2] = std::move(bundle);
}

// Add 8 bytes to the constants; their place.
int engine_constant(Program* program, std::uint64_t value) {
    const std::size_t at = program->constants.size();
    program->constants.resize(at + sizeof value);
    save(program->constants.data() + at, value);
    return kConstants + int(at);
}

Core* engine_core(Program* program, std::uint8_t** windows, std::uint8_t** written, int lc, int ls, int le) {
    Core* core = new Core{};
    core->program = program;
    for (int i = 0; i < 4; ++i) {
        core->windows[i] = windows[i];
        core->written[i] = written[i];
    }
    core->lc = lc;
    core->ls = ls;
    core->le = le;
    return core;
}

void engine_drop_core(Core* core) { delete core; }
std::uint8_t* engine_registers(Core* core) { return core->registers; }
const std::int64_t* engine_counts(const Core* core) { return core->counts; }
std::uint8_t* engine_request_data(Core* core) { return core->request_data; }
const char* engine_message(Core* core) { return core->message; }

struct State {
    std::int64_t cycle, bundles, conflicts;
    std::int32_t pc, fault, stopped, request, bytes;
    std::uint32_t values[2];
    std::int32_t pending_stores;
};

// Stores that write in a later cycle.
int pending_stores(const Core* core) {
    int found = 0;
    for (int i = 0; i < kRing; ++i) {
        const Due& due = core->ring[i];
        if (unsigned(i) != unsigned(core->cycle) % kRing)
            for (int j = 0; j < due.count[kStore]; ++j) found += int(due.items[kStore][j].last - due.items[kStore][j].first);
    }
    return found;
}

void engine_state(const Core* core, State* state) {
    *state = State{core->cycle, core->bundles, core->conflicts, core->pc, core->fault, core->stopping, core->request,
                   core->request_bytes, {core->request_values[0], core->request_values[1]}, pending_stores(core)};
}

void engine_jump(Core* core, int pc) { core->pc = pc; }

// Run up to `budget` bundles (and what follows the last one after a DONE); the status says why it stopped.
int engine_run(Core* core, std::int64_t budget) {
    for (;;)
        if (const int status = cycle(*core, budget); status != kStepped) return status;
}
}
