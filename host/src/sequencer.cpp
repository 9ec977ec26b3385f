#include "sequencer.hpp"

#include <algorithm>
#include <deque>

namespace bdforge::sequence {
namespace {

constexpr std::int64_t granule_bits = 32;                // what DMAs move
constexpr std::size_t steps_max = std::size_t{1} << 14;  // of one run: its stream would have tens of MiB
// Operations of a version 0.1 stream, as mlir-aie numbers and pads them.
constexpr std::uint32_t op_write = 0, op_block_write = 1, op_mask_write = 3, op_tct = 0x80, op_patch = 0x81;
constexpr std::uint32_t write_bytes = 24, block_write_bytes = 16, mask_write_bytes = 28, tct_bytes = 16,
                        patch_bytes = 48, word_bytes = 4;
constexpr std::size_t header_words = 4;
constexpr std::size_t stream_words = std::size_t{1} << 14;  // room to start with

/// Elements of `bits` bits as 32-bit words.
std::int64_t in_words(const char* what, std::int64_t elements, std::uint32_t bits) {
    const std::int64_t all = product(what, elements, bits);
    if (all % granule_bits == 0) return all / granule_bits;
    throw SequenceError(concat(what, " is ", elements, " elements of ", bits, " bits; it must be a multiple of 4 bytes"));
}

struct Dim {
    std::int64_t size, stride;

    bool operator==(const Dim&) const = default;
};

/// A transfer: d0 to d2 and the iteration, innermost first, in elements of `bits` bits.
struct Transfer {
    std::array<Dim, 4> dims{{{1, 1}, {1, 0}, {1, 0}, {1, 0}}};
    std::uint32_t bits = granule_bits;

    bool operator==(const Transfer&) const = default;
};

using BdRegisters = std::array<std::uint32_t, 8>;

/// What a transfer puts into a BD, but for its number and the next one's.
struct BdWords {
    BdRegisters words;
    std::uint64_t offset_bytes;
};

/// Checks transfers against a shim's limits and makes their words: BDs are those of mlir-aie's tasks, as
/// `bdforge.devices.txn_format.bd_encoding.task_transfer` makes and checks them.
class BdEncoder {
public:
    explicit BdEncoder(const Target& target) : target_(target) {}

    /// Registers of a transfer from offset 0.
    BdRegisters shape(Transfer transfer) const {
        ranged("bits of an element", transfer.bits, 1, granule_bits);
        // As mlir-aie decides it for tasks: then the registers hold no dimensions, and d0's stride is lost.
        const bool linear = transfer.dims[1].size == 1 && transfer.dims[2].size == 1;
        check_elements(transfer, linear);
        to_words(transfer);
        check_words(transfer.dims, linear);
        const auto& dims = transfer.dims;
        const std::int64_t length = product("a length", product("a length", dims[0].size, dims[1].size), dims[2].size);
        ranged("a length in words", length, 1, target_.length_max);
        return registers(dims, length, linear);
    }

    /// Lets one that starts at 0 start elsewhere.
    void move(BdWords& bd, std::int64_t offset, std::uint32_t bits) const {
        ranged("an offset", offset, 0, INT64_MAX);
        bd.offset_bytes = static_cast<std::uint64_t>(in_words("an offset", offset, bits)) * word_bytes;
        // As mlir-aie does; the patch replaces it.
        bd.words[target_.patched_word] |= static_cast<std::uint32_t>(bd.offset_bytes);
        bd.words[target_.patched_word + 1] |= static_cast<std::uint32_t>(bd.offset_bytes >> 32);
    }

private:
    static constexpr std::array<const char*, 4> sizes{"size of dimension 0", "size of dimension 1",
                                                      "size of dimension 2", "size of dimension 3"};
    static constexpr std::array<const char*, 4> strides{"stride of dimension 0", "stride of dimension 1",
                                                        "stride of dimension 2", "stride of dimension 3"};

