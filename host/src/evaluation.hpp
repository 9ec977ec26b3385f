#pragma once
// The values of a sequence program: which are computed when, several turns of a loop at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages.hpp"
#include "sequence_program.hpp"

namespace bdforge::sequence {

/// Parameters of a problem in the program's order, such as M, K, N; those left out are 0.
using Parameters = std::vector<std::int64_t>;
/// Some of them.
using SomeParameters = std::vector<std::optional<std::int64_t>>;

/// Statements and values that a run may take, a loop's values at each of its turns.
constexpr std::int64_t budget = std::int64_t{1} << 24;

// What throws stands apart, so that checks are inlined.
[[noreturn, gnu::cold, gnu::noinline]] inline void outside(const char* what, std::int64_t value, std::int64_t lowest,
                                                           std::int64_t highest) {
    throw SequenceError(concat(what, " is ", value, "; it must be from ", lowest, " to ", highest));
}

/// `value`, where it is in a range; SequenceError names it and its limits.
inline std::int64_t ranged(const char* what, std::int64_t value, std::int64_t lowest, std::int64_t highest) {
    return value < lowest || value > highest ? outside(what, value, lowest, highest), 0 : value;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void too_large(const char* what, std::int64_t a, std::int64_t b) {
    throw SequenceError(concat(what, " of ", a, ", ", b, " needs more than 64 bits"));
}

inline std::int64_t product(const char* what, std::int64_t a, std::int64_t b) {
    std::int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? too_large(what, a, b), 0 : result;
}

/// Turns of a loop that are computed together: an operation is chosen once for all of them.
constexpr std::size_t turns_ahead = 8;

/// What a program computes at the start and at each turn of its loops, in order; what never changes is there from the start.
class EvaluationOrder {
public:
    /// SequenceError as `check`.
    explicit EvaluationOrder(const Source& source);

    /// A value to compute; `number` as in Value. A row holds a value's numbers of some turns; operands are rows.
    struct Entry {
        ValueId id;
        std::uint32_t number, row;
        std::array<std::uint32_t, 3> operands;
        Operation operation;
    };
    struct Block {
        std::vector<std::pair<std::uint32_t, ValueId>> inputs;  // rows of values of loops around it
        std::vector<Entry> entries;
        std::vector<std::pair<std::uint32_t, ValueId>> kept;  // of entries that something outside reads
        std::int64_t cost = 1;
    };

    std::vector<std::int64_t> constants;
    Block first;                                           // what depends on no loop
    std::vector<std::pair<std::uint32_t, ValueId>> fixed;  // rows of loops for that and for constants
    std::vector<Block> loops;                              // what a turn of each computes
    std::size_t rows = 0;                                  // of all blocks
};

/// The values of one run: integers of 64 bits. Operations mean what `bdforge/design/sequences/expressions.py` says.
class Values {
public:
    Values(const Program& program, const EvaluationOrder& order, const Parameters& parameters);
    /// Of some `parameters` only: what depends on others is not `known`, requirements of it are left out.
    Values(const Program& program, const EvaluationOrder& order, const SomeParameters& parameters);

    std::int64_t operator[](ValueId id) const { return values_[id]; }
    bool known(ValueId id) const { return known_.empty() || known_[id]; }

    /// Turn `counter` of `count` of a loop, from 0 on.
    void turn(std::uint32_t loop, std::int64_t counter, std::int64_t count);
    /// SequenceError where a program takes longer than any that is meant.
    void spend(std::int64_t cost) {
        if ((left_ -= cost) < 0) exhausted();
    }
    /// What a note says.
    std::string note_text(const Note& note) const;

private:
    [[noreturn]] static void exhausted();
    void start(const Program& program, const EvaluationOrder::Block& block);
    EvaluationOrder::Block following(const Program& program, const SomeParameters& parameters);
    std::int64_t* row(std::uint32_t place) const { return rows_.get() + place * turns_ahead; }
    void compute(const EvaluationOrder::Block& block, std::int64_t counter, std::size_t turns);
    void compute(const EvaluationOrder::Entry& entry, std::int64_t counter, std::size_t turns);
    void take(const EvaluationOrder::Block& block, std::size_t turn);
    void compute_what_can_be(const EvaluationOrder::Block& block);
    std::vector<bool> constant_rows() const;
    void require(const Program& program) const;

    const EvaluationOrder& order_;
    std::vector<std::int64_t> parameters_, values_;
    std::vector<bool> known_;  // empty: all are
    std::unique_ptr<std::int64_t[]> rows_;
    std::vector<std::pair<std::int64_t, std::int64_t>> computed_;  // by loop: turns of its rows, first to before last
    std::int64_t left_ = budget;
};

/// Bytes of a host buffer.
inline std::int64_t argument_bytes(const Argument& argument, const Values& values) {
    return product("an argument's size", values[argument.elements], argument.bits) / 8;
}

}  // namespace bdforge::sequence
