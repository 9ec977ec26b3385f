#include "layout.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

#include "sequencer.hpp"
#include "extent.hpp"
#include "number_formats.hpp"
#include "messages.hpp"

namespace bdforge::sequence {
namespace {

constexpr std::int64_t byte_bits = 8;
constexpr std::int64_t reach_max = std::int64_t{1} << 50;  // elements of a buffer: sums of a few fit 64 bits
constexpr std::int64_t moved_max = 1 << 12;                // far above an array's rows
constexpr const char* one_place = ": an element has one place, and a place one element";

std::int64_t up(std::int64_t value, std::int64_t multiple) { return value / multiple + (value % multiple != 0); }

/// Whether a type holds a value, which is then written.
template <class Number>
bool written(std::byte* to, double value) {
    using Limits = std::numeric_limits<Number>;
    if (!(value >= Limits::lowest() && value <= Limits::max())) return false;
    const auto number = static_cast<Number>(value);
    std::memcpy(to, &number, sizeof number);
    return true;
}

}  // namespace

Layout::Layout(const Operand& operand, const Argument& argument, const Values& values)
    : operand_(operand), staged_(values[operand.staged] != 0), offset_(values[operand.offset]) {
    const std::int64_t bits = product("an argument's size", values[argument.elements], argument.bits);
    axes_.resize(std::max<std::size_t>(operand.axes.size(), 2));
    if (column_major() && axes_.size() > 2)
        refuse(concat("is column-major with ", operand.axes.size(), " axes; that is an order of two"));
    const std::size_t first = axes_.size() - operand.axes.size();  // one axis: a row
    read_loops(values);
    check_bounds(bits / operand.bits);
    if (first > 0) axes_[0].stretches = {{0, 1, 0}};
    for (std::size_t i = 0; i < operand.axes.size(); ++i) read_axis(first + i, operand.axes[i], values);
    check_shared(first);
    for (std::size_t i = 0; i + 1 < axes_.size(); ++i) rows_ = product("rows of an operand", rows_, axes_[i].size);
    missing_element();  // refuses what the type does not hold
}

void Layout::refuse(const std::string& what) const { throw SequenceError("operand " + operand_.name + " " + what); }

void Layout::read_loops(const Values& values) {
    const std::size_t first = axes_.size() - operand_.axes.size();
    for (const PlaceLoop& loop : operand_.loops) {
        const ElementLoop found{first + loop.axis, values[loop.count], values[loop.step], values[loop.stride]};
        if (found.count < 1 || found.count > reach_max || found.stride < 0 || found.stride > reach_max)
            refuse(concat("has a loop of ", found.count, " by ", found.stride,
                        "; counts begin at 1, strides at 0, both end at ", reach_max));
        loops_.push_back(found);
    }
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
        std::vector<ElementLoop*> along;
        for (ElementLoop& loop : loops_)
            if (loop.axis == axis) along.push_back(&loop);
        std::stable_sort(along.begin(), along.end(), [](auto* one, auto* other) { return one->step > other->step; });
        for (std::size_t i = along.size(); i-- > 0;) {  // the last digit of a place first
            const std::int64_t step = axes_[axis].count;
            if (along[i]->count > 1 && along[i]->step != step)
                refuse(concat("has a loop with step ", along[i]->step, " where the loops in it make ", step, " places"));
            along[i]->step = step;
            axes_[axis].count = ranged("places of an operand", product("places", step, along[i]->count), 1, reach_max);
        }
    }
}

/// `second.stride / common` turns of the first loop lead where `first.stride / common` of the second do. Turns count that
/// lead to elements of the user's: rows may be read beyond their end.
void Layout::check_shared(std::size_t before) const {
    const auto used = [&](const ElementLoop& loop) {
        if (operand_.axes[loop.axis - before].tile != no_value) return loop.count;
        return std::min(loop.count, up(axes_[loop.axis].size, loop.step * side()));
    };
    for (const ElementLoop& loop : loops_)
        if (loop.stride == 0 && used(loop) > 1) refuse(concat("has a loop of ", used(loop), " by 0", one_place));
    for (std::size_t i = 0; i < loops_.size(); ++i)
        for (std::size_t j = i + 1; j < loops_.size(); ++j) {
            const std::int64_t turns = used(loops_[i]), others = used(loops_[j]);
            const std::int64_t stride = loops_[i].stride, by = loops_[j].stride;
            if (turns == 1 || others == 1) continue;
            const std::int64_t common = std::gcd(stride, by);
            if (by / common < turns && stride / common < others)
                refuse(concat("has loops of ", turns, " by ", stride, " and ", others, " by ", by,
                              ", which lead to the same place of the buffer", one_place));
        }
}