    static void check_elements(Transfer& transfer, bool linear) {
        Dim& inner = transfer.dims[0];
        if (linear && inner.stride != 1) {
            ranged(strides[0], inner.stride, inner.size > 1 ? 1 : 0, INT64_MAX);
            in_words(strides[0], inner.stride, transfer.bits);
            inner.stride = 1;
        }
        for (std::size_t i = 0; i < transfer.dims.size(); ++i) {
            const auto& [size, stride] = transfer.dims[i];
            ranged(sizes[i], size, 1, INT64_MAX);
            ranged(strides[i], stride, size > 1 && i < 3 ? 1 : 0, INT64_MAX);
        }
        if (transfer.bits != granule_bits && inner.size != 1)  // a DMA cannot step over part of a word
            ranged(strides[0], inner.stride, 1, 1);
    }

    static void to_words(Transfer& transfer) {
        for (std::size_t i = 1; i < transfer.dims.size(); ++i)
            transfer.dims[i].stride = in_words(strides[i], transfer.dims[i].stride, transfer.bits);
        Dim& inner = transfer.dims[0];
        inner.size = in_words(sizes[0], inner.size, transfer.bits);
        inner.stride = transfer.bits == granule_bits ? inner.stride : 1;
    }

    void check_words(const std::array<Dim, 4>& dims, bool linear) const {
        ranged(sizes[3], dims[3].size, 1, target_.iteration_max);
        for (std::size_t i = 0; i < dims.size(); ++i)
            if (dims[i].size > 1 || i == 0)  // whose step the registers hold whatever its size
                ranged(strides[i], dims[i].stride, 0, target_.step_max);
        for (std::size_t i = 0; i < target_.wraps.size() && !linear; ++i)
            ranged(sizes[i], dims[i].size, 1, target_.wraps[i]);
    }

    BdRegisters registers(const std::array<Dim, 4>& dims, std::int64_t length, bool linear) const {
        const BdFields& fields = target_.bd_fields;
        BdRegisters words = target_.bd_constant;
        const auto set = [&](Field field, std::int64_t value) {
            words[field.word] |= static_cast<std::uint32_t>(value) << field.low;
        };
        const auto step = [](Dim dim) { return dim.size == 1 ? 0 : dim.stride - 1; };
        set(fields.length, length);
        if (!linear) {
            set(fields.d0_wrap, dims[0].size), set(fields.d0_step, std::max<std::int64_t>(dims[0].stride - 1, 0));
            set(fields.d1_wrap, dims[1].size), set(fields.d1_step, step(dims[1]));
            set(fields.d2_step, step(dims[2]));
        }
        if (dims[3].size > 1 && dims[3].stride > 0)
            set(fields.iteration_wrap, dims[3].size - 1), set(fields.iteration_step, dims[3].stride - 1);
        return words;
    }

    const Target& target_;
};

/// Writes the operations of a stream of at most so many words.
class StreamWriter {
public:
    StreamWriter(const Target& target, std::size_t most) : target_(target), most_(most) {
        std::copy(target.header.begin(), target.header.end(), next(header_words));
    }

    void write(std::uint32_t address, std::uint32_t value) { add(op_write, 0, address, 0, value, write_bytes); }

    /// Registers that follow each other: one, or several by a block write.
    void write(std::uint32_t address, const std::uint32_t* values, std::size_t count) {
        if (count == 1) return write(address, *values);
        add(op_block_write, 0, address, block_write_bytes + word_bytes * static_cast<std::uint32_t>(count));
        std::copy_n(values, count, next(count));
    }

    /// Operations as they are.
    void copy(const Change& change) {
        std::copy(change.words.begin(), change.words.end(), next(change.words.size()));
        operations_ += change.operations;
    }

    /// Tokens of a channel from each of `columns` shims.
    void await(Direction direction, std::uint32_t channel, std::uint32_t column, std::uint32_t columns) {
        const auto way = static_cast<std::uint32_t>(direction);
        add(op_tct, tct_bytes, way | column << 16, 1u << 8 | columns << 16 | channel << 24);
    }

