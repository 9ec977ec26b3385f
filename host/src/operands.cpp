#include <algorithm>
#include <cstring>
#include <utility>

#include "bdforge/error.hpp"
#include "extent.hpp"
#include "state.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

/// Whether a parameter may be left out: all but sizes of operands along an axis, such as leading dimensions.
bool optional(const sequence::Program& program, std::size_t parameter) {
    const auto sized = [&](const sequence::Axis& axis) {
        const sequence::Value& size = program.values[axis.size];
        return size.operation == sequence::Operation::parameter && static_cast<std::size_t>(size.number) == parameter;
    };
    return std::none_of(program.operands.begin(), program.operands.end(), [&](const sequence::Operand& operand) {
        return std::any_of(operand.axes.begin(), operand.axes.end(), sized);
    });
}

/// What no program takes where the number is too large.
std::int64_t number(std::size_t value) { return value > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(value); }

}  // namespace

sequence::SomeParameters some_parameters(const DesignState& design, const Sizes& sizes) {
    const std::vector<std::string>& names = design.program().parameters;
    sequence::SomeParameters found(names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        if (optional(design.program(), i)) found[i] = 0;
    for (const auto& [name, size] : sizes) {
        const auto place = std::find(names.begin(), names.end(), name);
        if (place == names.end())
            throw ArgumentError(design.manifest.design + " has no size " + name + "; there are " + listed(names));
        std::optional<std::int64_t>& parameter = found[static_cast<std::size_t>(place - names.begin())];
        if (parameter) bytes_of(name, size, 1);  // a leading dimension: memory has it
        parameter = number(size);
    }
    return found;
}

sequence::Parameters all_parameters(const DesignState& design, const Sizes& sizes) {
    const auto some = some_parameters(design, sizes);
    sequence::Parameters all;
    for (std::size_t i = 0; i < some.size(); ++i) {
        if (!some[i])
            throw ArgumentError(design.manifest.design + ": size " + design.program().parameters[i] +
                                " is missing; give all of " + listed(design.program().parameters));
        all.push_back(*some[i]);
    }
    return all;
}

void require_known(const DesignState& design, const sequence::Operand& operand, const sequence::Values& values) {
    std::vector<sequence::ValueId> places{operand.staged, operand.offset,
                                          design.program().arguments[operand.argument].elements};
    for (const sequence::Axis& axis : operand.axes) {
        places.insert(places.end(), {axis.size, axis.walked});
        if (axis.tile != sequence::no_value) places.push_back(axis.tile);
    }
    for (const sequence::PlaceLoop& loop : operand.loops)
        places.insert(places.end(), {loop.count, loop.step, loop.stride});
    if (std::all_of(places.begin(), places.end(), [&](sequence::ValueId place) { return values.known(place); })) return;
    throw ArgumentError(design.manifest.design + ": operand " + operand.name +
                        " depends on more sizes than were given; there are " + listed(design.program().parameters));
}

using sequence::Layout;

const sequence::Operand& DesignState::operand(const std::string& name) const {
    std::vector<std::string> known;
    for (const sequence::Operand& operand : program().operands) {
        if (operand.name == name) return operand;
        known.push_back(operand.name);
    }
    throw ArgumentError(concat(manifest.design, " has no operand ", name, "; there are ", listed(known)));
}

std::string shape_of(const sequence::Program& program, const sequence::Parameters& parameters) {
    std::vector<std::string> sizes;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (!optional(program, i)) sizes.push_back(std::to_string(parameters[i]));
    return listed(sizes, "x");
}

Layouts layouts(const DesignState& design, const sequence::Values& values, const std::size_t* argument) {
    const sequence::Program& program = design.program();
    Layouts made{{}, std::vector<std::size_t>(program.arguments.size())};
    try {
        for (std::size_t i = 0; i < program.arguments.size(); ++i) {
            if (argument != nullptr && *argument != i) continue;
            const std::int64_t bytes = sequence::argument_bytes(program.arguments[i], values);
            made.bytes[i] = static_cast<std::size_t>(
                sequence::ranged("bytes of an argument", bytes, 1, static_cast<std::int64_t>(extent_limit)));
        }
        for (const sequence::Operand& operand : program.operands)
            if (argument == nullptr || operand.argument == *argument)
                made.operands.emplace_back(operand, program.arguments[operand.argument], values);
    } catch (const sequence::SequenceError& error) {
        throw ManifestError(design.manifest.file + ": " + error.what() + "; build the design again");
    }
    return made;
}

std::int64_t leading_of(const Layout& layout, const void* data, std::size_t bytes, std::size_t stride) {
    const std::string& name = layout.operand().name;
    const auto line = static_cast<std::size_t>(layout.line());
    if (data == nullptr) throw ArgumentError(name + ": no array was given");
    if (stride != 0 && stride < line)
        throw ArgumentError(concat(name, ": a stride of ", stride, " is below the ", line,
                                 " elements of a line; lines would overlap, give more or 0"));
    const std::size_t leading = stride == 0 ? line : stride;
    bytes_of(name, leading, layout.element_bytes());  // which refuses what 64 bits with a sign do not hold
    const std::size_t needed = layout.extent(static_cast<std::int64_t>(leading));
    if (bytes < needed)
        throw ArgumentError(concat(name, ": an array of ", bytes, " bytes, but ", layout.rows(), " x ", layout.columns(),
                                 " elements of ", layout.operand().type, " take ", needed));
    return static_cast<std::int64_t>(leading);
}

void place(const Layout& layout, const ConstArray& array, void* buffer) {
    const std::string& name = layout.operand().name;
    const std::int64_t leading = leading_of(layout, array.data, array.bytes, array.stride);
    if (const auto fault = layout.fault(array.data, leading)) {
        const auto [low, high] = *layout.operand().values;
        throw WeightError(concat("operand ", name, ": the value at row ", fault->row, ", column ", fault->column, " is ",
                               fault->value, ", expected ", low, " to ", high, "; clip or quantise it first"));
    }
    try {
        layout.place(array.data, leading, buffer);
    } catch (const sequence::SequenceError& error) {
        throw WeightError("operand " + name + ": " + error.what());
    }
}

namespace {

/// Keeps runs from beginning to read a resident; StateError while one does.
std::unique_lock<std::mutex> written(const ResidentState& state) {
    std::unique_lock<std::mutex> lock(*state.guard);
    if (state.readers == 0) return lock;
    throw StateError("the resident " + state.layouts.front().operand().name +
                     " is read by a run under way; wait for it, or "
                     "place another one");
}

/// WeightError unless bytes are what `place` makes of some arrays, padding included. Any bytes do for block floats, which
/// are not made again as they were.
void check_bytes(const std::vector<Layout>& layouts, const std::uint8_t* bytes, std::size_t count,
                 const std::string& what) {
    std::vector<std::uint8_t> made(count);
    for (const Layout& layout : layouts) {
        if (layout.operand().blocked != sequence::Blocked::no) return;
        std::vector<std::byte> array(layout.extent(layout.line()));
        layout.fetch(bytes, array.data(), layout.line());
        place(layout, {array.data(), array.size()}, made.data());
    }
    const auto wrong = std::mismatch(made.begin(), made.end(), bytes);
    if (wrong.first == made.end()) return;
    throw WeightError(concat(what, ": byte ", wrong.first - made.begin(), " is ", *wrong.second,
                           " where this layout has ", *wrong.first, "; pack it again"));
}

}  // namespace

Resident::Resident(const Design& design, const std::string& operand, const Sizes& sizes) {
    const auto& state = design.state();
    const std::size_t argument = state->operand(operand).argument;
    const auto given = some_parameters(*state, sizes);
    const auto values = state->streams.values(given);
    for (const sequence::Operand& each : state->program().operands)
        if (each.argument == argument) require_known(*state, each, values);
    Layouts made = layouts(*state, values, &argument);
    std::shared_ptr<Buffer> buffer = state->context->allocate(argument, made.bytes[argument]);
    std::memset(buffer->data(), 0, buffer->bytes());
    for (const Layout& layout : made.operands) layout.place_missing(buffer->data());
    buffer->to_device();
    state_ = std::make_shared<ResidentState>(
        ResidentState{state, sizes, argument, std::move(made.operands), std::move(buffer)});
}

void Resident::place(const std::string& operand, const ConstArray& array) {
    const auto named = [&](const Layout& layout) { return layout.operand().name == operand; };
    const auto found = std::find_if(state_->layouts.begin(), state_->layouts.end(), named);
    if (found == state_->layouts.end())
        throw ArgumentError("operand " + operand + " does not stand beside " + state_->layouts.front().operand().name +
                            "; make a Resident of its own for it");
    const auto lock = written(*state_);
    bdforge::place(*found, array, state_->buffer->data());
    state_->buffer->to_device();
}

void Resident::place_bytes(const void* data, std::size_t bytes) {
    if (data == nullptr) throw ArgumentError("no bytes were given");
    std::string what = "packed " + state_->layouts.front().operand().name + " of ", between;
    for (const auto& [name, size] : state_->sizes)
        what += std::exchange(between, ", ") + name + " = " + std::to_string(size);
    if (bytes != state_->buffer->bytes())
        throw WeightError(concat(what, " takes ", state_->buffer->bytes(), " bytes, got ", bytes,
                               "; the file is truncated, or packed for other tile sizes: pack it again"));
    check_bytes(state_->layouts, static_cast<const std::uint8_t*>(data), bytes,
                what + " by " + state_->design->manifest.design);
    const auto lock = written(*state_);
    std::memcpy(state_->buffer->data(), data, bytes);
    state_->buffer->to_device();
}

std::size_t Resident::bytes() const { return state_->buffer->bytes(); }
const Sizes& Resident::sizes() const { return state_->sizes; }

}  // namespace bdforge
