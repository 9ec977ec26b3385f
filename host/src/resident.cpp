// Operands in buffers: what jobs and what stays between them have in common.

#include <algorithm>
#include <cstring>
#include <utility>

#include "bdforge/error.hpp"
#include "extent.hpp"
#include "sizes.hpp"
#include "state.hpp"

namespace bdforge {

using generator::Layout;

std::size_t operand_index(const DesignState& design, const std::string& name) {
    std::string known;
    const auto& operands = design.program().operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].name == name) return i;
        known += (i == 0 ? "" : ", ") + operands[i].name;
    }
    throw ArgumentError(design.manifest.design + " has no operand " + name + "; there are " + known);
}

Layouts layouts(const DesignState& design, const generator::detail::Values& values, const std::size_t* argument) {
    const generator::Program& program = design.program();
    Layouts made{{}, std::vector<std::size_t>(program.arguments.size())};
    try {
        for (std::size_t i = 0; i < program.arguments.size(); ++i) {
            if (argument != nullptr && *argument != i) continue;
            const std::int64_t bytes = generator::detail::argument_bytes(program.arguments[i], values);
            made.bytes[i] = static_cast<std::size_t>(generator::detail::ranged(
                "bytes of an argument", bytes, 1, static_cast<std::int64_t>(extent_limit)));
        }
        for (const generator::Operand& operand : program.operands)
            if (argument == nullptr || operand.argument == *argument)
                made.operands.emplace_back(operand, program.arguments[operand.argument], values);
    } catch (const generator::SequenceError& error) {
        throw ManifestError(design.manifest.file + ": " + error.what() + "; build the design again");
    }
    return made;
}

std::int64_t leading_of(const Layout& layout, const void* data, std::size_t bytes, std::size_t stride) {
    const std::string& name = layout.operand().name;
    const auto line = static_cast<std::size_t>(layout.line());
    if (data == nullptr) throw ArgumentError(name + ": no array was given");
    if (stride != 0 && stride < line)
        throw ArgumentError(name + ": a stride of " + std::to_string(stride) + " is below the " + std::to_string(line) +
                            " elements of a line; lines would overlap, give more or 0");
    const std::size_t leading = stride == 0 ? line : stride;
    bytes_of(name, leading, layout.element_bytes());  // which refuses what 64 bits with a sign do not hold
    const std::size_t needed = layout.extent(static_cast<std::int64_t>(leading));
    if (bytes < needed)
        throw ArgumentError(name + ": an array of " + std::to_string(bytes) + " bytes, but " +
                            std::to_string(layout.rows()) + " x " + std::to_string(layout.columns()) + " elements of " +
                            layout.operand().type + " take " + std::to_string(needed));
    return static_cast<std::int64_t>(leading);
}

void place(const Layout& layout, const ConstArray& array, void* buffer) {
    const std::string& name = layout.operand().name;
    const std::int64_t leading = leading_of(layout, array.data, array.bytes, array.stride);
    if (const auto fault = layout.fault(array.data, leading)) {
        const auto [low, high] = *layout.operand().values;
        throw WeightError("operand " + name + ": the value at row " + std::to_string(fault->row) + ", column " +
                          std::to_string(fault->column) + " is " + std::to_string(fault->value) + ", expected " +
                          std::to_string(low) + " to " + std::to_string(high) + "; clip or quantise it first");
    }
    try {
        layout.place(array.data, leading, buffer);
    } catch (const generator::SequenceError& error) {
        throw WeightError("operand " + name + ": " + error.what());
    }
}

namespace {

/// Keeps runs from beginning to read a resident; StateError while one does.
std::unique_lock<std::mutex> written(const ResidentState& state) {
    std::unique_lock<std::mutex> lock(*state.guard);
    if (state.readers == 0) return lock;
    throw StateError("the resident " + state.layouts.front().operand().name + " is read by a run under way; wait for it, or "
                     "place another one");
}

/// WeightError unless bytes are what `place` makes of some arrays, padding included. Any bytes do for block floats, which
/// are not made again as they were.
void check_bytes(const std::vector<Layout>& layouts, const std::uint8_t* bytes, std::size_t count, const std::string& what) {
    std::vector<std::uint8_t> made(count);
    for (const Layout& layout : layouts) {
        if (layout.operand().blocked != generator::Blocked::no) return;
        std::vector<std::byte> array(layout.extent(layout.line()));
        layout.fetch(bytes, array.data(), layout.line());
        place(layout, {array.data(), array.size()}, made.data());
    }
    const auto wrong = std::mismatch(made.begin(), made.end(), bytes);
    if (wrong.first == made.end()) return;
    throw WeightError(what + ": byte " + std::to_string(wrong.first - made.begin()) + " is " + std::to_string(*wrong.second) +
                      " where this layout has " + std::to_string(*wrong.first) + "; pack it again");
}

}  // namespace

Resident::Resident(const Design& design, const std::string& operand, const Sizes& sizes) {
    const auto& state = design.state();
    const std::size_t argument = state->program().operands[operand_index(*state, operand)].argument;
    const auto given = some_parameters(*state, sizes);
    const auto values = state->streams.values(given);
    for (const generator::Operand& each : state->program().operands)
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
        throw WeightError(what + " takes " + std::to_string(state_->buffer->bytes()) + " bytes, got " +
                          std::to_string(bytes) + "; the file is truncated, or packed for other tile sizes: pack it again");
    check_bytes(state_->layouts, static_cast<const std::uint8_t*>(data), bytes, what + " by " + state_->design->manifest.design);
    const auto lock = written(*state_);
    std::memcpy(state_->buffer->data(), data, bytes);
    state_->buffer->to_device();
}

std::size_t Resident::bytes() const { return state_->buffer->bytes(); }
const Sizes& Resident::sizes() const { return state_->sizes; }

}  // namespace bdforge
