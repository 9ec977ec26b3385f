// Runs translated programs: cycle by cycle, the events that are due. Called from Python by plain functions.
#include <string>

#include "thread_pool.hpp"
#include "states_text.hpp"

namespace engine {
namespace {

inline void run(Core& core, const Call& call) {
    call.event.function(core, call.event, buffer_of(core, call.age) + call.event.offset);
}

inline void run_phases(Core& core, int first, int last) {
    const Call* call = core.state->calls.data() + (first ? core.state->ends[first - 1] : 0);
    const Call* const end = core.state->calls.data() + core.state->ends[last];
    for (; call != end; ++call) run(core, *call);
}

// From a compiled chain on, as far as others follow.
int run_compiled(Core& core, std::int64_t& budget) {
    const States& states = *core.program->states;
    const State* done = nullptr;
    int next = core.state->compiled, last = 0;
    for (Compiled chain; next >= 0 && (chain = states.functions[next]);) {
        const int at = next;
        next = chain(core, budget, last);
        if (next != kRefuse) done = states.chains[at][last];
    }
    if (!done) return kRefused;
    core.state = const_cast<State*>(done);
    core.bundle = done->bundle;
    core.pending_stores = done->pending_stores;
    return next == kStop ? kFault : kRan;
}

// Begin a cycle: what lands, and the next bundle.
int begin(Core& core, std::int64_t& budget) {
    core.bundle = nullptr;
    if (!core.stopping) {
        if (budget <= 0) return kBudget;
        if (core.pc >= 1 << 14 || core.pc & 1 || !core.program->bundles[core.pc / 2]) return kTranslate;
        const Bundle* next = core.program->bundles[core.pc / 2].get();
        if (!is_kept(core, next->needs)) core.bundle = next;
    } else if (core.drained++ == kDepth) {
        return kDone;
    }
    core.state = after(*core.program, *core.state, core.bundle, *reinterpret_cast<State(*)[2]>(core.own.get()));
    widen(core);
    if (core.state->compiled >= 0)
        if (const int status = run_compiled(core, budget); status != kRefused) return status;
    count_state(core);
    core.pending_stores = core.state->pending_stores;
    if (core.bundle) {
        --budget;
        issue(core, core.bundle->keeps, core.bundle->buffer);
    }
    run_phases(core, kLand, kForward);
    if (core.bundle) {
        ++core.bundles;
        count_bundle(core, core.parts, core.pc, core.cycle);
        core.loop_start = loop_start(core, core.pc);
    }
    core.in_bank = 0;
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
    if (!core.middle) {
        const int status = begin(core, budget);
        if (status == kRan) return kStepped;
        if (status != kStepped) return status;
    }
    if (const int status = requests(core); status != kStepped) return status;
    run_phases(core, kRead, kStore);
    if (core.fault) return kFault;
    count_conflicts(core, core.in_bank);
    ++core.cycle;
    core.middle = 0;
    return core.bundle && !advance(core, core.pc, core.bundle->size, core.loop_start) ? kFault : kStepped;
}

}  // namespace
}  // namespace engine

using namespace engine;

#pragma GCC visibility push(default)
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
void engine_approximations(const double* rows) { std::memcpy(nonlinear::kRows.data(), rows, sizeof nonlinear::kRows); }

// The shapes of integer products in a table: of a generation's multiplier, dense or sparse.
void engine_shapes(int table, const multiply::Shape* shapes, int count) {
    multiply::kShapes[table].assign(shapes, shapes + count);
}

Program* engine_program(int lc, int ls, int le) {
    Program* program = new Program;
    program->lc = lc;
    program->ls = ls;
    program->le = le;
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
    bundle->pc = pc;
    bundle->size = size;
    bundle->after_slots = after_slots;
    bundle->buffer = buffer;
    bundle->needs = needs;
    bundle->keeps = keeps;
    bundle->last = count ? rows[count - 1].delay : 0;
    program->most_buffer = std::max(program->most_buffer, buffer);
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
    for (auto& [window, state] : program->states->known) {
        state->compiled = -1;  // what follows them is others
        state->ran = 0;
    }
    program->states->library = nullptr;
}

// The text of a library of the states that ran most, so many at most; it stands until the next one is asked for.
const char* engine_states(Program* program, int most) {
    static thread_local std::string text;
    text = StatesText(*program, most).all();
    return text.c_str();
}

// Let states run by a library, those met before and later.
void engine_attach(Program* program, const CompiledStates* library) {
    States& states = *program->states;
    library->take(Tables{});
    states.library = library;
    states.chains.assign(library->count, {});
    states.functions = std::vector<std::atomic<Compiled>>(library->count);
    states.keys.clear();
    states.numbers.clear();
    const std::uint64_t* keys = library->keys;
    for (int i = 0; i < library->count; keys += library->lengths[i++]) {
        states.keys.push_back(keys);
        states.numbers[*keys] = i;
    }
    program->chain = library->bytes;
    grow(*program);
    std::vector<State*> known;  // more may be found on the way
    for (auto& [window, state] : states.known) known.push_back(state.get());
    for (State* state : known) meet(*program, *state);
}

// Add 8 bytes to the constants; their place.
int engine_constant(Program* program, std::uint64_t value) {
    const std::size_t at = program->constants.size();
    program->constants.resize(at + sizeof value);
    save(program->constants.data() + at, value);
    return kConstants + int(at);
}

Shared* engine_core(Program* program, std::uint8_t** windows, std::uint8_t** written) {
    Core* core = new Core{};
    core->program = program;
    void* rings = core->rings.get();
    std::size_t room = kRings;
    core->buffers = static_cast<std::uint8_t*>(std::align(64, kRings - 64, rings, room));
    core->state = &program->states->empty;
    core->own = std::make_unique<State[]>(2);
    std::copy_n(windows, 4, core->windows);
    std::copy_n(written, 4, core->written);
    for (int i = 0; i < 16; ++i) core->usual[16 + i] = written[i / 4] || !windows[i / 4] ? nullptr : windows[i / 4] - ((4 + i / 4) << 16);
    core->kept = core->part = -1;
    core->lc = program->lc;
    core->ls = program->ls;
    core->le = program->le;
    return core;
}

void engine_drop_core(Shared* core) { delete static_cast<Core*>(core); }

// Run up to `budget` bundles (and what follows the last one after a DONE); the status says why it stopped.
int engine_run(Shared* shared, std::int64_t budget) {
    Core& core = static_cast<Core&>(*shared);
    core.constants = core.program->constants.data();
    for (;;)
        if (const int status = cycle(core, budget); status != kStepped) return status;
}

// As that, cores none of which reaches memory that another one does, on so many threads.
void engine_run_beside(Shared** cores, const std::int64_t* budgets, int* statuses, int count, int threads) {
    ThreadPool::run(count, threads, [=](int i) {
        Core& core = static_cast<Core&>(*cores[i]);
        core.beside = threads > 1;
        statuses[i] = engine_run(cores[i], budgets[i]);
        core.beside = 0;
    });
}
}
