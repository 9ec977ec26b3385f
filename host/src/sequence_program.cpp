#include "sequence_program.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "messages.hpp"

namespace bdforge::sequence {
namespace {

constexpr std::int64_t values_max = 1 << 16;  // of a program, so that a file cannot ask for more
constexpr std::size_t written_max = 1 << 10;  // registers of a write, likewise
constexpr std::int64_t loops_max = 48;        // of an operand, likewise
constexpr std::int64_t number_max = 0x7FFFFFFF;
constexpr std::int64_t columns_max = 64, channels_max = 16;  // far above any NPU

/// Refuses members that the form does not have, as the Python check does: a host that passes them over would do less.
void only(const JsonView& view, std::initializer_list<std::string_view> known) {
    for (const auto& [name, member] : view.members())
        if (std::find(known.begin(), known.end(), name) == known.end())
            member.refuse("nothing: sequence programs have no such member");
}

std::uint32_t number(const JsonView& view, std::int64_t lowest = 0, std::int64_t highest = number_max) {
    return static_cast<std::uint32_t>(view.integer(lowest, highest));
}

ValueId value_id(const JsonView& view) { return number(view, 0, values_max - 1); }

ValueId optional_id(const JsonView& view, const char* name) {
    return view.has(name) ? value_id(view.at(name)) : no_value;
}

bool flag(const JsonView& view, const char* name) { return view.has(name) && view.at(name).boolean(); }

/// What `read` makes of each entry, `least` to `most` of them.
template <class Read>
auto list(const JsonView& view, std::size_t least, std::size_t most, Read read) {
    std::vector<decltype(read(view))> found;
    for (const JsonView& entry : view.elements()) found.push_back(read(entry));
    if (found.size() < least || found.size() > most) view.refuse(concat("a list of ", least, " to ", most, " entries"));
    return found;
}

template <class Read>
auto optional_list(const JsonView& view, const char* name, Read read) {
    return view.has(name) ? list(view.at(name), 0, values_max, read) : std::vector<decltype(read(view))>{};
}

/// The place of a text among `choices`.
std::size_t choice(const JsonView& view, std::initializer_list<std::string_view> choices) {
    const auto found = std::find(choices.begin(), choices.end(), view.text());
    if (found == choices.end()) view.refuse(concat("another of its words: ", listed(choices, " or ")));
    return static_cast<std::size_t>(found - choices.begin());
}

Direction direction(const JsonView& view) { return static_cast<Direction>(choice(view, {"S2MM", "MM2S"})); }

Note note(const JsonView& view) {
    only(view, {"text", "values"});
    return {view.at("text").text(), optional_list(view, "values", value_id)};
}

Argument argument(const JsonView& view) {
    only(view, {"name", "type", "bits", "elements", "note"});
    if (view.has("note")) view.at("note").text();
    return {view.at("name").text(), view.at("type").text(), number(view.at("bits"), 1, 64),
            value_id(view.at("elements"))};
}

Axis axis(const JsonView& view) {
    only(view, {"size", "walked", "tile", "once"});
    return {value_id(view.at("size")), value_id(view.at("walked")), optional_id(view, "tile"), flag(view, "once")};
}

PlaceLoop place_loop(const JsonView& view) {
    only(view, {"axis", "count", "step", "stride"});
    return {number(view.at("axis"), 0, axes_max - 1), value_id(view.at("count")), value_id(view.at("step")),
            value_id(view.at("stride"))};
}

std::uint32_t parameter(const JsonView& view, const std::vector<std::string>& parameters) {
    const auto found = std::find(parameters.begin(), parameters.end(), view.text());
    if (found == parameters.end()) view.refuse("the name of a parameter");
    return static_cast<std::uint32_t>(found - parameters.begin());
}

Operand operand(const JsonView& view, const std::vector<std::string>& parameters) {
    only(view, {"name", "argument", "direction", "type", "bits", "values", "bias", "blocked", "missing", "order",
                "parallel", "leading", "staged", "axes", "offset", "dims"});
    flag(view, "parallel");  // what stands behind a user's rows is a concern of compositions alone
    Operand made{};
    made.name = view.at("name").text();
    made.argument = number(view.at("argument"));
    const std::size_t way = choice(view.at("direction"), {"in", "out", "between"});
    made.out = way == 1, made.between = way == 2;
    made.type = view.at("type").text();
    made.bits = number(view.at("bits"), 1, 1024);
    if (view.has("values")) {
        const std::vector<JsonView> ends = view.at("values").elements();
        if (ends.size() != 2) view.at("values").refuse("the smallest and the largest value");
        made.values = {ends[0].integer(INT64_MIN, INT64_MAX), ends[1].integer(INT64_MIN, INT64_MAX)};
    }
    if (view.has("bias")) made.bias = view.at("bias").integer(INT64_MIN, INT64_MAX);
    if (view.has("blocked"))
        made.blocked = choice(view.at("blocked"), {"across", "down"}) == 0 ? Blocked::across : Blocked::down;
    if (view.has("missing")) made.missing = view.at("missing").real();
    made.column_major = view.has("order") && choice(view.at("order"), {"row", "column"}) == 1;
    made.leading = view.has("leading") ? parameter(view.at("leading"), parameters) : no_value;
    made.staged = value_id(view.at("staged"));
    made.axes = list(view.at("axes"), 1, axes_max, axis);
    made.offset = value_id(view.at("offset"));
    made.loops = list(view.at("dims"), 1, loops_max, place_loop);
    return made;
}

Requirement requirement(const JsonView& view) {
    only(view, {"when", "otherwise"});
    return {value_id(view.at("when")), note(view.at("otherwise"))};
}

Bd bd(const JsonView& view) {
    only(view, {"argument", "offset", "sizes", "strides", "runs", "when", "bits"});
    const auto sizes = list(view.at("sizes"), 1, 4, value_id), strides = list(view.at("strides"), 1, 4, value_id);
    if (sizes.size() != strides.size())
        view.at("strides").refuse(concat(sizes.size(), " of them, as many as there are sizes"));
    Bd made{number(view.at("argument")),
            static_cast<std::uint32_t>(sizes.size()),
            value_id(view.at("offset")),
            {},
            {},
            {no_value, no_value},
            optional_id(view, "when"),
            view.has("bits") ? number(view.at("bits"), 1, 64) : 0};
    std::copy(sizes.begin(), sizes.end(), made.sizes.begin());
    std::copy(strides.begin(), strides.end(), made.strides.begin());
    if (!view.has("runs")) return made;
    const auto runs = list(view.at("runs"), 2, 2, value_id);
    std::copy(runs.begin(), runs.end(), made.runs.begin());
    return made;
}

Tokens tokens(const JsonView& view) {
    only(view, {"direction", "channel", "column", "columns"});
    return {direction(view.at("direction")), number(view.at("channel")), value_id(view.at("column")),
            value_id(view.at("columns"))};
}

/// Makes tables of nested lists.
class Reader {
public:
    Program read(const JsonView& view) {
        only(view, {"parameters", "values", "arguments", "operands", "requires", "do", "in_flight", "in_flight_max",
                    "configurations"});
        for (const JsonView& name : view.at("parameters").elements()) program_.parameters.push_back(name.text());
        program_.body = block(view.at("do"));
        program_.values =
            list(view.at("values"), 0, values_max, [this](const JsonView& entry) { return value(entry); });
        program_.arguments = list(view.at("arguments"), 0, values_max, argument);
        program_.operands = optional_list(
            view, "operands", [this](const JsonView& entry) { return operand(entry, program_.parameters); });
        std::erase_if(program_.operands, [](const Operand& found) { return found.between; });  // no host gives or gets
        program_.requirements = optional_list(view, "requires", requirement);
        program_.in_flight = number(view.at("in_flight"), 1);
        if (view.has("configurations")) program_.configurations = number(view.at("configurations"));
        if (view.has("in_flight_max")) program_.in_flight_max = number(view.at("in_flight_max"), 1);
        return std::move(program_);
    }

private:
    Value value(const JsonView& view) const {
        if (view.is_text()) return {Operation::parameter, parameter(view, program_.parameters)};
        if (!view.is_list()) return {Operation::constant, view.integer(INT64_MIN, INT64_MAX)};
        const std::vector<JsonView> parts = view.elements();
        if (parts.empty()) view.refuse("an operation and its operands");
        const std::string& name = parts[0].text();
        if (name == "index" && parts.size() == 2) return {Operation::index, loop(parts[1])};
        const auto same = [&](const OperationFacts& known) { return known.operands > 0 && known.name == name; };
        const auto found = std::find_if(operations.begin(), operations.end(), same);
        if (found == operations.end()) parts[0].refuse("an operation that this library knows");
        if (parts.size() != 1 + found->operands) view.refuse(concat(name, " of ", found->operands, " operands"));
        Value made{static_cast<Operation>(found - operations.begin()), 0};
        std::transform(parts.begin() + 1, parts.end(), made.operands.begin(), value_id);
        return made;
    }

