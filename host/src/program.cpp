#include "program.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace bdforge::generator {
namespace {

constexpr std::int64_t values_max = 1 << 16;  // of a program, so that a file cannot ask for more
constexpr std::size_t written_max = 1 << 10;  // registers of a write, likewise
constexpr std::int64_t number_max = 0x7FFFFFFF;

/// Refuses members that the form does not have, as the Python check does: a host that passes them over would do less.
void only(const JsonView& view, std::initializer_list<std::string_view> known) {
    for (const auto& [name, member] : view.members())
        if (std::find(known.begin(), known.end(), name) == known.end())
            member.refuse("nothing: sequence programs have no such member");
}

Place place(const JsonView& view) { return static_cast<Place>(view.integer(0, values_max - 1)); }

std::uint32_t number(const JsonView& view, std::int64_t lowest, std::int64_t highest = number_max) {
    return static_cast<std::uint32_t>(view.integer(lowest, highest));
}

std::vector<Place> places(const JsonView& view, std::size_t least, std::size_t most) {
    std::vector<Place> found;
    for (const JsonView& element : view.elements()) found.push_back(place(element));
    if (found.size() < least || found.size() > most)
        view.refuse("a list of " + std::to_string(least) + " to " + std::to_string(most) + " values");
    return found;
}

Direction direction(const JsonView& view) {
    if (view.text() == "S2MM") return Direction::s2mm;
    if (view.text() != "MM2S") view.refuse("S2MM or MM2S");
    return Direction::mm2s;
}

Note note(const JsonView& view) {
    only(view, {"text", "values"});
    return {view.at("text").text(),
            view.has("values") ? places(view.at("values"), 0, values_max) : std::vector<Place>{}};
}

Argument argument(const JsonView& view) {
    only(view, {"name", "type", "bits", "elements", "note"});
    if (view.has("note")) view.at("note").text();
    return {view.at("name").text(), view.at("type").text(), number(view.at("bits"), 1, 64), place(view.at("elements"))};
}

Axis axis(const JsonView& view) {
    only(view, {"size", "walked", "tile", "once"});
    return {place(view.at("size")), place(view.at("walked")), view.has("tile") ? place(view.at("tile")) : none,
            view.has("once") && view.at("once").boolean()};
}

constexpr std::int64_t loops_max = 48;  // of an operand, so that a file cannot ask for more

PlaceLoop place_loop(const JsonView& view) {
    only(view, {"axis", "count", "step", "stride"});
    return {number(view.at("axis"), 0, axes_max - 1), place(view.at("count")), place(view.at("step")), place(view.at("stride"))};
}

/// The place of a member's text among `choices`, of which the first stands for a member that is left out.
std::size_t choice(const JsonView& view, const char* name, const std::vector<std::string>& choices) {
    if (!view.has(name)) return 0;
    const JsonView member = view.at(name);
    const auto found = std::find(choices.begin(), choices.end(), member.text());
    if (found == choices.end() || found->empty()) member.refuse("another of its words");
    return static_cast<std::size_t>(found - choices.begin());
}

template <class Entry, class Read>
std::vector<Entry> list(const JsonView& view, std::size_t most, Read read) {
    std::vector<Entry> found;
    for (const JsonView& entry : view.elements()) found.push_back(read(entry));
    if (found.empty() || found.size() > most) view.refuse("1 to " + std::to_string(most) + " of them");
    return found;
}

Operand operand(const JsonView& view, const std::vector<std::string>& parameters) {
    only(view, {"name", "argument", "direction", "type", "bits", "values", "bias", "blocked", "missing", "order", "leading",
                "staged", "axes", "offset", "dims"});
    Operand made{view.at("name").text(),
                 number(view.at("argument"), 0),
                 choice(view, "direction", {"in", "out"}) == 1,
                 view.at("type").text(),
                 number(view.at("bits"), 1, 1024),
                 std::nullopt,
                 view.has("bias") ? view.at("bias").integer(INT64_MIN, INT64_MAX) : 0,
                 static_cast<Blocked>(choice(view, "blocked", {"", "across", "down"})),
                 std::nullopt,
                 choice(view, "order", {"row", "column"}) == 1,
                 none,
                 place(view.at("staged")),
                 list<Axis>(view.at("axes"), axes_max, axis),
                 place(view.at("offset")),
                 list<PlaceLoop>(view.at("dims"), loops_max, place_loop)};
    view.at("direction");  // which no word stands for
    if (view.has("values")) {
        const std::vector<JsonView> ends = view.at("values").elements();
        if (ends.size() != 2) view.at("values").refuse("the smallest and the largest value");
        made.values = {ends[0].integer(INT64_MIN, INT64_MAX), ends[1].integer(INT64_MIN, INT64_MAX)};
    }
    if (view.has("missing")) made.missing = view.at("missing").real();
    if (!view.has("leading")) return made;
    const auto found = std::find(parameters.begin(), parameters.end(), view.at("leading").text());
    if (found == parameters.end()) view.at("leading").refuse("the name of a parameter");
    made.leading = static_cast<std::uint32_t>(found - parameters.begin());
    return made;
}

Requirement requirement(const JsonView& view) {
    only(view, {"when", "otherwise"});
    return {place(view.at("when")), note(view.at("otherwise"))};
}

Bd bd(const JsonView& view) {
    only(view, {"argument", "offset", "sizes", "strides", "runs", "when"});
    const std::vector<Place> sizes = places(view.at("sizes"), 1, 4), strides = places(view.at("strides"), 1, 4);
    if (sizes.size() != strides.size())
        view.at("strides").refuse(std::to_string(sizes.size()) + " of them, as many as there are sizes");
    Bd made{number(view.at("argument"), 0), static_cast<std::uint32_t>(sizes.size()), place(view.at("offset")), {}, {},
            {none, none},
            view.has("when") ? place(view.at("when")) : none};
    std::copy(sizes.begin(), sizes.end(), made.sizes.begin());
    std::copy(strides.begin(), strides.end(), made.strides.begin());
    if (!view.has("runs")) return made;
    const std::vector<Place> runs = places(view.at("runs"), 2, 2);
    std::copy(runs.begin(), runs.end(), made.runs.begin());
    return made;
}

Tokens tokens(const JsonView& view) {
    only(view, {"direction", "channel", "column", "columns"});
    return {direction(view.at("direction")), number(view.at("channel"), 0), place(view.at("column")),
            place(view.at("columns"))};
}

/// Makes tables of nested lists.
class Reader {
public:
    Program read(const JsonView& view) {
        only(view, {"parameters", "values", "arguments", "operands", "requires", "do", "in_flight",
                    "in_flight_max"});
        for (const JsonView& name : view.at("parameters").elements()) program_.parameters.push_back(name.text());
        program_.body = block(view.at("do"));
        const std::vector<JsonView> values = view.at("values").elements();
        if (values.size() > values_max) view.at("values").refuse("at most " + std::to_string(values_max) + " values");
        for (const JsonView& entry : values) program_.values.push_back(value(entry));
        for (const JsonView& entry : view.at("arguments").elements()) program_.arguments.push_back(argument(entry));
        if (view.has("operands"))
            for (const JsonView& entry : view.at("operands").elements())
                program_.operands.push_back(operand(entry, program_.parameters));
        if (view.has("requires"))
            for (const JsonView& entry : view.at("requires").elements())
                program_.requirements.push_back(requirement(entry));
        program_.in_flight = number(view.at("in_flight"), 1);
        if (view.has("in_flight_max")) program_.in_flight_max = number(view.at("in_flight_max"), 1);
        return std::move(program_);
    }

private:
    Value value(const JsonView& view) const {
        if (view.is_text()) return {Operation::parameter, parameter(view)};
        if (!view.is_list()) return {Operation::constant, view.integer(INT64_MIN, INT64_MAX)};
        const std::vector<JsonView> parts = view.elements();
        if (parts.empty()) view.refuse("an operation and its operands");
        const std::string& name = parts[0].text();
        if (name == "index" && parts.size() == 2) return {Operation::index, loop(parts[1])};
        const auto same = [&](const OperationFacts& known) { return known.operands > 0 && known.name == name; };
        const auto found = std::find_if(operations.begin(), operations.end(), same);
        if (found == operations.end()) parts[0].refuse("an operation that this library knows");
        if (parts.size() != 1 + found->operands)
            view.refuse(name + " of " + std::to_string(found->operands) + " operands");
        Value made{static_cast<Operation>(found - operations.begin()), 0};
        std::transform(parts.begin() + 1, parts.end(), made.operands.begin(), place);
        return made;
    }

