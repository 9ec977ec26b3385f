// A sequence program: what the controller does for any problem of a design, as data.
//
// The manifest's `sequence.program`, in tables instead of nested lists; `bdforge/design/sequences/sequence_program.py` says what all of it
// means.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/target.hpp"

namespace bdforge::generator {

/// A program that cannot run, or a problem for which it cannot.
class SequenceError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// Place of a value in `Program::values`.
using Place = std::uint32_t;
/// No value: what is left out.
constexpr Place none = 0xFFFFFFFF;

enum class Operation : std::uint8_t {
    constant, parameter, index, add, sub, mul, floordiv, ceildiv, mod, min, max, lt, le, eq, select, divisor
};

/// An operation, by its name in programs and the values that it takes.
struct OperationFacts {
    const char *name;
    std::uint32_t operands;
};
constexpr std::array<OperationFacts, 16> operations{{
    {"constant", 0}, {"parameter", 0}, {"index", 0}, {"add", 2}, {"sub", 2}, {"mul", 2}, {"floordiv", 2},
    {"ceildiv", 2}, {"mod", 2}, {"min", 2}, {"max", 2}, {"lt", 2}, {"le", 2}, {"eq", 2}, {"select", 3}, {"divisor", 2},
}};

inline const OperationFacts &facts(Operation operation) { return operations[static_cast<std::size_t>(operation)]; }

/// An integer: `number` is the constant, a parameter's place in `Program::parameters` or a loop's in `Program::loops`;
/// of other operations `operands` are the places of earlier values.
struct Value {
    Operation operation;
    std::int64_t number;
    std::array<Place, 3> operands{};
};

/// Entries of a table, from `first` to before `last`.
struct Range {
    std::uint32_t first, last;
};

/// Text with {} for each of `values`.
struct Note {
    std::string text;
    std::vector<Place> values;
};

/// A host buffer: `elements` of `bits` bits each.
struct Argument {
    std::string name, type;
    std::uint32_t bits;
    Place elements;
};

constexpr std::int64_t axes_max = 8;  // of an operand, so that a file cannot ask for more

/// Which positions of the user's an operand's places along an axis hold. `tile` may be `none`.
struct Axis {
    Place size, walked, tile;
    bool once;
};

/// One loop over places: `count` times `step` places on along axis `axis`, and `stride` elements in the buffer.
struct PlaceLoop {
    std::uint32_t axis;
    Place count, step, stride;
};

/// Whether places are single elements, or tiles of 8 x 8 values, blocks along the last axis or the first one.
enum class Blocked : std::uint8_t { no, across, down };

/// An array of the user's in an argument's buffer; `out`: the array writes it. `column_major`: lines of the user's own
/// memory run along the first axis. `leading` is the parameter that says how far they are apart, or `none`; `missing`
/// stands for an operand that is not given, `values` are the smallest and the largest that it may hold.
struct Operand {
    std::string name;
    std::uint32_t argument;
    bool out;
    std::string type;
    std::uint32_t bits;
    std::optional<std::pair<std::int64_t, std::int64_t>> values;
    std::int64_t bias;
    Blocked blocked;
    std::optional<double> missing;
    bool column_major;
    std::uint32_t leading;
    Place staged;
    std::vector<Axis> axes;
    Place offset;
    std::vector<PlaceLoop> loops;
};

/// What must hold before anything runs, and what is said where it does not.
struct Requirement {
    Place when;
    Note otherwise;
};

enum class Direction : std::uint8_t { s2mm, mm2s };

/// One BD of a chain: `rank` sizes and strides in elements, outermost first. `runs` (count, stride) and `when` may be
/// `none`.
struct Bd {
    std::uint32_t argument, rank;
    Place offset;
    std::array<Place, 4> sizes, strides;
    std::array<Place, 2> runs;
    Place when;
};

/// A token from a channel of each of `columns` shims.
struct Tokens {
    Direction direction;
    std::uint32_t channel;
    Place column, columns;
};

/// Statements in order; `index` names one of the table of its kind.
enum class Kind : std::uint8_t { loop, choice, step, task, write };
struct Statement {
    Kind kind;
    std::uint32_t index;
};

/// `number` is the loop's name in messages, `outer` the one around it by its place in the table, or `none`.
struct Loop {
    std::uint32_t number;
    Place count;
    Range body;
    std::uint32_t outer;
};

struct Choice {
    Place when;
    Range body, otherwise;
};

/// Tasks and writes that are under way together, until the tokens came. `note` is its place in the table, or `none`.
struct Step {
    Range body, awaits;
    std::uint32_t note;
};

struct Task {
    Direction direction;
    std::uint32_t channel;
    Place column, runs;
    bool token;
    Range bds;
};

/// Registers from an address on become `values`.
struct Write {
    Place address;
    std::vector<Place> values;
};

/// A program, as `parse_manifest` reads it. Ranges are of the table that bears their kind's name; `body` and those within
/// statements of `statements`, where blocks stand behind the statements that hold them.
struct Program {
    std::vector<std::string> parameters;
    std::vector<Value> values;
    std::vector<Argument> arguments;
    std::vector<Operand> operands;
    std::vector<Requirement> requirements;
    std::vector<Statement> statements;
    std::vector<Loop> loops;
    std::vector<Choice> choices;
    std::vector<Step> steps;
    std::vector<Task> tasks;
    std::vector<Write> writes;
    std::vector<Bd> bds;
    std::vector<Tokens> tokens;
    std::vector<Note> notes;
    Range body;
    std::uint32_t in_flight;
    std::uint32_t in_flight_max = 4;  // that queues hold, whatever a host asks for
};

/// What a design's streams are made from. With `wide` one operation awaits the tokens of several columns.
struct Design {
    Program program;
    Target target;
    bool wide = false;
};

}  // namespace bdforge::generator
