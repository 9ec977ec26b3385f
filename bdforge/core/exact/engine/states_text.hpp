// The text of a library of compiled states: chains of those whose bundles lie one behind the other.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "chain_steps.hpp"

namespace engine {

class StatesText {
  public:
    // Of the states that ran most, so many at most.
    StatesText(const Program& program, std::size_t most) : program_(program) {
        for (const auto& [window, state] : program.states->known)
            if (state->ran && can_be_compiled(*state)) states_.push_back(state.get());
        std::stable_sort(states_.begin(), states_.end(), [](const State* a, const State* b) { return a->ran > b->ran; });
        states_.resize(std::min(states_.size(), most));
        for (const State* state : states_) chosen_.insert(state);
        for (const State* state : states_) keeps_ |= state->bundle->keeps != 0;
        count_slots();
        find_heads();
        for (const State* state : states_)
            if (heads_.count(state)) add_chain(state);
    }

    std::string all() {
        if (bytes::has_dot()) add("#define BDFORGE_DOT\n");
        add("#include \"compiled.hpp\"\nnamespace engine {\nnamespace {\n");
        std::string keys, functions, lengths;
        int bytes = 0;
        for (std::size_t number = 0; number < chains_.size(); ++number) {
            const Chain& chain = chains_[number];
            add_function(chain, int(number));
            for (const State* state : chain) keys += std::to_string(key_of(*state)) + "u, ";
            lengths += std::to_string(chain.size()) + ", ";
            functions += "chain" + std::to_string(number) + ", ";
            bytes = std::max(bytes, bytes_of(chain));
        }
        add("const std::int32_t kLengths[] = {", lengths, "};\nconst std::uint64_t kKeys[] = {", keys,
            "};\nconst Compiled kFunctions[] = {", functions, "};\n}\n}\n#pragma GCC visibility push(default)\n",
            "extern \"C\" { extern const engine::CompiledStates compiled_states; const engine::CompiledStates compiled_states = {",
            chains_.size(), ", ", bytes, ", engine::kLengths, engine::kKeys, engine::kFunctions, engine::take}; }\n");
        return text_;
    }

  private:
    static constexpr std::size_t kMostLength = 64;  // of a chain: compilers take longer for each bundle of long ones

    const Program& program_;
    std::vector<const State*> states_;
    std::set<const State*> chosen_, heads_;
    std::map<const State*, int> slots_;    // delay slots that may be left as it begins
    std::map<const State*, int> numbers_;  // of chains, by their first states
    std::vector<Chain> chains_;
    bool keeps_ = false;  // whether any state keeps memory for a while
    std::string text_;

    void put(const std::string& text) { text_ += text; }
    void put(const char* text) { text_ += text; }
    void put(std::int64_t number) { text_ += std::to_string(number); }
    template <class... Parts>
    void add(const Parts&... parts) { (put(parts), ...); }

    static bool has(const State& state, int phase, Function function) {
        const auto begin = state.calls.begin() + (phase ? state.ends[phase - 1] : 0);
        return std::any_of(begin, state.calls.begin() + state.ends[phase],
                           [&](const Call& call) { return call.event.function == function; });
    }

    // In how many cycles from this state on a branch goes on elsewhere, at most; 0 if none may be under way.
    static int left(const State& state, int slots) { return has(state, kRequest, branch) ? 6 : slots; }

    // Where only some of those before a state have slots left, chains begin without: loops come from themselves.
    void count_slots() {
        for (int again = 0; again < 6; ++again) {
            std::map<const State*, std::set<int>> before;
            for (const State* state : states_)
                for (const State* next : state->next)
                    if (chosen_.count(next)) before[next].insert(std::max(left(*state, slots_[state]) - 1, 0));
            for (const auto& [state, all] : before) slots_[state] = *all.begin() ? *all.rbegin() : 0;
        }
    }

    static bool is_behind(const State& state, const State& before) {
        return state.bundle->pc == before.bundle->pc + before.bundle->size;
    }

    // Whether it changes when loops go round: the next one's state asks anew.
    bool sets_loop(const State& state) const {
        for (int i = 0; i < state.ends[kForward]; ++i) {
            const Event& event = state.calls[i].event;
            const int bytes = event.function == land_word ? 4 : event.o[0];
            for (int place : {program_.lc, program_.ls, program_.le})
                if (event.a[1] <= place && place < event.a[1] + bytes) return true;
        }
        return false;
    }