    std::int64_t loop(const JsonView& view) const {
        const auto found = loops_.find(number(view));
        if (found == loops_.end()) view.refuse("the number of a loop");
        return found->second;
    }

    /// Blocks are contiguous; what their statements hold comes behind them.
    Range block(const JsonView& view) {
        const std::vector<JsonView> statements = view.elements();
        const auto first = static_cast<std::uint32_t>(program_.statements.size());
        program_.statements.resize(first + statements.size());
        for (std::size_t i = 0; i < statements.size(); ++i) {
            const Statement made = statement(statements[i]);
            program_.statements[first + i] = made;
        }
        return {first, first + static_cast<std::uint32_t>(statements.size())};
    }

    Statement statement(const JsonView& view) {
        const std::string& kind = view.at("kind").text();
        if (kind == "for") return {Kind::loop, for_(view)};
        if (kind == "if") return {Kind::choice, if_(view)};
        if (kind == "step") return {Kind::step, step(view)};
        if (kind == "task") return {Kind::task, task(view)};
        if (kind == "configure") return {Kind::configure, configure(view)};
        if (kind != "write") view.at("kind").refuse("for, if, step, task, write or configure");
        only(view, {"kind", "address", "values"});
        Write made{value_id(view.at("address")), list(view.at("values"), 1, written_max, value_id)};
        return {Kind::write, added(program_.writes, std::move(made))};
    }