    /// A BD's registers, then the argument and offset that its address comes from.
    void configure(std::uint32_t column, std::uint32_t id, const std::uint32_t* next, const BdWords& bd,
                   std::uint32_t argument) {
        const std::uint32_t at = at_column(target_.bd_address + id * target_.bd_stride_bytes, column);
        const BdFields& fields = target_.bd_fields;
        add(op_block_write, 0, at, block_write_bytes + word_bytes * static_cast<std::uint32_t>(bd.words.size()));
        std::uint32_t* const words = this->next(bd.words.size());
        std::copy(bd.words.begin(), bd.words.end(), words);
        if (next) {
            words[fields.next.word] |= *next << fields.next.low;
            words[fields.use_next.word] |= 1u << fields.use_next.low;
        }
        add(op_patch, patch_bytes, 0, 0, 0, 0, at + word_bytes * target_.patched_word, 0, argument, 0,
            static_cast<std::uint32_t>(bd.offset_bytes), static_cast<std::uint32_t>(bd.offset_bytes >> 32));
    }

    void push(const Task& task, std::uint32_t column, std::uint32_t runs, std::uint32_t first_bd) {
        const auto way = static_cast<std::size_t>(task.direction);
        const QueueFields& fields = target_.queue_fields;
        if (task.token)
            add(op_mask_write, 0, at_column(target_.controls[way][task.channel], column), 0, target_.control_value,
                target_.control_mask, mask_write_bytes);
        write(at_column(target_.queues[way][task.channel], column),
              std::uint32_t{task.token} << fields.token | (runs - 1) << fields.repeat | first_bd << fields.bd);
    }

    /// The stream, no longer than it must be.
    std::vector<std::uint32_t> finish() {
        words_[2] = operations_;
        words_[3] = word_bytes * static_cast<std::uint32_t>(count_);
        return {words_.get(), words_.get() + count_};
    }

private:
    std::uint32_t at_column(std::uint32_t address, std::uint32_t column) const {
        return address + column * target_.column_stride;
    }

    /// Straight to its place: words that are collected first are read before their stores have ended.
    template <class... Words>
    void add(Words... words) {
        std::uint32_t* at = next(sizeof...(words));
        ((*at++ = static_cast<std::uint32_t>(words)), ...);
        ++operations_;
    }

    /// Room for the next words.
    std::uint32_t* next(std::size_t count) {
        if (count_ + count > room_) grow(count);
        count_ += count;
        return words_.get() + count_ - count;
    }

    void grow(std::size_t count) {
        if (count_ + count > most_)
            throw SequenceError(concat("the stream is longer than ", most_, " words; split the problem"));
        room_ = std::min(std::max({2 * room_, stream_words, count_ + count}), most_);
        std::unique_ptr<std::uint32_t[]> more(new std::uint32_t[room_]);  // not filled: next() is written to at once
        std::copy_n(words_.get(), count_, more.get());
        words_ = std::move(more);
    }

    const Target& target_;
    const std::size_t most_;
    std::unique_ptr<std::uint32_t[]> words_;
    std::size_t count_ = 0, room_ = 0;
    std::uint32_t operations_ = 0;
};

/// What a step starts with, in order: a task with its BDs, or a write of registers.
struct Item {
    const Task* task;             // null for a write
    std::uint32_t first, second;  // column and runs, address and number of values
    std::uint32_t bds;
};

struct ChainedBd {
    BdWords words;
    std::uint32_t argument;
};

/// A step whose BDs have no numbers yet.
struct PlannedStep {
    std::vector<Item> items;
    std::vector<ChainedBd> bds;
    std::vector<std::uint32_t> written;  // values of all writes
    std::vector<std::uint32_t> needs;    // BDs by column
    bool tasks = false;

    void clear() {
        items.clear(), bds.clear(), written.clear();
        std::fill(needs.begin(), needs.end(), 0);
        tasks = false;
    }
};

struct Wait {
    Direction direction;
    std::uint32_t channel, column, columns;
};

/// Runs steps in order, as many at a time as BDs and `in_flight` allow: the same as
/// `bdforge/design/sequences/interpret.py`.
class StepQueue {
public:
    StepQueue(const Source& source, StreamWriter& writer)
        : source_(source), writer_(writer), rings_(source.target.columns), in_flight_(source.program.in_flight) {}

