// The text of a library of compiled states.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include "pipeline.hpp"

namespace engine {

class StatesText {
  public:
    // Of the states that ran most, so many at most.
    StatesText(const States& states, std::size_t most) {
        for (const auto& [window, state] : states.known)
            if (state->ran && can_be_compiled(*state)) states_.push_back(state.get());
        std::stable_sort(states_.begin(), states_.end(), [](const State* a, const State* b) { return a->ran > b->ran; });
        states_.resize(std::min(states_.size(), most));
        for (const State* state : states_) numbers_.emplace(state, int(numbers_.size()));
    }

    std::string all() {
        add("#include \"compiled.hpp\"\nnamespace engine {\nnamespace {\n");
        std::string keys, functions;
        for (const State* state : states_) {
            const int number = numbers_.at(state);
            add_state(*state, number);
            keys += std::to_string(key_of(*state)) + "u, ";
            functions += "compiled<S" + std::to_string(number) + ">, ";
        }
        add("const std::uint64_t kKeys[] = {", keys, "};\nconst Compiled kFunctions[] = {", functions, "};\n}\n}\n");
        add("#pragma GCC visibility push(default)\nextern \"C\" { extern const engine::CompiledStates compiled_states; const engine::CompiledStates compiled_states = {",
            states_.size(), ", engine::kKeys, engine::kFunctions, engine::take}; }\n");
        return text_;
    }

  private:
    std::vector<const State*> states_;
    std::map<const State*, int> numbers_;
    std::string text_;

    void put(const std::string& text) { text_ += text; }
    void put(const char* text) { text_ += text; }
    void put(std::int64_t number) { text_ += std::to_string(number); }
    template <class... Parts>
    void add(const Parts&... parts) { (put(parts), ...); }

    void add_state(const State& state, int number) {
        const Bundle& bundle = *state.bundle;
        add("struct S", number, " {\nstatic constexpr int kPc = ", bundle.pc, ", kSize = ", bundle.size, ", kBuffer = ",
            bundle.buffer, ", kKeeps = ", bundle.keeps, ", kRequests = ",
            state.ends[kRequest], ";\n");
        add_steps(state, "land", 0, state.ends[kForward]);
        add("BDFORGE_OFTEN static bool branch(Core& core) {\n");
        if (state.ends[kForward] < state.ends[kRequest]) add("core.bundle = core.program->bundles[kPc / 2].get();\n");
        add_buffers(state, state.ends[kForward], state.ends[kRequest]);
        for (int i = state.ends[kForward]; i < state.ends[kRequest]; ++i) {
            add("core.next_request = ", i + 1, ";\n");
            add_step(state.calls[i]);
            add("if (core.fault) return false;\n");
        }
        add("return true;\n}\n");
        add_steps(state, "operate", state.ends[kRequest], state.ends[kStore]);
        add_next(state);
        add("};\n");
    }

    void add_steps(const State& state, const char* name, int first, int end) {
        add("BDFORGE_OFTEN static void ", name, "(Core& core) {\n");
        add_buffers(state, first, end);
        for (int i = first; i < end; ++i) add_step(state.calls[i]);
        add("}\n");
    }

    // Those of the bundles that steps are of, once: compilers cannot know that steps leave them where they are.
    void add_buffers(const State& state, int first, int end) {
        std::set<int> ages;
        for (int i = first; i < end; ++i) ages.insert(state.calls[i].age);
        for (int age : ages) add("std::uint8_t* const b", age, " = buffer_of(core, ", age, ");\n");
    }

    void add_step(const Call& call) {
        const Event& event = call.event;
        add("{ static constexpr Event event{nullptr, ", event.offset, ", ", event.place);
        for (int place : event.a) add(", ", place);
        for (int option : event.o) add(", ", option);
        add("}; step<", number_of(event.function), ">(core, event, b", call.age, "); }\n");
    }

    void add_next(const State& state) {
        add("BDFORGE_OFTEN static int next(Core& core) {\n");
        for (const State* next : state.next) {
            const auto found = numbers_.find(next);
            if (found == numbers_.end()) continue;
            add("if (core.pc == ", next->bundle->pc, " && !is_kept(core, ", next->bundle->needs, ")) return ",
                found->second, ";\n");
        }
        add("return kLeave;\n}\n");
    }
};

}  // namespace engine
