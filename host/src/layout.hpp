// Where an operand's elements stand in its buffer, for one problem; the same as `bdforge/design/sequences/operands.py`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sequencer.hpp"

namespace bdforge::sequence {

/// Places from `first` to before `last` that hold positions of the user's from `position` on, or 0 where that is below 0.
struct Stretch {
    std::int64_t first, last, position;
};

/// Which positions the places along an axis hold: `count` places, `size` positions. `stretches` follow one another.
struct Positions {
    std::int64_t size = 1, count = 1;
    std::vector<Stretch> stretches;
};

/// A loop over places and elements, outermost first.
struct ElementLoop {
    std::size_t axis;
    std::int64_t count, step, stride;
};

/// An array of rows and columns in a buffer, checked: no place leaves it. One axis is a row; of more than two, all but the
/// last make the rows.
///
/// The user's elements are those of the operand's type; types below a byte take a byte, block floats a float. Lines,
/// `leading` elements apart, are rows, or columns where `column_major`.
class Layout {
public:
    /// SequenceError where loops leave the buffer, where an element has no place, or where two loops lead to one place.
    Layout(const Operand& operand, const Argument& argument, const Values& values);

    /// The operand in lines of the user's elements (of block floats in the array's form), `leading` of them apart, in a
    /// buffer of its own; 0: no gap.
    Layout in_lines(std::int64_t leading = 0) const;
    /// Block floats as the array has them, 8 x 8 values of 72 bytes for an element; others are what they are.
    Layout units() const;

    const Operand& operand() const { return operand_; }
    std::int64_t rows() const { return rows_; }
    std::int64_t columns() const { return axes_.back().size; }
    /// Elements along each of the operand's axes.
    std::vector<std::size_t> shape() const;
    std::int64_t lines() const { return column_major() ? columns() : rows(); }
    std::int64_t line() const { return column_major() ? rows() : columns(); }
    bool column_major() const { return operand_.column_major; }
    /// Whether the buffer must be one of the host's.
    bool staged() const { return staged_; }
    /// Sides of what stands side by side in the buffer: 8 for block floats, else 1.
    std::int64_t side() const { return operand_.blocked == Blocked::no ? 1 : 8; }
    /// Bytes of one of the user's elements.
    std::size_t element_bytes() const;
    /// Bytes of the user's array from its first element to behind its last one. ArgumentError beyond all memory.
    std::size_t extent(std::int64_t leading) const;
    /// Bytes of the buffer up to behind the last place.
    std::size_t reach() const;

    /// Where the buffer holds the user's elements line by line: its own `leading`, and the first one's byte.
    struct Direct {
        std::int64_t leading;
        std::size_t first;
    };
    std::optional<Direct> direct() const;

    /// The first of the user's elements, row by row, that the operand may not hold: row, column and value.
    struct Fault {
        std::int64_t row, column, value;
    };
    std::optional<Fault> fault(const void* data, std::int64_t leading) const;
    /// Writes the user's array, without faults, to its places in a buffer of zeros or of an array before it. SequenceError
    /// for a float that block floats cannot hold.
    void place(const void* data, std::int64_t leading, void* buffer) const;
    /// Writes each position of the user's array.
    void fetch(const void* buffer, void* data, std::int64_t leading) const;
    /// Writes what stands for an operand that is not given.
    void place_missing(void* buffer) const;

private:
    Layout() = default;
    template <bool in>
    void copy(void* array, std::int64_t leading, void* buffer) const;
    [[noreturn]] void refuse(const std::string& what) const;
    void read_axis(std::size_t axis, const Axis& from, const Values& values);
    void read_loops(const Values& values);
    void check_shared(std::size_t before) const;
    void find_stretches(Positions& axis, std::int64_t walked, std::int64_t tile, bool once) const;
    void check_bounds(std::int64_t elements) const;
    std::int64_t last() const;
    std::array<std::byte, 8> missing_element() const;

    Operand operand_;
    bool staged_ = false;
    std::vector<std::size_t> order() const;
    std::vector<std::int64_t> steps(std::int64_t leading) const;

    std::vector<Positions> axes_;  // two at least
    std::int64_t rows_ = 1;
    std::vector<ElementLoop> loops_;
    std::int64_t offset_ = 0;
};

}  // namespace bdforge::sequence
