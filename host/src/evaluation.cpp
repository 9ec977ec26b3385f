#include "evaluation.hpp"

#include <algorithm>
#include <map>

namespace bdforge::sequence {
namespace {

constexpr std::int64_t divisor_max = std::int64_t{1} << 12;  // the largest that is looked for, and what that costs

[[noreturn, gnu::cold, gnu::noinline]] void no_divisor(std::int64_t divisor) {
    throw SequenceError(concat("a divisor is ", divisor, "; it must be at least 1"));
}

std::int64_t positive(std::int64_t divisor) { return divisor < 1 ? no_divisor(divisor), 0 : divisor; }

/// The largest divisor of n up to `most`; 0 where there is none.
std::int64_t divisor(std::int64_t n, std::int64_t most) {
    if (most > divisor_max)
        throw SequenceError(concat("a divisor up to ", most, " is looked for; at most ", divisor_max, " can be"));
    std::int64_t found = std::max<std::int64_t>(std::min(n, most), 0);
    while (found > 0 && n % found != 0) --found;
    return found;
}

std::int64_t cost(Operation operation) {
    return operation == Operation::divisor ? divisor_max : operation == Operation::parameter ? 0 : 1;
}

}  // namespace

EvaluationOrder::EvaluationOrder(const Source& source) : loops(source.program.loops.size()) {
    const auto [innermost, read] = check(source);
    std::map<std::pair<std::uint32_t, ValueId>, std::uint32_t> places;  // rows, by block and value
    const auto place = [&](std::uint32_t loop, ValueId id) {
        return places.emplace(std::pair(loop, id), static_cast<std::uint32_t>(places.size()));
    };
    for (ValueId id = 0; id < innermost.size(); ++id) {
        const Value& value = source.program.values[id];
        const bool constant = value.operation == Operation::constant;
        constants.push_back(constant ? value.number : 0);
        if (constant) continue;
        const std::uint32_t loop = innermost[id];
        Block& block = loop == no_loop ? first : loops[loop];
        Entry entry{id, static_cast<std::uint32_t>(value.number), 0, {}, value.operation};
        for (std::uint32_t i = 0; i < facts(value.operation).operands; ++i) {
            const auto [found, added] = place(loop, value.operands[i]);
            entry.operands[i] = found->second;
            const bool varies = innermost[value.operands[i]] != no_loop || loop == no_loop;
            if (added) (varies ? block.inputs : fixed).emplace_back(found->second, value.operands[i]);
        }
        entry.row = place(loop, id).first->second;
        if (read[id]) block.kept.emplace_back(entry.row, id);
        block.entries.push_back(entry);
        block.cost += cost(value.operation);
    }
    rows = places.size();
}

Values::Values(const Program& program, const EvaluationOrder& order, const Parameters& parameters)
    : order_(order), parameters_(parameters), values_(order.constants) {
    start(program, order.first);
}

Values::Values(const Program& program, const EvaluationOrder& order, const SomeParameters& parameters)
    : order_(order), values_(order.constants) {
    for (const auto& parameter : parameters) parameters_.push_back(parameter.value_or(0));
    start(program, following(program, parameters));
}

void Values::start(const Program& program, const EvaluationOrder::Block& block) {
    if (parameters_.size() > program.parameters.size())
        throw SequenceError(concat(parameters_.size(), " parameters for a program of ", program.parameters.size()));
    parameters_.resize(program.parameters.size());
    rows_.reset(new std::int64_t[order_.rows * turns_ahead]);  // not filled: each is computed before it is read
    computed_.resize(order_.loops.size());
    spend(block.cost);
    try {
        compute(block, 0, 1);
        take(block, 0);
        for (const auto& [place, id] : order_.fixed) std::fill_n(row(place), turns_ahead, values_[id]);
    } catch (const SequenceError&) {
        compute_what_can_be(block);
        require(program);  // says more than that a value of what is not allowed is too large
        throw;
    }
    require(program);
}

/// Of a block with values that cannot be computed; these, and what follows from them, are not known.
void Values::compute_what_can_be(const EvaluationOrder::Block& block) {
    known_.resize(values_.size(), true);
    std::vector<bool> rows = constant_rows();
    for (const EvaluationOrder::Entry& entry : block.entries) {
        bool known = true;
        for (std::uint32_t i = 0; i < facts(entry.operation).operands; ++i) known = known && rows[entry.operands[i]];
        try {
            if (known) compute(entry, 0, 1), values_[entry.id] = *row(entry.row);
        } catch (const SequenceError&) {
            known = false;
        }
        rows[entry.row] = known_[entry.id] = known;
    }
}

/// Of the rows that values outside of loops are computed from, those that hold a constant.
std::vector<bool> Values::constant_rows() const {
    std::vector<bool> found(order_.rows);
    for (const auto& [place, id] : order_.first.inputs) found[place] = true;
    return found;
}

/// What follows from the parameters that are given.
EvaluationOrder::Block Values::following(const Program& program, const SomeParameters& parameters) {
    EvaluationOrder::Block block{order_.first.inputs, {}, {}, order_.first.cost};
    for (const Value& value : program.values) known_.push_back(value.operation == Operation::constant);
    std::vector<bool> rows = constant_rows();
    for (const EvaluationOrder::Entry& entry : order_.first.entries) {
        bool known = entry.operation != Operation::parameter ||
                     (entry.number < parameters.size() && parameters[entry.number].has_value());
        for (std::uint32_t i = 0; i < facts(entry.operation).operands; ++i) known = known && rows[entry.operands[i]];
        rows[entry.row] = known_[entry.id] = known;
        if (!known) continue;
        block.entries.push_back(entry);
        block.kept.emplace_back(entry.row, entry.id);
    }
    return block;
}

/// SequenceError with every requirement that does not hold, as far as known values say so.
void Values::require(const Program& program) const {
    const auto there = [&](ValueId id) { return known(id); };
    std::vector<std::string> broken;
    for (const auto& [when, otherwise] : program.requirements)
        if (there(when) && values_[when] == 0 && std::all_of(otherwise.values.begin(), otherwise.values.end(), there))
            broken.push_back(note_text(otherwise));
    if (!broken.empty()) throw SequenceError(listed(broken, "; "));
}

void Values::exhausted() {
    throw SequenceError(concat("the sequence program takes more than its budget of ", budget,
                               " statements and values; split the problem"));
}

void Values::turn(std::uint32_t loop, std::int64_t counter, std::int64_t count) {
    const EvaluationOrder::Block& block = order_.loops[loop];
    spend(block.cost);
    auto& [from, until] = computed_[loop];
    if (counter == 0 || counter == until) {
        from = counter, until = counter + std::min<std::int64_t>(count - counter, turns_ahead);
        try {
            compute(block, from, static_cast<std::size_t>(until - from));
        } catch (const SequenceError&) {  // of a later turn, perhaps, before which something else may fail
            compute(block, from, 1);
            until = from + 1;
        }
    }
    take(block, static_cast<std::size_t>(counter - from));
}

void Values::take(const EvaluationOrder::Block& block, std::size_t turn) {
    for (const auto& [place, id] : block.kept) values_[id] = row(place)[turn];
}

void Values::compute(const EvaluationOrder::Block& block, std::int64_t counter, std::size_t turns) {
    for (const auto& [place, id] : block.inputs) std::fill_n(row(place), turns, values_[id]);
    const EvaluationOrder::Entry* at = nullptr;
    try {
        for (const EvaluationOrder::Entry& entry : block.entries) at = &entry, compute(entry, counter, turns);
    } catch (const SequenceError& error) {
        throw SequenceError(concat("value ", at->id, " of the sequence program: ", error.what()));
    }
}

/// SequenceError for a divisor below 1 and for results of more than 64 bits.
void Values::compute(const EvaluationOrder::Entry& entry, std::int64_t counter, std::size_t turns) {
    using Number = std::int64_t;
    Number* const made = row(entry.row);
    const Number *const one = row(entry.operands[0]), *const other = row(entry.operands[1]),
                        *const third = row(entry.operands[2]);
    const auto each = [&](auto of) {
        for (std::size_t i = 0; i < turns; ++i) made[i] = of(one[i], other[i]);
    };
    Number result = 0;
    switch (entry.operation) {
        case Operation::constant: return;  // there from the start
        case Operation::parameter: return std::fill_n(made, turns, parameters_[entry.number]), void();
        case Operation::index:
            for (std::size_t i = 0; i < turns; ++i) made[i] = counter + static_cast<Number>(i);
            return;
        case Operation::add:
            return each([&](Number a, Number b) {
                return __builtin_add_overflow(a, b, &result) ? too_large("add", a, b), 0 : result;
            });
        case Operation::sub:
            return each([&](Number a, Number b) {
                return __builtin_sub_overflow(a, b, &result) ? too_large("sub", a, b), 0 : result;
            });
        case Operation::mul: return each([&](Number a, Number b) { return product("mul", a, b); });
        case Operation::floordiv: return each([](Number a, Number b) { return a / positive(b) - (a % b < 0); });
        case Operation::ceildiv: return each([](Number a, Number b) { return a / positive(b) + (a % b > 0); });
        case Operation::mod: return each([](Number a, Number b) { return a % positive(b) + (a % b < 0 ? b : 0); });
        case Operation::min: return each([](Number a, Number b) { return std::min(a, b); });
        case Operation::max: return each([](Number a, Number b) { return std::max(a, b); });
        case Operation::lt: return each([](Number a, Number b) { return Number{a < b}; });
        case Operation::le: return each([](Number a, Number b) { return Number{a <= b}; });
        case Operation::eq: return each([](Number a, Number b) { return Number{a == b}; });
        case Operation::select:
            for (std::size_t i = 0; i < turns; ++i) made[i] = one[i] != 0 ? other[i] : third[i];
            return;
        case Operation::divisor: return each([](Number a, Number b) { return divisor(a, b); });
    }
}

std::string Values::note_text(const Note& note) const {
    std::string made;
    std::size_t from = 0;
    for (const ValueId id : note.values) {
        const std::size_t blank = note.text.find("{}", from);
        made += concat(note.text.substr(from, blank - from), values_[id]);
        from = blank + 2;
    }
    return made + note.text.substr(from);
}

}  // namespace bdforge::sequence