    void start(const PlannedStep& step, std::vector<Wait> waits) {
        if (++steps_ > steps_max)
            throw SequenceError(concat("the sequence takes more than ", steps_max, " steps; split the problem"));
        check_order(step.needs, 0);
        while (!running_.empty() && (running_.size() == in_flight_ || !fits(step.needs))) end_oldest();
        begin(step);
        running_.push_back({{step.needs, step.tasks}, std::move(waits)});
        if (early_.empty()) return;
        running_.back().bds.add(early_.front());
        early_.front() = {};
    }

    void finish() {
        for (const Taken& early : early_)
            if (early.tasks) throw SequenceError(no_step);
        drain();
    }

    /// All that ran has ended, but for what comes ahead; from now on no more than `in_flight` steps run, and no more than
    /// the host asked for. What is `early` belongs to the next step and to those behind the next changes.
    void configure(const Configure& configure, const std::vector<PlannedStep>& early) {
        const auto last = std::find_if(running_.rbegin(), running_.rend(), [](const Running& one) { return one.bds.tasks; });
        if (last != running_.rend() && last->waits.empty())
            throw SequenceError("a step awaits no token; nothing says that it has ended by then");
        if (!early_.empty() && early_.front().tasks) throw SequenceError(no_step);
        if (configure.ahead != no_value) change(configure.ahead);
        if (!early_.empty()) early_.pop_front();
        Taken all;
        for (const PlannedStep& one : early) all.add({one.needs, one.tasks});
        const bool fit = fits(all.needs);
        const bool sooner = std::any_of(early.begin() + 1, early.end(), [](const PlannedStep& one) { return one.tasks; });
        if (fit && sooner && running_.size() == in_flight_) end_oldest();  // queues hold so many
        if (fit) begin_ahead(early);
        drain();
        if (configure.configuration != no_value) change(configure.configuration);
        if (!fit) begin_ahead(early);
        in_flight_ = std::min(configure.in_flight, source_.program.in_flight);
    }

private:
    /// BDs by column, and whether there are tasks.
    struct Taken {
        std::vector<std::uint32_t> needs;
        bool tasks = false;

        void add(const Taken& other) {
            needs.resize(std::max(needs.size(), other.needs.size()));
            for (std::size_t column = 0; column < other.needs.size(); ++column) needs[column] += other.needs[column];
            tasks |= other.tasks;
        }
    };
    struct Running {
        Taken bds;
        std::vector<Wait> waits;
    };
    /// The BDs of one shim, taken and freed in order.
    struct Ring {
        std::uint32_t head = 0, used = 0;
    };

    static constexpr const char* no_step =
        "no step follows what starts before a change; nothing says when its BDs are free";

    void begin(const PlannedStep& step) {
        if (!fits(step.needs))
            throw SequenceError(
                concat("a step needs more than the ", source_.target.bds, " BDs of a shim; start less at a time"));
        const ChainedBd* bds = step.bds.data();
        const std::uint32_t* written = step.written.data();
        for (const Item& item : step.items) {
            item.task ? run(item, bds) : writer_.write(item.first, written, item.second);
            bds += item.bds, written += item.task ? 0 : item.second;
        }
    }

    /// What starts before its steps, by the changes before these.
    void begin_ahead(const std::vector<PlannedStep>& early) {
        for (std::size_t changes = 0; changes < early.size(); ++changes) {
            check_order(early[changes].needs, changes);
            begin(early[changes]);
        }
        early_.resize(std::max(early_.size(), early.size()));
        for (std::size_t changes = 0; changes < early.size(); ++changes)
            early_[changes].add({early[changes].needs, early[changes].tasks});
    }

    /// Rings free BDs in the order in which they were taken.
    void check_order(const std::vector<std::uint32_t>& needs, std::size_t changes) const {
        for (std::size_t later = changes + 1; later < early_.size(); ++later)
            for (std::size_t column = 0; column < early_[later].needs.size(); ++column)
                if (early_[later].needs[column] != 0 && needs[column] != 0)
                    throw SequenceError(
                        concat("BDs of shim ", column, " are taken behind those of a later step, which start early"));
    }

