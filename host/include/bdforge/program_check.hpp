// The check of a sequence program: all that a run could trip over but values; and where each value is computed.
//
// The same rules as `bdforge/design/sequences/program_check.py`. That a manifest's tables are whole, its numbers in range and its loops
// each there once is seen to where they are read (`src/program.cpp`); here is what parts ask of one another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bdforge/program.hpp"

namespace bdforge::generator {

/// Home of values that depend on no loop.
constexpr std::uint32_t always = none;

/// For each value the innermost loop whose counter it depends on, or `always`.
using Homes = std::vector<std::uint32_t>;

namespace detail {

[[noreturn]] inline void malformed(const std::string &what) { throw SequenceError("sequence program: " + what); }

/// Whether statements find their values: within the loops whose counters these depend on.
class Checker {
public:
    Checker(const Program &program, const Target &target) : program_(program), target_(target) {}

    Homes check() {
        for (Place place = 0; place < program_.values.size(); ++place)
            value(place);
        block(program_.body, always, false);
        for (const Requirement &requirement : program_.requirements) {
            reach("a requirement", always, requirement.when);
            note("a requirement", always, requirement.otherwise);
        }
        for (const Operand &found : program_.operands)
            operand(found);
        for (const Argument &argument : program_.arguments)
            reach("an argument", always, argument.elements);
        return std::move(homes_);
    }

private:
    /// Whether `loop` is `inner` or around it.
    bool around(std::uint32_t loop, std::uint32_t inner) const {
        while (inner != loop && inner != always)
            inner = program_.loops[inner].outer;
        return inner == loop;
    }

    void value(Place place) {
        const Value &value = program_.values[place];
        homes_.push_back(value.operation == Operation::index ? static_cast<std::uint32_t>(value.number) : always);
        torn_.push_back(always);
        for (std::uint32_t i = 0; i < facts(value.operation).operands; ++i)
            depend(place, value.operands[i]);
    }

    /// A value belongs to the inner one of its operands' loops; one of two loops side by side has no place to be.
    void depend(Place place, Place of) {
        if (of >= place)
            malformed(named(place) + " names a value that does not stand before it");
        std::uint32_t &home = homes_[place], &torn = torn_[place];
        if (torn_[of] != always)
            torn = torn_[of];
        if (around(homes_[of], home))
            return;
        if (!around(home, homes_[of]))
            torn = home;
        home = homes_[of];
    }

    std::string named(Place place) const {
        return "value " + std::to_string(place) + " (" + facts(program_.values[place].operation).name + ")";
    }

    void reach(const char *what, std::uint32_t inside, Place place) const {
        if (place >= homes_.size())
            malformed(std::string(what) + " names value " + std::to_string(place) + "; there are " +
                      std::to_string(homes_.size()));
        const std::uint32_t home = homes_[place];
        const bool found = around(home, inside);
        if (found && torn_[place] == always)
            return;
        malformed(std::string(what) + " uses value " + std::to_string(place) + ", which needs the counter of loop " +
                  std::to_string(program_.loops[found ? torn_[place] : home].number) + ", outside of it");
    }

    void note(const char *what, std::uint32_t inside, const Note &note) const {
        std::size_t blanks = 0;
        for (std::size_t at = note.text.find("{}"); at != std::string::npos; at = note.text.find("{}", at + 2))
            ++blanks;
        if (blanks != note.values.size())
            malformed(std::string(what) + " says " + std::to_string(blanks) + " {} of " +
                      std::to_string(note.values.size()) + " values");
        for (const Place place : note.values)
            reach(what, inside, place);
    }

