// Instruction streams for problems of any size, made where the call happens.
//
//     const bdforge::Sequencer sequencer(design);
//     const std::vector<std::uint32_t> words = sequencer.words({M, K, N});
//
// C++17, no dependencies. Word for word those of `bdforge.design.sequences`; docs/sequences.md explains them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/program.hpp"
#include "bdforge/schedule.hpp"
#include "bdforge/stream.hpp"
#include "bdforge/values.hpp"

namespace bdforge::generator {

/// Parameters of a problem in the program's order, such as M, K, N; those left out are 0.
using Parameters = std::vector<std::int64_t>;

namespace detail {

/// One run of a program.
class Run {
public:
    Run(const Design &design, const Turns &turns, const Parameters &parameters)
        : design_(design),
          program_(design.program),
          values_(program_, turns, parameters),
          encoder_(design.target),
          writer_(design.target),
          schedule_(design, writer_) {
        planned_.needs.resize(design.target.columns);
    }

    std::vector<std::uint32_t> words() {
        block(program_.body);
        schedule_.finish();
        return writer_.finish();
    }

private:
    void block(Range range) {
        for (std::uint32_t at = range.first; at < range.last; ++at) {
            values_.left().spend(1);
            statement(program_.statements[at]);
        }
    }

    void statement(Statement statement) {
        const std::uint32_t i = statement.index;
        switch (statement.kind) {
        case Kind::loop: return loop(i);
        case Kind::choice: {
            const Choice &choice = program_.choices[i];
            return block(values_[choice.when] != 0 ? choice.body : choice.otherwise);
        }
        case Kind::step: return step(program_.steps[i]);
        case Kind::task: return task(program_.tasks[i]);
        case Kind::write: return write(program_.writes[i]);
        }
    }

    void loop(std::uint32_t index) {
        const Loop &loop = program_.loops[index];
        const std::int64_t count = values_[loop.count];
        for (std::int64_t counter = 0; counter < count; ++counter) {
            values_.turn(index, counter);
            block(loop.body);
        }
    }

    void step(const Step &step) {
        planned_.clear();
        in_step_ = true;
        try {
            std::vector<Wait> awaited = waits(step.awaits);
            block(step.body);
            schedule_.start(planned_, std::move(awaited));
        } catch (const SequenceError &error) {
            if (step.note == none)
                throw;
            throw SequenceError(values_.note_text(program_.notes[step.note]) + ": " + error.what());
        }
        in_step_ = false;
    }

    std::vector<Wait> waits(Range awaits) const {
        std::vector<Wait> found;
        for (std::uint32_t at = awaits.first; at < awaits.last; ++at) {
            const Tokens &tokens = program_.tokens[at];
            const std::uint32_t column = this->column(tokens.column);
            found.push_back({tokens.direction, tokens.channel, column,
                             number("columns of a wait", tokens.columns, 1, design_.target.columns - column)});
        }
        return found;
    }

    void write(const Write &write) {
        const std::uint32_t address = number("a write's address", write.address, 0, word_max);
        std::vector<std::uint32_t> values;
        for (const Place value : write.values)
            values.push_back(number("a write's value", value, 0, word_max));
        if (!in_step_)
            return writer_.write(address, values.data(), values.size());
        planned_.items.push_back({nullptr, address, static_cast<std::uint32_t>(values.size()), 0});
        planned_.written.insert(planned_.written.end(), values.begin(), values.end());
    }

    void task(const Task &task) {
        const std::uint32_t at = column(task.column), runs = number("runs of a task", task.runs, 1, design_.target.repeat_max);
        const std::size_t before = planned_.bds.size();
        for (std::uint32_t i = task.bds.first; i < task.bds.last; ++i) {
            const Bd &bd = program_.bds[i];
            if (bd.when == none || values_[bd.when] != 0)
                planned_.bds.push_back({encoder_.words(transfer(bd)), bd.argument});
        }
        const auto count = static_cast<std::uint32_t>(planned_.bds.size() - before);
        if (count == 0)
            throw SequenceError("a task has no BD that is wanted");
        planned_.items.push_back({&task, at, runs, count});
        planned_.needs[at] += count;
        planned_.tasks = true;
    }

    Transfer transfer(const Bd &bd) const {
        Transfer made;
        std::size_t rank = 0;
        for (std::uint32_t i = bd.rank; i-- > 0; ++rank)
            made.dims[rank] = {values_[bd.sizes[i]], values_[bd.strides[i]]};
        if (bd.runs[0] != none && values_[bd.runs[0]] != 1) {
            if (rank == made.dims.size())
                throw SequenceError("a BD has 4 dimensions and runs; runs are the fourth");
            made.dims.back() = {values_[bd.runs[0]], values_[bd.runs[1]]};
        }
        made.offset = values_[bd.offset];
        made.bits = program_.arguments[bd.argument].bits;
        return made;
    }

    std::uint32_t column(Place place) const { return number("a column", place, 0, design_.target.columns - 1); }

    std::uint32_t number(const char *what, Place place, std::int64_t lowest, std::int64_t highest) const {
        return static_cast<std::uint32_t>(ranged(what, values_[place], lowest, highest));
    }

    const Design &design_;
    const Program &program_;
    Values values_;
    Encoder encoder_;
    Writer writer_;
    Schedule schedule_;
    Planned planned_;
    bool in_step_ = false;
};

/// Bytes of a host buffer.
inline std::int64_t argument_bytes(const Argument &argument, const Values &values) {
    return product("an argument's size", values[argument.elements], argument.bits) / 8;
}

}  // namespace detail

/// Makes the streams of one design. Any number of threads may use one; it is neither copied nor moved.
class Sequencer {
public:
    /// SequenceError where the program is malformed.
    explicit Sequencer(Design design) : design_(std::move(design)), turns_(design_) {}
    Sequencer(const Sequencer &) = delete;
    Sequencer &operator=(const Sequencer &) = delete;

    const Design &design() const { return design_; }

    /// The stream of a problem. SequenceError says which requirement does not hold, or what no register holds.
    std::vector<std::uint32_t> words(const Parameters &parameters) const {
        return detail::Run(design_, turns_, parameters).words();
    }

    /// The values of a problem that depend on no loop, of which a Layout is made. SequenceError where a requirement does
    /// not hold.
    detail::Values values(const Parameters &parameters) const { return {design_.program, turns_, parameters}; }
    /// Those that follow from the parameters that are given.
    detail::Values values(const std::vector<std::optional<std::int64_t>> &parameters) const {
        return {design_.program, turns_, parameters};
    }

    /// Bytes of each host buffer. SequenceError where a requirement does not hold.
    std::vector<std::int64_t> argument_bytes(const Parameters &parameters) const {
        const detail::Values values = this->values(parameters);
        std::vector<std::int64_t> bytes;
        for (const Argument &argument : design_.program.arguments)
            bytes.push_back(detail::argument_bytes(argument, values));
        return bytes;
    }

private:
    const Design design_;
    const detail::Turns turns_;
};

}  // namespace bdforge::generator

namespace bdforge {
using generator::Sequencer;
}
