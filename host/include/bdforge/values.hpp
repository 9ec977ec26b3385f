// The values of a sequence program's run: integers of 64 bits, computed where their loop turns.
//
// Operations mean what `bdforge/design/sequences/expressions.py` says.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/numbers.hpp"
#include "bdforge/program_check.hpp"

namespace bdforge::generator {

/// Statements and values that a run may take, a loop's values at each of its turns.
constexpr std::int64_t budget = std::int64_t{1} << 24;
/// The largest divisor that is looked for, and what that costs.
constexpr std::int64_t divisor_max = std::int64_t{1} << 12;

namespace detail {

/// Runs out where a program takes longer than any that is meant; then SequenceError.
class Budget {
public:
    void spend(std::int64_t cost) {
        if ((left_ -= cost) < 0)
            throw SequenceError("the sequence program takes more than its budget of " + std::to_string(budget) +
                                " statements and values; split the problem");
    }

private:
    std::int64_t left_ = budget;
};

[[noreturn]] inline void no_divisor(std::int64_t divisor) {
    throw SequenceError("a divisor is " + std::to_string(divisor) + "; it must be at least 1");
}

inline std::int64_t positive(std::int64_t divisor) { return divisor < 1 ? no_divisor(divisor), 0 : divisor; }

[[noreturn]] inline void far_divisor(std::int64_t most) {
    throw SequenceError("a divisor up to " + std::to_string(most) + " is looked for; at most " +
                        std::to_string(divisor_max) + " can be");
}

/// The largest divisor of n up to `most`; 0 where there is none.
inline std::int64_t divisor(std::int64_t n, std::int64_t most) {
    if (most > divisor_max)
        far_divisor(most);
    std::int64_t found = std::max<std::int64_t>(std::min(n, most), 0);
    while (found > 0 && n % found != 0)
        --found;
    return found;
}

/// The values to be computed where a loop turns, in order; what never changes is there from the start.
class Turns {
public:
    /// SequenceError as `check`.
    explicit Turns(const Design &design) : loops_(design.program.loops.size()) {
        const Homes homes = generator::check(design.program, design.target);
        for (Place place = 0; place < homes.size(); ++place) {
            const Value &value = design.program.values[place];
            start_.push_back(value.operation == Operation::constant ? value.number : 0);
            if (value.operation == Operation::constant)
                continue;
            const auto number = static_cast<std::uint32_t>(value.number);  // of a parameter or a loop
            Turn &turn = homes[place] == always ? first_ : loops_[homes[place]];
            turn.entries.push_back({place, number, value.operands, value.operation});
            turn.cost += cost(value.operation);
        }
        for (Turn &turn : loops_)
            order(turn.entries, homes.size());
    }

    /// A value to compute; `number` as in Value.
    struct Entry {
        Place place;
        std::uint32_t number;
        std::array<Place, 3> operands;
        Operation operation;
    };

    struct Turn {
        std::vector<Entry> entries;
        std::int64_t cost = 1;
    };

    const std::vector<std::int64_t> &start() const { return start_; }
    /// What depends on no loop.
    const Turn &first() const { return first_; }
    const Turn &of(std::uint32_t loop) const { return loops_[loop]; }

private:
    static std::int64_t cost(Operation operation) {
        return operation == Operation::divisor ? divisor_max : operation == Operation::parameter ? 0 : 1;
    }

    /// Brings equal operations together, each behind its operands: branches are guessed well then.
    static void order(std::vector<Entry> &entries, std::size_t values) {
        std::vector<std::uint32_t> depths(values, 0);
        for (const Entry &entry : entries) {
            const auto end = entry.operands.begin() + facts(entry.operation).operands;
            for (auto operand = entry.operands.begin(); operand != end; ++operand)
                depths[entry.place] = std::max(depths[entry.place], depths[*operand]);
            ++depths[entry.place];
        }
        std::stable_sort(entries.begin(), entries.end(), [&](const Entry &one, const Entry &other) {
            return std::pair(depths[one.place], one.operation) < std::pair(depths[other.place], other.operation);
        });
    }

    std::vector<std::int64_t> start_;
    Turn first_;
    std::vector<Turn> loops_;
};

/// The values of one run.
class Values {
public:
    /// `parameters` in the program's order; those left out are 0.
    Values(const Program &program, const Turns &turns, const std::vector<std::int64_t> &parameters)
        : turns_(turns), parameters_(parameters), values_(turns.start()) {
        start(program, turns_.first(), [](Place) { return true; });
    }

    /// Of some `parameters` only: what depends on others is not `known`, requirements of it are left out.
    Values(const Program &program, const Turns &turns, const std::vector<std::optional<std::int64_t>> &parameters)
        : turns_(turns), values_(turns.start()) {
        for (const auto &parameter : parameters)
            parameters_.push_back(parameter.value_or(0));
        const Turns::Turn turn = following(program, parameters);
        start(program, turn, [this](Place place) { return known_[place]; });
    }

    std::int64_t operator[](Place place) const { return values_[place]; }
    bool known(Place place) const { return known_.empty() || known_[place]; }

    Budget &left() { return left_; }

    /// A turn of a loop.
    void turn(std::uint32_t loop, std::int64_t counter) { compute(turns_.of(loop), counter); }