    // Whether a loop or a branch goes on elsewhere behind it: a chain across the end of a loop would never be entered.
    static bool turns(const State& state) {
        return std::any_of(state.next, state.next + 2,
                           [&](const State* next) { return next && next->bundle && !is_behind(*next, state); });
    }

    // Where chains begin: where more than the bundle before leads to or comes behind it, and where loops are asked for anew.
    void find_heads() {
        std::set<const State*> inner;
        for (const State* state : states_)
            for (const State* next : state->next) {
                if (!chosen_.count(next)) continue;
                if (is_behind(*next, *state) && !turns(*state) && !sets_loop(*next) && !sets_loop(*state)) inner.insert(next);
                else heads_.insert(next);
            }
        for (const State* state : states_)
            if (!inner.count(state)) heads_.insert(state);
    }

    // What lies behind its head; behind joins of ways, what others have as well.
    void add_chain(const State* state) {
        Chain chain;
        for (; state; state = behind(*state)) {
            if (chain.size() == kMostLength) chains_.push_back(std::exchange(chain, {}));
            if (chain.empty() && !numbers_.emplace(state, int(chains_.size())).second) return;
            chain.push_back(state);
        }
        chains_.push_back(chain);
    }

    const State* behind(const State& state) const {
        for (const State* next : state.next)
            if (chosen_.count(next) && !heads_.count(next) && is_behind(*next, state)) return next;
        return nullptr;
    }

    // Bytes of a chain's buffers, which come round as those of all bundles do: what is touched stays small.
    int bytes_of(const Chain& chain) const {
        int all = 0, most = 0;
        for (const State* state : chain) {
            all += state->bundle->buffer;
            most = std::max(most, state->bundle->buffer);
        }
        return std::min(all, (program_.depth + 2) * most);
    }

    std::string buffer_of(const Chain& chain, int bundle) const {
        if (bundle < 0) return "p" + std::to_string(-bundle);
        int offset = 0;
        for (int i = 0; i <= bundle; ++i) {
            if (offset + chain[i]->bundle->buffer > bytes_of(chain)) offset = 0;
            offset += chain[i]->bundle->buffer;
        }
        return "b0 + " + std::to_string(offset - chain[bundle]->bundle->buffer);
    }

    void add_function(const Chain& chain, int number) {
        const Bundle &first = *chain.front()->bundle, &last = *chain.back()->bundle;
        const int slots = slots_.count(chain.front()) ? slots_.at(chain.front()) : 0;
        add("int chain", number, "(Core& core, std::int64_t& budget, int& last) {\nstatic constexpr Entry entry{", chain.size(),
            ", ", slots, ", ", program_.lc, ", ", program_.le, ", ", first.pc, ", ", last.pc, ", ", int(keeps_),
            "};\nif (!enters(core, budget, entry)) return kRefuse;\n",
            "const std::int64_t cycle = core.cycle;\nconst bool parts = core.parts;\n");
        std::vector<bool> branches, may_end;
        for (int n = 0, left_now = slots; n < int(chain.size()); ++n, left_now = std::max(left_now - 1, 0)) {
            left_now = left(*chain[n], left_now);
            branches.push_back(left_now > 0);
            may_end.push_back(left_now > 0 || (n + 1 < int(chain.size()) && waits(*chain[n + 1])));
        }
        const ChainSteps steps(chain, may_end);
        add_buffers(chain, steps);
        for (std::size_t n = 0; n < chain.size(); ++n) add_state(chain, steps, int(n), branches[n]);
        add("}\n");
    }

    bool waits(const State& state) const { return keeps_ && state.bundle->needs >= 0; }

    // The buffers of its own bundles, b0 on, and of those before it, p1 the last.
    void add_buffers(const Chain& chain, const ChainSteps& steps) {
        std::set<int> before;
        for (const ChainStep& step : steps.steps)
            if (step.bundle < 0) before.insert(-step.bundle);
        for (int age : before) add("std::uint8_t* const p", age, " = buffer_of(core, ", age, ");\n");
        add("std::uint8_t* const b0 = room(core, ", bytes_of(chain), ");\n");
    }