void Layout::read_axis(std::size_t axis, const Axis& from, const Values& values) {
    Positions& positions = axes_[axis];
    positions.size = values[from.size];
    const std::int64_t walked = values[from.walked], tile = from.tile == no_value ? 0 : values[from.tile];
    if (positions.size < 1 || positions.size > reach_max)
        refuse(concat("has ", positions.size, " positions; there must be 1 to ", reach_max));
    if (from.tile != no_value && (tile < 1 || walked < tile))
        refuse(concat("has tiles of ", tile, " in ", walked, " positions"));
    positions.count *= side();
    if (positions.count < positions.size) refuse(concat("holds ", positions.count, " of ", positions.size, " positions"));
    find_stretches(positions, walked, tile, from.once);
}

/// Neighbours are joined, so that there are few.
void Layout::find_stretches(Positions& axis, std::int64_t walked, std::int64_t tile, bool once) const {
    const auto add = [&](std::int64_t first, std::int64_t last, std::int64_t position) {
        if (first >= last) return;
        const bool after = !axis.stretches.empty();
        Stretch* const before = after ? &axis.stretches.back() : nullptr;
        const bool zeros = after && position < 0 && before->position < 0;
        const bool next = after && position >= 0 && before->position >= 0 &&
                          before->position + (before->last - before->first) == position;
        if (zeros || next)
            before->last = last;
        else
            axis.stretches.push_back({first, last, position});
    };
    const auto held = [&](std::int64_t first, std::int64_t last, std::int64_t position) {
        const std::int64_t end = first + std::clamp<std::int64_t>(axis.size - position, 0, last - first);
        add(first, end, position);
        add(end, last, -1);
    };
    const std::int64_t whole = tile == 0 ? axis.count : std::min(walked / tile * tile, axis.count);
    held(0, whole, 0);
    if (tile > 0 && (axis.count - whole) / tile > moved_max)
        refuse(concat("has more than ", moved_max, " tiles that move back"));
    for (std::int64_t at = whole; at < axis.count; at += tile) {
        const std::int64_t start = walked - tile, end = std::min(at + tile, axis.count);
        const std::int64_t covered = once ? std::min(at - start, end - at) : 0;
        add(at, at + covered, -1);
        held(at + covered, end, start + covered);
    }
}

std::int64_t Layout::last() const {
    std::int64_t last = offset_;
    for (const ElementLoop& loop : loops_) {
        const std::int64_t step = product("an operand's loop", loop.count - 1, loop.stride);
        if (step > reach_max) refuse("has a loop that leaves every buffer");
        last += step;
    }
    return last;
}

void Layout::check_bounds(std::int64_t elements) const {
    const std::int64_t bits = operand_.bits;
    constexpr std::int64_t known[] = {1, 2, 4, 8, 16, 32, 64, tile_bytes * byte_bits};
    if (std::find(std::begin(known), std::end(known), bits) == std::end(known) ||
        (operand_.blocked != Blocked::no) != (bits == known[7]))
        refuse(concat("has elements of ", bits,
                    " bits; this library places 1, 2, 4, 8, 16, 32 and 64, and block floats of 576"));
    if (operand_.blocked != Blocked::no && operand_.axes.size() != 2)
        refuse(concat("has blocks and ", operand_.axes.size(), " axes; blocks lie in two"));
    if (offset_ < 0 || offset_ > reach_max) refuse(concat("starts at element ", offset_));
    if (elements > reach_max || last() >= elements)
        refuse(concat("reaches element ", last(), "; its buffer has ", elements));
    std::int64_t places = 1;
    for (const Positions& axis : axes_) places = product("places of an operand", places, axis.count);
    if (places > elements) refuse(concat("has ", places, " places; its buffer has ", elements, " elements"));
}

Layout Layout::in_lines(std::int64_t leading) const {
    Layout made;
    made.operand_ = operand_;
    if (operand_.bits < byte_bits) made.operand_.bits = byte_bits, made.operand_.bias = 0;
    made.axes_.resize(axes_.size());
    made.rows_ = rows_;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        made.axes_[i].size = axes_[i].size;
        made.axes_[i].count = up(axes_[i].size, side()) * side();
        find_stretches(made.axes_[i], axes_[i].size, 0, false);
    }
    const std::vector<std::size_t> axes = order();
    const std::int64_t line = made.axes_[axes[0]].count / side();
    if (leading > reach_max) bytes_of(operand_.name, static_cast<std::size_t>(leading), element_bytes());
    made.loops_ = {{axes[0], line, 1, 1}};
    std::int64_t stride = std::max(up(leading, side()), line);
    for (std::size_t i = 1; i < axes.size(); ++i) {
        const std::int64_t count = made.axes_[axes[i]].count / side();
        made.loops_.insert(made.loops_.begin(), {axes[i], count, 1, stride});
        stride = product("an operand's lines", stride, count);
    }
    return made;
}