    std::int64_t parameter(const JsonView& view) const {
        const auto& known = program_.parameters;
        const auto found = std::find(known.begin(), known.end(), view.text());
        if (found == known.end()) view.refuse("the name of a parameter");
        return found - known.begin();
    }

    std::int64_t loop(const JsonView& view) const {
        const auto found = loops_.find(number(view, 0));
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
        if (kind != "write") view.at("kind").refuse("for, if, step, task or write");
        only(view, {"kind", "address", "values"});
        const std::vector<Place> values = places(view.at("values"), 1, written_max);
        return {Kind::write, added(program_.writes, Write{place(view.at("address")), values})};
    }

    template <class Entry>
    static std::uint32_t added(std::vector<Entry>& table, Entry entry) {
        table.push_back(std::move(entry));
        return static_cast<std::uint32_t>(table.size() - 1);
    }

    template <class Entry, class Read>
    static Range listed(std::vector<Entry>& table, const JsonView& view, Read read) {
        const auto first = static_cast<std::uint32_t>(table.size());
        for (const JsonView& entry : view.elements()) table.push_back(read(entry));
        return {first, static_cast<std::uint32_t>(table.size())};
    }

    std::uint32_t for_(const JsonView& view) {
        only(view, {"kind", "loop", "count", "do"});
        const std::uint32_t number = generator::number(view.at("loop"), 0);
        const std::uint32_t outer = inside_, at = added(program_.loops, Loop{number, place(view.at("count")), {}, outer});
        if (!loops_.emplace(number, at).second) view.at("loop").refuse("a number that no other loop has");
        inside_ = at;
        const Range body = block(view.at("do"));
        inside_ = outer;
        program_.loops[at].body = body;
        return at;
    }

