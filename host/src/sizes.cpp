#include "sizes.hpp"

#include <algorithm>

#include "bdforge/error.hpp"
#include "extent.hpp"

namespace bdforge {
namespace {

std::string list(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

/// What no program takes where the number is too large.
std::int64_t number(std::size_t value) { return value > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(value); }

}  // namespace

std::vector<std::optional<std::int64_t>> some_parameters(const DesignState& design, const Sizes& sizes) {
    const std::vector<std::string>& names = design.program().parameters;
    std::vector<std::optional<std::int64_t>> found(names.size());
    for (const std::size_t parameter : optional_parameters(design.program())) found[parameter] = 0;
    for (const auto& [name, size] : sizes) {
        const auto place = std::find(names.begin(), names.end(), name);
        if (place == names.end())
            throw ArgumentError(design.manifest.design + " has no size " + name + "; there are " + list(names));
        std::optional<std::int64_t>& parameter = found[static_cast<std::size_t>(place - names.begin())];
        if (parameter) bytes_of(name, size, 1);  // a leading dimension: memory has it
        parameter = number(size);
    }
    return found;
}

generator::Parameters all_parameters(const DesignState& design, const Sizes& sizes) {
    const auto some = some_parameters(design, sizes);
    generator::Parameters all;
    for (std::size_t i = 0; i < some.size(); ++i) {
        if (!some[i])
            throw ArgumentError(design.manifest.design + ": size " + design.program().parameters[i] +
                                " is missing; give all of " + list(design.program().parameters));
        all.push_back(*some[i]);
    }
    return all;
}

void require_known(const DesignState& design, const generator::Operand& operand,
                   const generator::detail::Values& values) {
    std::vector<generator::Place> places{operand.staged, operand.offset,
                                         design.program().arguments[operand.argument].elements};
    for (const generator::Axis& axis : operand.axes) {
        places.insert(places.end(), {axis.size, axis.walked});
        if (axis.tile != generator::none) places.push_back(axis.tile);
    }
    for (const generator::PlaceLoop& loop : operand.loops)
        places.insert(places.end(), {loop.count, loop.step, loop.stride});
    if (std::all_of(places.begin(), places.end(), [&](generator::Place place) { return values.known(place); })) return;
    throw ArgumentError(design.manifest.design + ": operand " + operand.name +
                        " depends on more sizes than were given; there are " + list(design.program().parameters));
}

}  // namespace bdforge