    void operand(const Operand &operand) const {
        const std::string what = "operand " + operand.name;
        if (operand.argument >= program_.arguments.size())
            malformed(what + " has argument " + std::to_string(operand.argument) + "; there are " +
                      std::to_string(program_.arguments.size()));
        reach("an operand", always, operand.staged);
        reach("an operand", always, operand.offset);
        for (const auto &[size, walked, tile, once] : operand.axes)
            for (const Place place : {size, walked, tile == none ? size : tile})
                reach("an operand", always, place);
        for (const auto &[axis, count, step, stride] : operand.loops) {
            if (axis >= operand.axes.size())
                malformed(what + " has a loop over axis " + std::to_string(axis) + " of " +
                          std::to_string(operand.axes.size()));
            for (const Place place : {count, step, stride})
                reach("an operand", always, place);
        }
    }

    void block(Range range, std::uint32_t inside, bool in_step) const {
        for (std::uint32_t at = range.first; at < range.last; ++at)
            statement(program_.statements[at], inside, in_step);
    }

    void statement(Statement statement, std::uint32_t inside, bool in_step) const {
        const std::uint32_t i = statement.index;
        switch (statement.kind) {
        case Kind::loop:
            reach("a loop's count", inside, program_.loops[i].count);
            return block(program_.loops[i].body, i, in_step);
        case Kind::choice:
            reach("a choice", inside, program_.choices[i].when);
            block(program_.choices[i].body, inside, in_step);
            return block(program_.choices[i].otherwise, inside, in_step);
        case Kind::step:
            if (in_step)
                malformed("a step stands in another; steps follow one another");
            return step(program_.steps[i], inside);
        case Kind::task:
            if (!in_step)
                malformed("a task stands in no step; nothing would say when its BDs are free");
            return task(program_.tasks[i], inside);
        case Kind::write:
            reach("a write", inside, program_.writes[i].address);
            for (const Place value : program_.writes[i].values)
                reach("a write", inside, value);
            return;
        }
    }

    void step(const Step &step, std::uint32_t inside) const {
        for (std::uint32_t at = step.awaits.first; at < step.awaits.last; ++at) {
            const Tokens &tokens = program_.tokens[at];
            channel("a wait", tokens.direction, tokens.channel);
            reach("a wait", inside, tokens.column);
            reach("a wait", inside, tokens.columns);
        }
        if (step.note != none)
            note("a note", inside, program_.notes[step.note]);
        block(step.body, inside, true);
    }

    void task(const Task &task, std::uint32_t inside) const {
        channel("a task", task.direction, task.channel);
        reach("a task", inside, task.column);
        reach("a task", inside, task.runs);
        for (std::uint32_t at = task.bds.first; at < task.bds.last; ++at)
            bd(program_.bds[at], inside);
    }

    void bd(const Bd &bd, std::uint32_t inside) const {
        if (bd.argument >= program_.arguments.size())
            malformed("a BD's argument is " + std::to_string(bd.argument) + "; there are " +
                      std::to_string(program_.arguments.size()));
        reach("a BD", inside, bd.offset);
        for (std::uint32_t i = 0; i < bd.rank; ++i) {
            reach("a BD", inside, bd.sizes[i]);
            reach("a BD", inside, bd.strides[i]);
        }
        for (const Place place : {bd.runs[0], bd.runs[1], bd.when})
            if (place != none)
                reach("a BD", inside, place);
    }

    void channel(const char *what, Direction direction, std::uint32_t channel) const {
        const std::size_t channels = target_.queues[static_cast<std::size_t>(direction)].size();
        if (channel >= channels)
            malformed(std::string(what) + " is on channel " + std::to_string(channel) + "; a shim has " +
                      std::to_string(channels));
    }

    const Program &program_;
    const Target &target_;
    Homes homes_;
    std::vector<std::uint32_t> torn_;  // of a value that needs two loops side by side one of them
};

}  // namespace detail

/// Where values are computed. SequenceError for a value, a loop, an argument or a channel that is not there where it is
/// used.
inline Homes check(const Program &program, const Target &target) {
    for (std::size_t way = 0; way < target.queues.size(); ++way)
        if (target.controls[way].size() != target.queues[way].size())
            detail::malformed("the target's channels have other controls than queues");
    return detail::Checker(program, target).check();
}

}  // namespace bdforge::generator
