#pragma once
// A sequence program: what the controller does for any problem of a design, as data, and what it is checked and encoded against.
//
// The manifest's `sequence`, in tables instead of nested lists; `bdforge/design/sequences/sequence_program.py` says what all
// of it means.

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "json.hpp"

namespace bdforge::sequence {

/// A program that cannot run, or a problem for which it cannot.
class SequenceError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// Place of a value in `Program::values`.
using ValueId = std::uint32_t;
/// No value: what is left out.
constexpr ValueId no_value = 0xFFFFFFFF;
/// No loop: of what never changes.
constexpr std::uint32_t no_loop = no_value;

enum class Operation : std::uint8_t {
    constant, parameter, index, add, sub, mul, floordiv, ceildiv, mod, min, max, lt, le, eq, select, divisor
};

/// An operation, by its name in programs and the values that it takes.
struct OperationFacts {
    const char* name;
    std::uint32_t operands;
};
constexpr std::array<OperationFacts, 16> operations{{
    {"constant", 0}, {"parameter", 0}, {"index", 0}, {"add", 2}, {"sub", 2}, {"mul", 2}, {"floordiv", 2},
    {"ceildiv", 2}, {"mod", 2}, {"min", 2}, {"max", 2}, {"lt", 2}, {"le", 2}, {"eq", 2}, {"select", 3}, {"divisor", 2},
}};

inline const OperationFacts& facts(Operation operation) { return operations[static_cast<std::size_t>(operation)]; }

/// An integer: `number` is the constant, a parameter's place in `Program::parameters` or a loop's in `Program::loops`;
/// of other operations `operands` are the places of earlier values.
struct Value {
    Operation operation;
    std::int64_t number;
    std::array<ValueId, 3> operands{};
};

/// Entries of a table, from `first` to before `last`.
struct Range {
    std::uint32_t first, last;
};

/// Text with {} for each of `values`.
struct Note {
    std::string text;
    std::vector<ValueId> values;
};

/// A host buffer: `elements` of `bits` bits each.
struct Argument {
    std::string name, type;
    std::uint32_t bits;
    ValueId elements;
};

constexpr std::int64_t word_max = 0xFFFFFFFF;
constexpr std::int64_t axes_max = 8;  // of an operand, so that a file cannot ask for more

/// Which positions of the user's an operand's places along an axis hold. `tile` may be `no_value`.
struct Axis {
    ValueId size, walked, tile;
    bool once;
};

/// One loop over places: `count` times `step` places on along axis `axis`, and `stride` elements in the buffer.
struct PlaceLoop {
    std::uint32_t axis;
    ValueId count, step, stride;
};

/// Whether places are single elements, or tiles of 8 x 8 values, blocks along the last axis or the first one.
enum class Blocked : std::uint8_t { no, across, down };

/// An array of the user's in an argument's buffer; `out`: the array writes it, `between`: and reads it again.
/// `column_major`: lines of the user's own memory run along the first axis. `leading` is the parameter that says how far
/// they are apart, or `no_value`; `missing` stands for an operand that is not given, `values` are the smallest and the
/// largest that it may hold.
struct Operand {
    std::string name;
    std::uint32_t argument;
    bool out, between;
    std::string type;
    std::uint32_t bits;
    std::optional<std::pair<std::int64_t, std::int64_t>> values;
    std::int64_t bias;
    Blocked blocked;
    std::optional<double> missing;
    bool column_major;
    std::uint32_t leading;
    ValueId staged;
    std::vector<Axis> axes;
    ValueId offset;
    std::vector<PlaceLoop> loops;
};

/// What must hold before anything runs, and what is said where it does not.
struct Requirement {
    ValueId when;
    Note otherwise;
};

enum class Direction : std::uint8_t { s2mm, mm2s };

/// One BD of a chain: `rank` sizes and strides in elements, outermost first. `runs` (count, stride) and `when` may be
/// `no_value`; `bits` are an element's, 0: the argument's.
struct Bd {
    std::uint32_t argument, rank;
    ValueId offset;
    std::array<ValueId, 4> sizes, strides;
    std::array<ValueId, 2> runs;
    ValueId when;
    std::uint32_t bits;
};

/// A token from a channel of each of `columns` shims.
struct Tokens {
    Direction direction;
    std::uint32_t channel;
    ValueId column, columns;
};

/// Statements in order; `index` names one of the table of its kind.
enum class Kind : std::uint8_t { loop, choice, step, task, write, configure };
struct Statement {
    Kind kind;
    std::uint32_t index;
};

/// `number` is the loop's name in messages, `outer` the one around it by its place in the table, or `no_value`.
struct Loop {
    std::uint32_t number;
    ValueId count;
    Range body;
    std::uint32_t outer;
};

struct Choice {
    ValueId when;
    Range body, otherwise;
};

/// Tasks and writes that are under way together, until the tokens came. `note` is its place in the table, or `no_value`.
struct Step {
    Range body, awaits;
    std::uint32_t note;
};

struct Task {
    Direction direction;
    std::uint32_t channel;
    ValueId column, runs;
    bool token;
    Range bds;
};

/// Registers from an address on become `values`.
struct Write {
    ValueId address;
    std::vector<ValueId> values;
};

/// A change of the array's configuration, by its number, or `no_value` for a wait for all that ran before; at most
/// `in_flight` steps run from then on. What number `ahead` says, if any, comes before those have ended, and the tasks and
/// writes of `early` behind it: those of its first block belong to the first step behind the change, those of the others
/// to the first step behind the next change, the one after that, and so on.
struct Configure {
    std::uint32_t configuration, ahead, in_flight;
    std::vector<Range> early;
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
    std::vector<Configure> configures;
    std::vector<Bd> bds;
    std::vector<Tokens> tokens;
    std::vector<Note> notes;
    Range body;
    std::uint32_t in_flight;
    std::uint32_t in_flight_max = 4;  // that queues hold, whatever a host asks for
    std::uint32_t configurations = 0;  // that come with the design, besides the one that is loaded
};

/// A register field: word of its group, lowest bit.
struct Field {
    std::uint32_t word, low;
};

/// Fields of a shim's buffer descriptor. Wraps count from 1, steps from 0 (stored minus 1).
struct BdFields {
    Field length, d0_wrap, d0_step, d1_wrap, d1_step, d2_step, iteration_wrap, iteration_step, next, use_next;
};

/// Lowest bits of a task queue's fields.
struct QueueFields {
    std::uint32_t token, repeat, bd;
};

/// The manifest's `sequence.target`; registers are those of column 0.
struct Target {
    std::array<std::uint32_t, 2> header;  // first words of every stream
    std::uint32_t columns;
    std::uint32_t column_stride;  // from a register to the same one of the next column
    std::uint32_t bds;
    std::array<std::uint32_t, 2> wraps;  // largest sizes of d0 (words) and d1
    std::uint32_t step_max;              // words
    std::uint32_t iteration_max, length_max, repeat_max, queue_entries;
    std::uint32_t bd_address, bd_stride_bytes;
    std::array<std::uint32_t, 8> bd_constant;  // what every BD holds beside its fields
    BdFields bd_fields;
    std::uint32_t patched_word;                        // low half of the host address; the high half follows
    std::array<std::vector<std::uint32_t>, 2> queues;  // by direction and channel
    QueueFields queue_fields;
    std::array<std::vector<std::uint32_t>, 2> controls;
    std::uint32_t control_value, control_mask;  // what carries tokens to the controller
};

/// What changes the array's configuration: so many operations of an instruction stream.
struct Change {
    std::uint32_t operations;
    std::vector<std::uint32_t> words;
};

/// What a design's streams are made from. With `wide` one operation awaits the tokens of several columns; `changes` are
/// those of the program's configurations, by number.
struct Source {
    Program program;
    Target target;
    bool wide = false;
    std::vector<Change> changes{};
};

/// Changes in a file's content: instruction streams for a target, one behind the other. SequenceError for words that are
/// none, and for another number of them than `count`.
std::vector<Change> read_changes(const std::string& content, const Target& target, std::size_t count);

/// For each value the innermost loop whose counter it depends on, or `no_loop`, and whether anything but values of that
/// loop reads it.
struct Dependencies {
    std::vector<std::uint32_t> innermost;
    std::vector<bool> read;
};

/// What each value depends on. SequenceError for a value, a loop, an argument or a channel that is not there where it is
/// used: all that a run could trip over but values. The same rules as `bdforge/design/sequences/program_check.py`; that
/// tables are whole, numbers in range and loops each there once `read_sequence` sees to.
Dependencies check(const Source& source);

/// A manifest's `sequence`. ManifestError names the first thing that is missing, wrong or unknown.
Source read_sequence(const JsonView& view);

}  // namespace bdforge::sequence