    void drain() {
        while (!running_.empty()) {
            await(running_.front());
            free_oldest();
        }
    }

    void change(std::uint32_t number) {
        if (number >= source_.changes.size())
            throw SequenceError(concat("configuration ", number, " did not come with the design"));
        writer_.copy(source_.changes[number]);
    }

    bool fits(const std::vector<std::uint32_t>& needs) const {
        for (std::size_t column = 0; column < needs.size(); ++column)
            if (rings_[column].used + needs[column] > source_.target.bds) return false;
        return true;
    }

    void end_oldest() {
        const Running& oldest = running_.front();
        if (oldest.bds.tasks && oldest.waits.empty())
            throw SequenceError("a step awaits no token; nothing says when its BDs are free");
        await(oldest);
        free_oldest();
    }

    void free_oldest() {
        const std::vector<std::uint32_t>& needs = running_.front().bds.needs;
        for (std::size_t column = 0; column < needs.size(); ++column) rings_[column].used -= needs[column];
        running_.pop_front();
    }

    void await(const Running& step) {
        for (const auto& [direction, channel, column, columns] : step.waits) {
            const std::uint32_t width = source_.wide ? columns : 1;
            for (std::uint32_t first = column; first < column + columns; first += width)
                writer_.await(direction, channel, first, width);
        }
    }

    void run(const Item& item, const ChainedBd* bds) {
        Ring& ring = rings_[item.first];
        const std::uint32_t first = ring.head;
        for (std::uint32_t i = 0; i < item.bds; ++i) {
            const std::uint32_t id = ring.head, next = id + 1 == source_.target.bds ? 0 : id + 1;  // no division: slow
            writer_.configure(item.first, id, i + 1 < item.bds ? &next : nullptr, bds[i].words, bds[i].argument);
            ring.head = next;
        }
        ring.used += item.bds;
        writer_.push(*item.task, item.first, item.second, first);
    }

    const Source& source_;
    StreamWriter& writer_;
    std::vector<Ring> rings_;
    std::deque<Running> running_;
    std::deque<Taken> early_;  // of what has started, by the changes before the step that it belongs to
    std::size_t in_flight_, steps_ = 0;
};

/// One run of a program.
class ProgramRun {
public:
    ProgramRun(const Source& source, Values values, std::size_t most)
        : source_(source),
          program_(source.program),
          values_(std::move(values)),
          encoder_(source.target),
          writer_(source.target, most),
          steps_(source, writer_),
          shapes_(source.program.bds.size()) {
        planned_.needs.resize(source.target.columns);
    }

    std::vector<std::uint32_t> words() {
        block(program_.body);
        steps_.finish();
        return writer_.finish();
    }

private:
    void block(Range range) {
        for (std::uint32_t at = range.first; at < range.last; ++at) {
            values_.spend(1);
            statement(program_.statements[at]);
        }
    }

    void statement(Statement statement) {
        const std::uint32_t i = statement.index;
        switch (statement.kind) {
            case Kind::loop:
                for (std::int64_t counter = 0, count = values_[program_.loops[i].count]; counter < count; ++counter) {
                    values_.turn(i, counter, count);
                    block(program_.loops[i].body);
                }
                return;
            case Kind::choice: {
                const Choice& choice = program_.choices[i];
                return block(values_[choice.when] != 0 ? choice.body : choice.otherwise);
            }
            case Kind::step: return step(program_.steps[i]);
            case Kind::task: return task(program_.tasks[i]);
            case Kind::write: return write(program_.writes[i]);
            case Kind::configure: return configure(program_.configures[i]);
        }
    }

    void step(const Step& step) {
        planned_.clear();
        in_step_ = true;
        try {
            std::vector<Wait> awaited = waits(step.awaits);
            block(step.body);
            steps_.start(planned_, std::move(awaited));
        } catch (const SequenceError& error) {
            if (step.note == no_value) throw;
            throw SequenceError(concat(values_.note_text(program_.notes[step.note]), ": ", error.what()));
        }
        in_step_ = false;
    }