    /// What a note says.
    std::string note_text(const Note &note) const {
        std::string text;
        std::size_t from = 0;
        for (const Place place : note.values) {
            const std::size_t blank = note.text.find("{}", from);
            text += note.text.substr(from, blank - from) + std::to_string(values_[place]);
            from = blank + 2;
        }
        return text + note.text.substr(from);
    }

private:
    template <typename Known>
    void start(const Program &program, const Turns::Turn &turn, Known known) {
        if (parameters_.size() > program.parameters.size())
            throw SequenceError(std::to_string(parameters_.size()) + " parameters for a program of " +
                                std::to_string(program.parameters.size()));
        parameters_.resize(program.parameters.size());
        try {
            compute(turn, 0);
        } catch (const SequenceError &) {
            // says more than that a value of what is not allowed is too large
            require(program, [&](Place place) { return place < computed_ && known(place); });
            throw;
        }
        require(program, known);
    }

    /// What follows from the parameters that are given.
    Turns::Turn following(const Program &program, const std::vector<std::optional<std::int64_t>> &parameters) {
        Turns::Turn turn;
        for (const Value &value : program.values)
            known_.push_back(value.operation == Operation::constant);
        for (const Turns::Entry &entry : turns_.first().entries) {
            const auto count = facts(entry.operation).operands;
            const bool given = entry.operation != Operation::parameter ||
                               (entry.number < parameters.size() && parameters[entry.number].has_value());
            known_[entry.place] = given && std::all_of(entry.operands.begin(), entry.operands.begin() + count,
                                                       [&](Place operand) { return bool{known_[operand]}; });
            if (known_[entry.place])
                turn.entries.push_back(entry);
        }
        turn.cost = turns_.first().cost;
        return turn;
    }

    void compute(const Turns::Turn &turn, std::int64_t counter) {
        left_.spend(turn.cost);
        const Turns::Entry *const end = turn.entries.data() + turn.entries.size();
        try {
            for (at_ = turn.entries.data(); at_ != end;)
                alike(end, counter);
        } catch (const SequenceError &error) {
            computed_ = at_->place;
            throw SequenceError("value " + std::to_string(at_->place) + " of the sequence program: " + error.what());
        }
    }

    /// Computes the values of one operation from `at_` on. SequenceError for a divisor below 1 and for results of more
    /// than 64 bits.
    void alike(const Turns::Entry *end, std::int64_t counter) {
        using Number = std::int64_t;
        const auto each = [&](auto of) {
            const Operation operation = at_->operation;
            do
                values_[at_->place] = of(values_[at_->operands[0]], values_[at_->operands[1]]);
            while (++at_ != end && at_->operation == operation);
        };
        Number result = 0;
        switch (at_->operation) {
        case Operation::constant: return each([](Number, Number) { return 0; });  // there from the start
        case Operation::parameter: return each([&](Number, Number) { return parameters_[at_->number]; });
        case Operation::index: return each([&](Number, Number) { return counter; });
        case Operation::add: return each([&](Number a, Number b) {
            return __builtin_add_overflow(a, b, &result) ? too_large("add", a, b), 0 : result;
        });
        case Operation::sub: return each([&](Number a, Number b) {
            return __builtin_sub_overflow(a, b, &result) ? too_large("sub", a, b), 0 : result;
        });
        case Operation::mul: return each([&](Number a, Number b) {
            return __builtin_mul_overflow(a, b, &result) ? too_large("mul", a, b), 0 : result;
        });
        case Operation::floordiv: return each([](Number a, Number b) { return a / positive(b) - (a % b < 0); });
        case Operation::ceildiv: return each([](Number a, Number b) { return a / positive(b) + (a % b > 0); });
        case Operation::mod: return each([](Number a, Number b) { return a % positive(b) + (a % b < 0 ? b : 0); });
        case Operation::min: return each([](Number a, Number b) { return std::min(a, b); });
        case Operation::max: return each([](Number a, Number b) { return std::max(a, b); });
        case Operation::lt: return each([](Number a, Number b) { return Number{a < b}; });
        case Operation::le: return each([](Number a, Number b) { return Number{a <= b}; });
        case Operation::eq: return each([](Number a, Number b) { return Number{a == b}; });
        case Operation::select: return each([&](Number a, Number b) { return a != 0 ? b : values_[at_->operands[2]]; });
        case Operation::divisor: return each([](Number a, Number b) { return divisor(a, b); });
        }
    }

    /// SequenceError with every requirement that does not hold, as far as known values say so.
    template <typename Known>
    void require(const Program &program, Known known) const {
        std::string broken;
        for (const Requirement &requirement : program.requirements)
            if (known(requirement.when) && values_[requirement.when] == 0 &&
                std::all_of(requirement.otherwise.values.begin(), requirement.otherwise.values.end(), known))
                broken += (broken.empty() ? "" : "; ") + note_text(requirement.otherwise);
        if (!broken.empty())
            throw SequenceError(broken);
    }

    const Turns &turns_;
    std::vector<std::int64_t> parameters_, values_;
    std::vector<bool> known_;  // empty: all are
    Budget left_;
    const Turns::Entry *at_ = nullptr;
    Place computed_ = 0;  // what stands before is computed
};

}  // namespace detail
}  // namespace bdforge::generator
