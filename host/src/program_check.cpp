#include <string_view>

#include "messages.hpp"
#include "sequence_program.hpp"

namespace bdforge::sequence {
namespace {

[[noreturn]] void malformed(const std::string& what) { throw SequenceError("sequence program: " + what); }

/// Whether statements find their values: within the loops whose counters these depend on.
class Checker {
public:
    explicit Checker(const Source& source) : program_(source.program), target_(source.target) {}

    Dependencies check() {
        read_.resize(program_.values.size());
        for (ValueId id = 0; id < program_.values.size(); ++id) value(id);
        block(program_.body, no_loop, false);
        for (const auto& [when, otherwise] : program_.requirements) {
            reach("a requirement", no_loop, {when});
            note("a requirement", no_loop, otherwise);
        }
        for (const Operand& found : program_.operands) operand(found);
        for (const Argument& argument : program_.arguments) reach("an argument", no_loop, {argument.elements});
        return {std::move(innermost_), std::move(read_)};
    }

private:
    /// Whether `loop` is `inner` or around it.
    bool around(std::uint32_t loop, std::uint32_t inner) const {
        while (inner != loop && inner != no_loop) inner = program_.loops[inner].outer;
        return inner == loop;
    }

    void value(ValueId id) {
        const Value& value = program_.values[id];
        innermost_.push_back(value.operation == Operation::index ? static_cast<std::uint32_t>(value.number) : no_loop);
        torn_.push_back(no_loop);
        for (std::uint32_t i = 0; i < facts(value.operation).operands; ++i) depend(id, value.operands[i]);
        for (std::uint32_t i = 0; i < facts(value.operation).operands; ++i)
            read_[value.operands[i]] = read_[value.operands[i]] || innermost_[value.operands[i]] != innermost_[id];
    }

    /// A value belongs to the inner one of its operands' loops; one of two loops side by side has no place to be.
    void depend(ValueId id, ValueId of) {
        if (of >= id)
            malformed(concat("value ", id, " (", facts(program_.values[id].operation).name,
                           ") names a value that does not stand before it"));
        std::uint32_t &own = innermost_[id], &torn = torn_[id];
        if (torn_[of] != no_loop) torn = torn_[of];
        if (around(innermost_[of], own)) return;
        if (!around(own, innermost_[of])) torn = own;
        own = innermost_[of];
    }

    void reach(std::string_view what, std::uint32_t inside, const std::vector<ValueId>& ids) {
        for (const ValueId id : ids) {
            if (id >= innermost_.size()) malformed(concat(what, " names value ", id, "; there are ", innermost_.size()));
            read_[id] = true;
            const bool found = around(innermost_[id], inside);
            if (found && torn_[id] == no_loop) continue;
            malformed(concat(what, " uses value ", id, ", which needs the counter of loop ",
                           program_.loops[found ? torn_[id] : innermost_[id]].number, ", outside of it"));
        }
    }

    void note(std::string_view what, std::uint32_t inside, const Note& note) {
        std::size_t blanks = 0;
        for (std::size_t at = note.text.find("{}"); at != std::string::npos; at = note.text.find("{}", at + 2))
            ++blanks;
        if (blanks != note.values.size())
            malformed(concat(what, " says ", blanks, " {} of ", note.values.size(), " values"));
        reach(what, inside, note.values);
    }

    void argument(std::string_view what, std::uint32_t argument) const {
        if (argument < program_.arguments.size()) return;
        malformed(concat(what, argument, "; there are ", program_.arguments.size()));
    }

    void operand(const Operand& operand) {
        const std::string what = "operand " + operand.name;
        argument(what + " has argument ", operand.argument);
        reach("an operand", no_loop, {operand.staged, operand.offset});
        for (const auto& [size, walked, tile, once] : operand.axes)
            reach("an operand", no_loop, {size, walked, tile == no_value ? size : tile});
        for (const auto& [axis, count, step, stride] : operand.loops) {
            if (axis >= operand.axes.size())
                malformed(concat(what, " has a loop over axis ", axis, " of ", operand.axes.size()));
            reach("an operand", no_loop, {count, step, stride});
        }
    }

    void block(Range range, std::uint32_t inside, bool in_step) {
        for (std::uint32_t at = range.first; at < range.last; ++at) statement(program_.statements[at], inside, in_step);
    }

    void statement(Statement statement, std::uint32_t inside, bool in_step) {
        const std::uint32_t i = statement.index;
        switch (statement.kind) {
            case Kind::loop:
                reach("a loop's count", inside, {program_.loops[i].count});
                return block(program_.loops[i].body, i, in_step);
            case Kind::choice:
                reach("a choice", inside, {program_.choices[i].when});
                block(program_.choices[i].body, inside, in_step);
                return block(program_.choices[i].otherwise, inside, in_step);
            case Kind::step:
                if (in_step) malformed("a step stands in another; steps follow one another");
                return step(program_.steps[i], inside);
            case Kind::task:
                if (!in_step) malformed("a task stands in no step; nothing would say when its BDs are free");
                return task(program_.tasks[i], inside);
            case Kind::write:
                reach("a write", inside, {program_.writes[i].address});
                return reach("a write", inside, program_.writes[i].values);
            case Kind::configure: return configure(program_.configures[i], inside, in_step);
        }
    }

    void configure(const Configure& configure, std::uint32_t inside, bool in_step) {
        if (in_step) malformed("a configuration changes in a step; it changes between steps");
        for (const std::uint32_t number : {configure.configuration, configure.ahead})
            if (number != no_value && number >= program_.configurations)
                malformed(concat("configuration ", number, " is wanted; there are ", program_.configurations));
        for (const Range early : configure.early) block(early, inside, true);
    }

    void step(const Step& step, std::uint32_t inside) {
        for (std::uint32_t at = step.awaits.first; at < step.awaits.last; ++at) {
            const Tokens& tokens = program_.tokens[at];
            channel("a wait", tokens.direction, tokens.channel);
            reach("a wait", inside, {tokens.column, tokens.columns});
        }
        if (step.note != no_value) note("a note", inside, program_.notes[step.note]);
        block(step.body, inside, true);
    }

    void task(const Task& task, std::uint32_t inside) {
        channel("a task", task.direction, task.channel);
        reach("a task", inside, {task.column, task.runs});
        for (std::uint32_t at = task.bds.first; at < task.bds.last; ++at) bd(program_.bds[at], inside);
    }

    void bd(const Bd& bd, std::uint32_t inside) {
        argument("a BD's argument is ", bd.argument);
        reach("a BD", inside, {bd.offset});
        for (std::uint32_t i = 0; i < bd.rank; ++i) reach("a BD", inside, {bd.sizes[i], bd.strides[i]});
        for (const ValueId id : {bd.runs[0], bd.runs[1], bd.when})
            if (id != no_value) reach("a BD", inside, {id});
    }

    void channel(std::string_view what, Direction direction, std::uint32_t channel) const {
        const std::size_t channels = target_.queues[static_cast<std::size_t>(direction)].size();
        if (channel >= channels) malformed(concat(what, " is on channel ", channel, "; a shim has ", channels));
    }

    const Program& program_;
    const Target& target_;
    std::vector<std::uint32_t> innermost_;
    std::vector<bool> read_;
    std::vector<std::uint32_t> torn_;  // of a value that needs two loops side by side one of them
};

}  // namespace

Dependencies check(const Source& source) {
    for (std::size_t way = 0; way < source.target.queues.size(); ++way)
        if (source.target.controls[way].size() != source.target.queues[way].size())
            malformed("the target's channels have other controls than queues");
    return Checker(source).check();
}

}  // namespace bdforge::sequence