    void add_state(const Chain& chain, const ChainSteps& steps, int n, bool branches) {
        const State& state = *chain[n];
        const Bundle& bundle = *state.bundle;
        const bool ends = n + 1 == int(chain.size()), conflicts = may_conflict(state);
        if (n && waits(state)) {
            add("if (core.kept >= cycle + ", n + bundle.needs, ") {\ncore.pc = ", bundle.pc, ";\n");
            add_end(chain, n - 1);
            add("return kLeave;\n}\n");
        }
        add("{\n");
        if (bundle.keeps) add("core.kept = cycle + ", n + bundle.keeps, ";\n");
        add_steps(chain, steps, n, kLand, kForward);
        add("count_bundle(core, parts, ", bundle.pc, ", cycle + ", n, ");\n");
        if (ends) add("const std::int64_t start = loop_start(core, ", bundle.pc, ");\n");
        if (conflicts) add("std::uint64_t banks = core.in_bank = 0;\n");
        if (has(state, kRequest, branch)) add("core.bundle = core.program->bundles[", bundle.pc / 2, "].get();\n");
        add_steps(chain, steps, n, kRequest, kRequest);
        add_steps(chain, steps, n, kRead, kStore);
        if (conflicts) add("count_conflicts(core, banks + core.in_bank);\n");
        if (ends) {
            add_end(chain, n);
            add("core.pc = ", bundle.pc, ";\nif (!advance(core, ", bundle.pc, ", ", bundle.size, ", start)) return kStop;\n");
            add_next(state);
        } else if (branches) {
            add("if (branches(core)) {\n");
            add_end(chain, n);
            add_next(state);
            add("}\n");
        }
        add("}\n");
    }

    // Steps of a cycle that use banks, and whether they tell which.
    static constexpr std::pair<Function, const char*> kTelling[] = {
        {load_fixed<32>, "load_at<32>"}, {load_fixed<64>, "load_at<64>"}, {store_memory, "store_at"}};

    static const char* telling(Function function) {
        for (const auto& [plain, name] : kTelling)
            if (plain == function) return name;
        return nullptr;
    }

    static bool uses_banks(Function function) {
        static const std::set<Function> others = {load_memory, load_line, store_some, gather};
        return telling(function) || others.count(function);
    }

    static bool may_conflict(const State& state) {
        int accesses = 0;
        for (const Call& call : state.calls) accesses += call.event.function == gather ? 4 : uses_banks(call.event.function);
        return accesses > 1;
    }

    // Those of some phases; faults stop the core behind each step that may ask, and behind all that operate.
    void add_steps(const Chain& chain, const ChainSteps& steps, int n, int first, int last) {
        const std::string fault = "if (core.fault) return stopped(core, budget, last, cycle, " + std::to_string(n) + ", " +
                                  std::to_string(chain[n]->bundle->pc) + ");\n";
        bool any = false;
        for (const ChainStep& step : steps.steps) {
            if (step.cycle != n || step.phase < first || step.phase > last || step.left_out) continue;
            add("{ static constexpr Event event", event_text(step.event), ";");
            if (step.product)
                add(" static constexpr Event product", event_text(*step.product), "; multiply::multiply_accumulated<", int(step.taken),
                    ">(core, product, event, ", buffer_of(chain, step.bundle), " + event.offset); }\n");
            else if (step.taken)
                add(" multiply::take(core, event, ", buffer_of(chain, step.bundle), " + event.offset); }\n");
            else if (const char* name = telling(step.event.function))
                add(may_conflict(*chain[n]) ? " banks += " : " ", name, "(core, event, ", buffer_of(chain, step.bundle), " + event.offset); }\n");
            else
                add(" step<", number_of(step.event.function), ">(core, event, ", buffer_of(chain, step.bundle), "); }\n");
            if (first == kRequest) add(fault);
            any = true;
        }
        if (any && first == kRead) add(fault);
    }

    static std::string event_text(const Event& event) {
        std::string text = "{nullptr, " + std::to_string(event.offset) + ", " + std::to_string(event.place);
        for (int place : event.a) text += ", " + std::to_string(place);
        for (int option : event.o) text += ", " + std::to_string(option);
        return text + "}";
    }

    // What others need of the cycles up to the n-th state's.
    void add_end(const Chain& chain, int n) {
        add("ran(core, budget, last, cycle, ", n, ");\n");
        for (int age = 0; age <= std::min(n, kRing - 1); ++age)
            if (const Bundle* bundle = chain[n]->window[age])
                if (bundle->last > age) add("hold(core, cycle + ", n - age, ", ", buffer_of(chain, n - age), ");\n");
    }

    void add_next(const State& state) {
        for (const State* next : state.next) {
            const auto found = numbers_.find(next);
            if (found == numbers_.end()) continue;
            add("if (core.pc == ", next->bundle->pc, " && !is_kept(core, ", next->bundle->needs, ")) return ",
                found->second, ";\n");
        }
        add("return kLeave;\n");
    }
};

}  // namespace engine