    std::uint32_t if_(const JsonView& view) {
        only(view, {"kind", "when", "do", "otherwise"});
        const Place when = place(view.at("when"));
        const Range body = block(view.at("do"));
        const Range otherwise = view.has("otherwise") ? block(view.at("otherwise")) : Range{body.last, body.last};
        return added(program_.choices, Choice{when, body, otherwise});
    }

    std::uint32_t step(const JsonView& view) {
        only(view, {"kind", "do", "awaits", "note"});
        const Range body = block(view.at("do"));
        const Range awaits = view.has("awaits") ? listed(program_.tokens, view.at("awaits"), tokens) : Range{0, 0};
        const std::uint32_t text = view.has("note") ? added(program_.notes, note(view.at("note"))) : none;
        return added(program_.steps, Step{body, awaits, text});
    }

    std::uint32_t task(const JsonView& view) {
        only(view, {"kind", "direction", "channel", "column", "runs", "token", "bds"});
        const bool token = view.has("token") && view.at("token").boolean();
        const Range bds = listed(program_.bds, view.at("bds"), bd);
        if (bds.first == bds.last) view.at("bds").refuse("at least one BD");
        return added(program_.tasks, Task{direction(view.at("direction")), generator::number(view.at("channel"), 0),
                                          place(view.at("column")), place(view.at("runs")), token, bds});
    }

    Program program_{};
    std::map<std::uint32_t, std::uint32_t> loops_;  // places in their table, by number
    std::uint32_t inside_ = none;                   // the loop that is being read
};

constexpr std::int64_t word_max = 0xFFFFFFFF;
constexpr std::int64_t columns_max = 64, channels_max = 16;  // far above any NPU

std::uint32_t word(const JsonView& view, std::int64_t lowest = 0, std::int64_t highest = word_max) {
    return static_cast<std::uint32_t>(view.integer(lowest, highest));
}

template <std::size_t count>
std::array<std::uint32_t, count> words(const JsonView& view, std::int64_t lowest = 0) {
    const std::vector<JsonView> elements = view.elements();
    if (elements.size() != count) view.refuse("a list of " + std::to_string(count) + " numbers");
    std::array<std::uint32_t, count> values{};
    for (std::size_t i = 0; i < count; ++i) values[i] = word(elements[i], lowest);
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
    std::array<std::vector<std::uint32_t>, 2> found;
    constexpr const char* directions[] = {"S2MM", "MM2S"};
    for (std::size_t i = 0; i < found.size(); ++i) {
        const JsonView channels = view.at(directions[i]);
        for (const JsonView& channel : channels.elements()) found[i].push_back(word(channel));
        if (found[i].empty() || found[i].size() > channels_max)
            channels.refuse("1 to " + std::to_string(channels_max) + " channels");
    }
    return found;
}

Target read_target(const JsonView& target) {
    const JsonView queue = target.at("queue_fields");
    const auto number = [&](const char* name) { return word(target.at(name)); };
    const auto size = [&](const char* name) { return word(target.at(name), 1); };
    return {words<2>(target.at("header")),
            word(target.at("columns"), 1, columns_max),
            size("column_stride"),
            word(target.at("bds"), 1, 64),
            words<2>(target.at("wraps"), 1),
            size("step_max"),
            size("iteration_max"),
            size("length_max"),
            size("repeat_max"),
            size("queue_entries"),
            number("bd_address"),
            size("bd_stride_bytes"),
            words<8>(target.at("bd_constant")),
            bd_fields(target.at("bd_fields")),
            word(target.at("patched_word"), 0, 6),
            registers(target.at("queues")),
            {word(queue.at("token"), 0, 31), word(queue.at("repeat"), 0, 31), word(queue.at("bd"), 0, 31)},
            registers(target.at("controls")),
            number("control_value"),
            number("control_mask")};
}

}  // namespace
}  // namespace bdforge::generator

bdforge::generator::Design bdforge::read_sequence(const JsonView& sequence) {
    return {generator::Reader().read(sequence.at("program")), generator::read_target(sequence.at("target"))};
}
