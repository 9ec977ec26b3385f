#include "streams.hpp"

#include <algorithm>

#include "bdforge/error.hpp"

namespace bdforge {
namespace {

/// Makes sequences wait as `options` say; docs/sequences.md tells why a wide wait is for one step.
generator::Design waiting(const Manifest& manifest) {
    generator::Design design = manifest.streams;
    const SequenceOptions& options = manifest.sequence;
    if (options.wait.empty()) return design;
    design.wide = options.wait == "wide";
    if (!design.wide && options.wait != "column")
        throw ArgumentError("sequence.wait = '" + options.wait + "' is unknown; choose column or wide");
    const std::size_t most = design.wide ? 1 : design.target.queue_entries;
    if (options.in_flight > most) {
        throw ArgumentError("sequence.in_flight = " + std::to_string(options.in_flight) + " is outside 0 to " +
                            std::to_string(most) + ", the steps that sequence.wait = " + options.wait +
                            " allows at a time; 0 takes the most");
    }
    const auto asked = static_cast<std::uint32_t>(options.in_flight == 0 ? most : options.in_flight);
    design.program.in_flight = std::min(asked, design.program.in_flight_max);
    return design;
}

}  // namespace

std::vector<std::size_t> optional_parameters(const generator::Program& program) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < program.parameters.size(); ++i) {
        const auto leads = [&](const generator::Operand& operand) { return operand.leading == i; };
        const auto names = [&](const generator::Value& value) {
            return value.operation == generator::Operation::parameter && static_cast<std::size_t>(value.number) == i;
        };
        if (std::any_of(program.operands.begin(), program.operands.end(), leads) ||
            std::none_of(program.values.begin(), program.values.end(), names))
            found.push_back(i);
    }
    return found;
}

std::string shape_of(const generator::Program& program, const generator::Parameters& parameters) {
    const std::vector<std::size_t> optional = optional_parameters(program);
    std::string text;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (std::find(optional.begin(), optional.end(), i) == optional.end())
            text += (text.empty() ? "" : "x") + std::to_string(parameters[i]);
    return text;
}

Streams::Streams(const Manifest& manifest) : manifest_(manifest), cache_(waiting(manifest)) {}

void Streams::refuse(const std::string& why) const {
    throw ArgumentError(manifest_.design + ": " + why + "; split the problem, or leave it to the processor");
}

// Words are made outside the lock: threads that ask for other sizes are not held up.
std::shared_ptr<const Stream> Streams::get(Context& context, bool full_elf, const generator::Parameters& parameters) {
    const std::string name = full_elf ? sequence(parameters) : "";
    const auto made = full_elf ? nullptr : named([&] { return cache_.get(parameters); });
    const std::lock_guard<std::mutex> lock(guard_);
    std::shared_ptr<const Stream>& known = known_[parameters];
    if (known) return known;
    const auto words = full_elf ? nullptr : context.instructions(*made);
    known = std::make_shared<const Stream>(Stream{{words, name}, full_elf ? 0 : made->size()});
    return known;
}

/// The ELF's sequence for a problem: those that the build knows have no gaps.
std::string Streams::sequence(const generator::Parameters& parameters) const {
    const std::vector<std::string>& names = manifest_.streams.program.parameters;
    const auto same = [&](const BuiltProblem& built) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            const auto size = built.sizes.find(names[i]);
            if (parameters[i] != (size == built.sizes.end() ? 0 : size->second)) return false;
        }
        return true;
    };
    const auto found = std::find_if(manifest_.problems.begin(), manifest_.problems.end(), same);
    if (found != manifest_.problems.end() && !found->sequence.empty()) return found->sequence;  // a template's is empty
    throw ArgumentError(manifest_.design + ": its ELF holds no sequence for " +
                        shape_of(manifest_.streams.program, parameters) +
                        " without strides; add the problem to the design's spec, or load the xclbin, which runs any size");
}

}  // namespace bdforge