    void configure(const Configure& configure) {
        early_.resize(configure.early.size());
        in_step_ = true;
        for (std::size_t i = 0; i < early_.size(); ++i) {
            planned_.clear();
            block(configure.early[i]);
            early_[i] = planned_;
        }
        in_step_ = false;
        steps_.configure(configure, early_);
    }

    std::vector<Wait> waits(Range awaits) const {
        std::vector<Wait> found;
        for (std::uint32_t at = awaits.first; at < awaits.last; ++at) {
            const auto& [direction, channel, first, columns] = program_.tokens[at];
            const std::uint32_t left = source_.target.columns, column = number("a column", first, 0, left - 1);
            found.push_back({direction, channel, column, number("columns of a wait", columns, 1, left - column)});
        }
        return found;
    }

    void write(const Write& write) {
        const std::uint32_t address = number("a write's address", write.address, 0, word_max);
        const std::size_t before = planned_.written.size(), count = write.values.size();
        for (const ValueId value : write.values)
            planned_.written.push_back(number("a write's value", value, 0, word_max));
        if (in_step_) return planned_.items.push_back({nullptr, address, static_cast<std::uint32_t>(count), 0});
        writer_.write(address, planned_.written.data() + before, count);
        planned_.written.resize(before);
    }

    void task(const Task& task) {
        const std::uint32_t at = number("a column", task.column, 0, source_.target.columns - 1),
                            runs = number("runs of a task", task.runs, 1, source_.target.repeat_max);
        const std::size_t before = planned_.bds.size();
        for (std::uint32_t i = task.bds.first; i < task.bds.last; ++i) {
            const Bd& bd = program_.bds[i];
            if (bd.when == no_value || values_[bd.when] != 0)
                add(bd, shapes_[i]);
        }
        const auto count = static_cast<std::uint32_t>(planned_.bds.size() - before);
        if (count == 0) throw SequenceError("a task has no BD that is wanted");
        planned_.items.push_back({&task, at, runs, count});
        planned_.needs[at] += count;
        planned_.tasks = true;
    }

    /// Most BDs differ from what they were the last time by their offset alone.
    void add(const Bd& bd, std::pair<std::optional<Transfer>, BdRegisters>& last) {
        const Transfer asked = transfer(bd);
        auto& [known, shape] = last;
        if (known != asked) shape = encoder_.shape(asked), known = asked;
        ChainedBd& made = planned_.bds.emplace_back();
        made.words.words = shape, made.argument = bd.argument;
        encoder_.move(made.words, values_[bd.offset], asked.bits);
    }

    Transfer transfer(const Bd& bd) const {
        Transfer made;
        std::size_t rank = 0;
        for (std::uint32_t i = bd.rank; i-- > 0; ++rank)
            made.dims[rank] = {values_[bd.sizes[i]], values_[bd.strides[i]]};
        if (bd.runs[0] != no_value && values_[bd.runs[0]] != 1) {
            if (rank == made.dims.size()) throw SequenceError("a BD has 4 dimensions and runs; runs are the fourth");
            made.dims.back() = {values_[bd.runs[0]], values_[bd.runs[1]]};
        }
        made.bits = bd.bits == 0 ? program_.arguments[bd.argument].bits : bd.bits;
        return made;
    }

    std::uint32_t number(const char* what, ValueId id, std::int64_t lowest, std::int64_t highest) const {
        return static_cast<std::uint32_t>(ranged(what, values_[id], lowest, highest));
    }

    const Source& source_;
    const Program& program_;
    Values values_;
    BdEncoder encoder_;
    StreamWriter writer_;
    StepQueue steps_;
    PlannedStep planned_;
    std::vector<PlannedStep> early_;
    std::vector<std::pair<std::optional<Transfer>, BdRegisters>> shapes_;  // by BD, the last one's
    bool in_step_ = false;
};

}  // namespace

std::vector<std::uint32_t> Sequencer::words(const Parameters& parameters, std::size_t most) const {
    return ProgramRun(source_, values(parameters), most).words();
}

}  // namespace bdforge::sequence