Layout Layout::units() const {
    if (operand_.blocked == Blocked::no) return *this;
    Layout made(*this);
    made.operand_.blocked = Blocked::no;
    for (Positions& axis : made.axes_) {
        axis.size = up(axis.size, side());
        axis.count /= side();
        for (auto& [first, last, position] : axis.stretches) {
            first = up(first, side()), last = up(last, side());
            if (position > 0 && position % side() != 0) refuse("has tiles that are no whole blocks");
            position = position < 0 ? position : position / side();
        }
    }
    made.rows_ = made.axes_.front().size;  // blocks lie in two axes
    return made;
}

std::vector<std::size_t> Layout::shape() const {
    std::vector<std::size_t> extents;
    for (std::size_t i = axes_.size() - operand_.axes.size(); i < axes_.size(); ++i)
        extents.push_back(static_cast<std::size_t>(axes_[i].size));
    return extents;
}

std::size_t Layout::element_bytes() const {
    if (operand_.blocked != Blocked::no) return sizeof(float);
    return static_cast<std::size_t>(up(operand_.bits, byte_bits));
}

std::size_t Layout::extent(std::int64_t leading) const {
    const auto number = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    const std::size_t step = bytes_of(operand_.name, number(leading), element_bytes());
    return bytes_of(operand_.name, number(lines() - 1), step, number(line()) * element_bytes());
}

std::size_t Layout::reach() const {
    return bytes_of(operand_.name, static_cast<std::size_t>(last() + 1), static_cast<std::size_t>(operand_.bits)) /
           byte_bits;
}

/// The axes of the user's array, from the one along a line on.
std::vector<std::size_t> Layout::order() const {
    std::vector<std::size_t> axes(axes_.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (!column_major()) std::reverse(axes.begin(), axes.end());
    return axes;
}

/// The user's elements from one position of each axis to the next.
std::vector<std::int64_t> Layout::steps(std::int64_t leading) const {
    const std::vector<std::size_t> axes = order();
    std::vector<std::int64_t> steps(axes.size(), 1);
    for (std::size_t i = 1; i < axes.size(); ++i) {
        steps[axes[i]] = leading;
        leading *= axes_[axes[i]].size;
    }
    return steps;
}

std::optional<Layout::Direct> Layout::direct() const {
    if (operand_.bits % byte_bits != 0) return std::nullopt;
    std::vector<std::optional<std::int64_t>> strides(axes_.size());
    for (const ElementLoop& loop : loops_) {
        if (loop.count == 1) continue;
        if (strides[loop.axis]) return std::nullopt;
        strides[loop.axis] = loop.stride;
    }
    for (const Positions& axis : axes_) {
        const auto& [first, second] = std::pair(axis.stretches.front(), axis.stretches.back());
        const bool alone = axis.stretches.size() == 1 || (axis.stretches.size() == 2 && second.position < 0);
        if (first.position != 0 || first.last < axis.size || !alone) return std::nullopt;
    }
    const std::vector<std::size_t> axes = order();
    if (strides[axes[0]].value_or(1) != 1) return std::nullopt;
    const std::int64_t leading = strides[axes[1]].value_or(axes_[axes[0]].count / side());
    if (leading < up(line(), side())) return std::nullopt;
    const std::vector<std::int64_t> lines = steps(leading);
    for (std::size_t i = 2; i < axes.size(); ++i)
        if (strides[axes[i]].value_or(lines[axes[i]]) != lines[axes[i]]) return std::nullopt;
    return Direct{leading * side(), static_cast<std::size_t>(offset_ * (operand_.bits / byte_bits))};
}

std::array<std::byte, 8> Layout::missing_element() const {
    std::array<std::byte, 8> found{};
    if (!operand_.missing || *operand_.missing == 0) return found;
    std::byte* const element = found.data();
    const std::string& type = operand_.type;
    const double value = *operand_.missing;
    bool held = false;
    if (type == "f32" || operand_.blocked != Blocked::no) {
        held = written<float>(element, value);
    } else if (type == "bf16") {
        std::byte wide[sizeof(float)] = {};
        held = written<float>(wide, value);
        std::copy_n(wide + 2, 2, element);  // the upper half; what stands for missing operands has no more
    } else if (type.rfind("int", 0) == 0) {
        held = element_bytes() == 1   ? written<std::int8_t>(element, value)
               : element_bytes() == 2 ? written<std::int16_t>(element, value)
                                      : written<std::int32_t>(element, value);
    }
    if (!held) refuse(concat("has no element of type ", type, " for ", value, ", which stands for it"));
    return found;
}

void Layout::place_missing(void* buffer) const {
    if (!operand_.missing || *operand_.missing == 0) return;
    const std::array<std::byte, 8> element = missing_element();
    std::vector<std::byte> array(extent(line()));
    for (std::size_t at = 0; at < array.size(); at += element_bytes())
        std::copy_n(element.data(), element_bytes(), &array[at]);
    place(array.data(), line(), buffer);
}

}  // namespace bdforge::sequence