    template <class Entry>
    static std::uint32_t added(std::vector<Entry>& table, Entry entry) {
        table.push_back(std::move(entry));
        return static_cast<std::uint32_t>(table.size() - 1);
    }

    template <class Entry>
    static Range added(std::vector<Entry>& table, const std::vector<Entry>& entries) {
        table.insert(table.end(), entries.begin(), entries.end());
        const auto last = static_cast<std::uint32_t>(table.size());
        return {last - static_cast<std::uint32_t>(entries.size()), last};
    }

    std::uint32_t for_(const JsonView& view) {
        only(view, {"kind", "loop", "count", "do"});
        const std::uint32_t named = number(view.at("loop")), outer = inside_;
        const std::uint32_t at = added(program_.loops, Loop{named, value_id(view.at("count")), {}, outer});
        if (!loops_.emplace(named, at).second) view.at("loop").refuse("a number that no other loop has");
        inside_ = at;
        const Range body = block(view.at("do"));
        inside_ = outer;
        program_.loops[at].body = body;
        return at;
    }

    std::uint32_t if_(const JsonView& view) {
        only(view, {"kind", "when", "do", "otherwise"});
        const ValueId when = value_id(view.at("when"));
        const Range body = block(view.at("do"));
        const Range otherwise = view.has("otherwise") ? block(view.at("otherwise")) : Range{body.last, body.last};
        return added(program_.choices, Choice{when, body, otherwise});
    }

    std::uint32_t step(const JsonView& view) {
        only(view, {"kind", "do", "awaits", "note"});
        const Range body = block(view.at("do")), awaits = added(program_.tokens, optional_list(view, "awaits", tokens));
        const std::uint32_t said = view.has("note") ? added(program_.notes, note(view.at("note"))) : no_value;
        return added(program_.steps, Step{body, awaits, said});
    }

    std::uint32_t task(const JsonView& view) {
        only(view, {"kind", "direction", "channel", "column", "runs", "token", "bds"});
        const Range bds = added(program_.bds, list(view.at("bds"), 1, values_max, bd));
        return added(program_.tasks,
                     Task{direction(view.at("direction")), number(view.at("channel")), value_id(view.at("column")),
                          value_id(view.at("runs")), flag(view, "token"), bds});
    }

