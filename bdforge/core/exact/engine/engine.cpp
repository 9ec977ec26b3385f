// Runs translated programs: cycle by cycle, the events that are due. Called from Python by plain functions.
#include <string>

#include "fifo.hpp"
#include "floats.hpp"
#include "lanes.hpp"
#include "multiply.hpp"
#include "nonlinear.hpp"
#include "pipeline.hpp"
#include "places.hpp"
#include "scalar.hpp"
#include "steps.hpp"
#include "width.hpp"

namespace engine {
namespace {

const Named kSteps[] = {
    {"copy", copy<>}, {"copy4", copy<4>}, {"copy32", copy<32>}, {"copy64", copy<64>},
    {"copy256", copy<256>}, {"land_word", land_word}, {"land", land<>}, {"land32", land<32>},
    {"land64", land<64>}, {"land256", land<256>}, {"forward", forward<>}, {"forward64", forward<64>},
    {"forward256", forward<256>}, {"walk_index", walk_index}, {"walk_post", walk_post}, {"walk_2d", walk_2d},
    {"walk_3d", walk_3d}, {"load", load_memory}, {"load32", load_fixed<32>}, {"load64", load_fixed<64>}, {"load_line", load_line}, {"gather", gather},
    {"store", store_memory}, {"store_some", store_some}, {"branch", branch}, {"ask", ask},
    {"known", known}, {"tell", tell}, {"land_part", land_part}, {"count_part", count_part}, {"low_half", low_half},
    {"polled", polled},
};

template <class F>
void each_function(F f) {
    for (const Named& n : kSteps) f(n);
    for (const Named& n : scalar::kTable) f(n);
    for (const Named& n : lanes::kTable) f(n);
    for (const Named& n : places::kTable) f(n);
    for (const Named& n : width::kTable) f(n);
    for (const Named& n : multiply::kTable) f(n);
    for (const Named& n : fifo::kTable) f(n);
    for (const Named& n : floats::kTable) f(n);
    for (const Named& n : nonlinear::kTable) f(n);
}

// The pass of a hardware loop that ends with this bundle; where it goes on, or -1.
std::int64_t loop_start(Core& core) {
    const auto lc = load<std::uint32_t>(core.registers + core.lc);
    if (!lc || load<std::uint32_t>(core.registers + core.le) != std::uint32_t(core.pc)) return -1;
    save(core.registers + core.lc, lc - 1);
    return lc > 1 ? std::int64_t(load<std::uint32_t>(core.registers + core.ls)) : -1;
}

inline void issue(Core& core, const Bundle& bundle) {
    const Program& program = *core.program;
    // Buffers come round once nothing of theirs is under way: few of them stay in the cache.
    if (core.next_buffer + bundle.buffer > (program.last + 2) * program.most_buffer) core.next_buffer = 0;
    core.buffer_of[std::uint64_t(core.cycle) % kRing] = core.buffers + core.next_buffer;
    core.next_buffer += bundle.buffer;
}

inline void run(Core& core, const Call& call) {
    const std::uint64_t issued = std::uint64_t(core.cycle) - std::uint64_t(call.age);
    call.event.function(core, call.event, core.buffer_of[issued % kRing] + call.event.offset);
}

inline void run_phases(Core& core, int first, int last) {
    const Call* call = core.state->calls.data() + (first ? core.state->ends[first - 1] : 0);
    const Call* const end = core.state->calls.data() + core.state->ends[last];
    for (; call != end; ++call) run(core, *call);
}

inline void count_conflicts(Core& core) {
    if (core.bank_count == 2) {
        core.conflicts += core.banks[0] == core.banks[1];
        return;
    }
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

void mark(Core& core) {
    if (core.marked == kMostMarks) return;
    core.part = core.parts[core.pc / 2];
    core.marks[core.marked++] = {core.cycle, core.conflicts, core.part};
}

// Begin a cycle: what lands, and the next bundle.
int begin(Core& core, std::int64_t& budget) {
    core.bundle = nullptr;
    if (!core.stopping) {
        if (budget <= 0) return kBudget;
        if (core.pc >= 1 << 14 || core.pc & 1 || !core.program->bundles[core.pc / 2]) return kTranslate;
        const Bundle* next = core.program->bundles[core.pc / 2].get();
        if (next->needs < 0 || core.cycle + next->needs > core.kept) {  // else a narrow store keeps memory
            --budget;
            core.bundle = next;
            if (next->keeps) core.kept = core.cycle + next->keeps;
        }
    } else if (core.drained++ == kDepth) {
        return kDone;
    }
    core.state = after(*core.program->states, *core.state, core.bundle, *reinterpret_cast<State(*)[2]>(core.own.get()));
    core.pending_stores = core.state->pending_stores;
    if (core.bundle) issue(core, *core.bundle);
    run_phases(core, kLand, kForward);
    if (core.bundle) {
        ++core.bundles;
        ++core.counts[core.pc / 2];
        if (core.parts && core.parts[core.pc / 2] != core.part) mark(core);
        core.loop_start = loop_start(core);
    }
    core.bank_count = 0;
    core.next_request = core.state->ends[kForward];
    core.middle = 1;
    return kStepped;
}

// A DONE is a request that only stops; others wait for an answer.
int requests(Core& core) {
    while (core.next_request < core.state->ends[kRequest]) {
        const Call& call = core.state->calls[core.next_request++];
        run(core, call);
        if (core.fault) return kFault;
        if (call.event.function != ask) continue;
        if (core.request) return kAsk;
        core.stopping = 1;
    }
    return kStepped;
}

int cycle(Core& core, std::int64_t& budget) {
    if (!core.middle)
        if (const int status = begin(core, budget); status != kStepped) return status;
    if (const int status = requests(core); status != kStepped) return status;
    run_phases(core, kRead, kStore);
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
    static const std::string names = [] {
        std::string all;
        each_function([&](const Named& n) { all += std::string(n.name) + " "; });
        return all;
    }();
    return names.c_str();
}

// The n-th way to multiply int8 matrices, to compare them; false when this machine has no so many.
bool engine_product(int n, int rows, const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, std::int32_t* p) {
    const auto ways = bytes::all();
    if (n >= int(ways.size())) return false;
    ways[n](rows, s1, s2, sign1, sign2, p);
    return true;
}

// What shuffles move, for all programs: routes of bytes of so many modes.
void engine_shuffles(const std::uint8_t* routes, int modes) {
    std::memcpy(places::kRoutes.byte, routes, std::size_t(modes) * places::kBytes);
}

// How far approximations may be off, for all programs: a row for each function.
void engine_approximations(const double* rows) { std::memcpy(nonlinear::kRows, rows, sizeof nonlinear::kRows); }

// The shapes of integer products in a table: of a generation's multiplier, dense or sparse.
void engine_shapes(int table, const multiply::Shape* shapes, int count) {
    multiply::kShapes[table].assign(shapes, shapes + count);
}

Program* engine_program() {
    Program* program = new Program;
    program->states = std::make_unique<States>();
    return program;
}
void engine_drop_program(Program* program) { delete program; }

struct Row {
    std::int32_t function, offset, delay, phase, a[8], o[4];
};

// Add a bundle that needs `buffer` bytes; its rows are sorted by delay and phase.
void engine_add(Program* program, int pc, int size, int buffer, int after_slots, int needs, int keeps,
                const Row* rows, int count) {
    static const std::vector<Function> functions = [] {  // by one thread, whichever comes first
        std::vector<Function> all;
        each_function([&](const Named& n) { all.push_back(n.function); });
        return all;
    }();
    auto bundle = std::make_unique<Bundle>();
    bundle->size = size;
    bundle->after_slots = after_slots;
    bundle->buffer = buffer;
    bundle->needs = needs;
    bundle->keeps = keeps;
    bundle->last = count ? rows[count - 1].delay : 0;
    program->most_buffer = std::max(program->most_buffer, buffer);
    program->last = std::max(program->last, bundle->last);
    for (int i = 0; i < count; ++i) {
        Event event{functions[rows[i].function], rows[i].offset, pc / 2, {}, {}};
        std::memcpy(event.a, rows[i].a, sizeof event.a);
        std::memcpy(event.o, rows[i].o, sizeof event.o);
        if (!i || rows[i].delay != rows[i - 1].delay || rows[i].phase != rows[i - 1].phase)
            bundle->groups.push_back({rows[i].delay, rows[i].phase, i, 0});
        ++bundle->groups.back().count;
        bundle->events.push_back(event);
    }
    program->bundles[pc / 2] = std::move(bundle);
}

// Let all bundles be translated anew when they are reached.
void engine_forget(Program* program) {
    // Kept: events under way in some core's state still point into them.
    for (auto& bundle : program->bundles)
        if (bundle) program->forgotten.push_back(std::move(bundle));
}

// Add 8 bytes to the constants; their place.
int engine_constant(Program* program, std::uint64_t value) {
    const std::size_t at = program->constants.size();
    program->constants.resize(at + sizeof value);
    save(program->constants.data() + at, value);
    return kConstants + int(at);
}

Shared* engine_core(Program* program, std::uint8_t** windows, std::uint8_t** written, int lc, int ls, int le) {
    Core* core = new Core{};
    core->program = program;
    core->state = &program->states->empty;
    core->own = std::make_unique<State[]>(2);
    std::copy_n(windows, 4, core->windows);
    std::copy_n(written, 4, core->written);
    core->kept = core->part = -1;
    core->lc = lc;
    core->ls = ls;
    core->le = le;
    return core;
}

void engine_drop_core(Shared* core) { delete static_cast<Core*>(core); }

// Run up to `budget` bundles (and what follows the last one after a DONE); the status says why it stopped.
int engine_run(Shared* core, std::int64_t budget) {
    for (;;)
        if (const int status = cycle(static_cast<Core&>(*core), budget); status != kStepped) return status;
}
}