    std::uint32_t configure(const JsonView& view) {
        only(view, {"kind", "configuration", "ahead", "in_flight", "do", "sooner"});
        const auto wanted = [&](const char* key) { return view.has(key) ? number(view.at(key)) : no_value; };
        const std::uint32_t configuration = wanted("configuration"), ahead = wanted("ahead");
        std::vector<Range> early{view.has("do") ? block(view.at("do")) : Range{0, 0}};
        if (view.has("sooner"))
            for (const JsonView& sooner : view.at("sooner").elements()) early.push_back(block(sooner));
        return added(program_.configures,
                     Configure{configuration, ahead, number(view.at("in_flight"), 1), std::move(early)});
    }

    Program program_{};
    std::map<std::uint32_t, std::uint32_t> loops_;  // places in their table, by number
    std::uint32_t inside_ = no_loop;                // the loop that is being read
};

std::uint32_t word(const JsonView& view) { return number(view, 0, word_max); }

template <std::size_t count>
std::array<std::uint32_t, count> words(const JsonView& view, std::int64_t lowest = 0) {
    const auto found = list(view, count, count, [&](const JsonView& entry) { return number(entry, lowest, word_max); });
    std::array<std::uint32_t, count> values{};
    std::copy(found.begin(), found.end(), values.begin());
    return values;
}

BdFields bd_fields(const JsonView& view) {
    const auto field = [&](const char* name) {
        const auto [index, low] = words<2>(view.at(name));
        if (index >= 8 || low >= 32) view.at(name).refuse("a word below 8 and a bit below 32");
        return Field{index, low};
    };
    return {field("length"),  field("d0_wrap"),        field("d0_step"),        field("d1_wrap"), field("d1_step"),
            field("d2_step"), field("iteration_wrap"), field("iteration_step"), field("next"),    field("use_next")};
}

/// A register of each channel, by direction.
std::array<std::vector<std::uint32_t>, 2> registers(const JsonView& view) {
    return {list(view.at("S2MM"), 1, channels_max, word), list(view.at("MM2S"), 1, channels_max, word)};
}

Target target(const JsonView& view) {
    const JsonView queue = view.at("queue_fields");
    const auto any = [&](const char* name) { return word(view.at(name)); };
    const auto size = [&](const char* name, std::int64_t most = word_max) { return number(view.at(name), 1, most); };
    const auto bit = [&](const char* name) { return number(queue.at(name), 0, 31); };
    return {words<2>(view.at("header")),
            size("columns", columns_max),
            size("column_stride"),
            size("bds", 64),
            words<2>(view.at("wraps"), 1),
            size("step_max"),
            size("iteration_max"),
            size("length_max"),
            size("repeat_max"),
            size("queue_entries"),
            any("bd_address"),
            size("bd_stride_bytes"),
            words<8>(view.at("bd_constant")),
            bd_fields(view.at("bd_fields")),
            number(view.at("patched_word"), 0, 6),
            registers(view.at("queues")),
            {bit("token"), bit("repeat"), bit("bd")},
            registers(view.at("controls")),
            any("control_value"),
            any("control_mask")};
}

}  // namespace

Source read_sequence(const JsonView& view) {
    return {Reader().read(view.at("program")), target(view.at("target")), view.at("wide").boolean()};
}

std::vector<Change> read_changes(const std::string& content, const Target& target, std::size_t count) {
    constexpr std::size_t header_words = 4, word_bytes = 4;
    if (content.size() % word_bytes != 0) throw SequenceError(concat(content.size(), " bytes are no whole words"));
    std::vector<std::uint32_t> words(content.size() / word_bytes);
    std::memcpy(words.data(), content.data(), words.size() * word_bytes);
    std::vector<Change> found;
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t left = words.size() - at, size = left < header_words ? 0 : words[at + 3] / word_bytes;
        if (left >= header_words && (words[at] != target.header[0] || words[at + 1] != target.header[1]))
            throw SequenceError(concat("word ", at, " starts no instruction stream for this array"));
        if (size < header_words || size > left)
            throw SequenceError(concat("no instruction stream starts at word ", at, " that ends within ", words.size()));
        const auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
        const auto body = static_cast<std::ptrdiff_t>(header_words), end = static_cast<std::ptrdiff_t>(size);
        found.push_back({words[at + 2], {first + body, first + end}});
        at += size;
    }
    if (found.size() != count)
        throw SequenceError(concat("there are ", found.size(), " changes, the sequence program has ", count));
    return found;
}

}  // namespace bdforge::sequence
