#include "bdforge/job.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "bdforge/error.hpp"
#include "extent.hpp"
#include "state.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

using sequence::Layout;

constexpr std::size_t page_bytes = 4096;  // what XRT asks of memory that it shares with the caller

/// Builds the parts of a job, which then stay as they are.
class Preparation {
public:
    Preparation(const std::shared_ptr<DesignState>& design, const Sizes& sizes, const JobOptions& options)
        : design_(design),
          sizes_(sizes),
          options_(options),
          residents_(options.residents),
          parameters_(all_parameters(*design, sizes)),
          layouts_(layouts(*design, design->streams.values(parameters_))),
          operands_(layouts_.operands.size()),
          memory_(layouts_.bytes.size()),
          resident_(memory_.size()) {
        for (const auto& [name, memory] : options_.memory) design_->operand(name);  // refuses unknown ones
        take_residents();
    }

    /// Takes all else of a job of these sizes, but for the arguments of operands of `own`.
    Preparation& beside(const JobState& other, const std::vector<std::string>& own) {
        std::vector<bool> shared(memory_.size());
        for (std::size_t i = 0; i < memory_.size(); ++i) shared[i] = !memory_[i];
        for (const std::string& name : own) {
            const std::size_t argument = design_->operand(name).argument;
            if (memory_[argument]) throw ArgumentError("operand " + name + " is resident; name it once");
            shared[argument] = false;
        }
        for (std::size_t i = 0; i < memory_.size(); ++i)
            if (shared[i]) memory_[i] = other.memory[i];
        for (std::size_t i = 0; i < operands_.size(); ++i)
            if (shared[other.operands[i]->layout.operand().argument]) operands_[i] = other.operands[i];
        for (const Resident& resident : other.residents)
            if (shared[resident.state()->argument]) residents_.push_back(resident);
        users_ = other.users;
        return *this;
    }

    /// Takes all memory and all residents of a job of other sizes, which stays what it is.
    Preparation& within(const JobState& other) {
        for (std::size_t i = 0; i < memory_.size(); ++i) check_room(i, *other.memory[i], other);
        for (const Resident& resident : other.residents) check_sizes(*resident.state());
        for (const auto& placed : other.operands) {
            if (placed->callers)
                throw ArgumentError(placed->layout.operand().name + " is in the caller's memory, for " +
                                    other.execution.what() + " alone; let the job have its own");
            resident_[placed->layout.operand().argument] = placed->resident;
        }
        memory_ = other.memory, residents_ = other.residents, users_ = other.users, kept_ = true;
        return *this;
    }

    /// Takes the places of operands of a job of another design, own names first.
    Preparation& standing(const JobState& other, const std::map<std::string, std::string>& operands) {
        check_array(*design_, *other.design);
        for (const auto& [own, theirs] : operands) {
            const std::size_t argument = design_->operand(own).argument;
            if (resident_[argument]) throw ArgumentError("operand " + own + " is resident; name it once");
            memory_[argument] = other.memory[other.operand(theirs).layout.operand().argument];
        }
        for (std::size_t i = 0; i < operands_.size(); ++i) {
            const sequence::Operand& operand = layouts_.operands[i].operand();
            if (!memory_[operand.argument] || resident_[operand.argument]) continue;
            check_room(operand.argument, *memory_[operand.argument], other);
            operands_[i] = std::make_shared<Placed>(placed(layouts_.operands[i]));
            const auto name = operands.find(operand.name);
            check_place(*operands_[i], other, name == operands.end() ? nullptr : &other.operand(name->second));
        }
        users_ = other.users;
        return *this;
    }

    std::unique_ptr<JobState> job() {
        for (std::size_t i = 0; i < operands_.size(); ++i)
            if (!operands_[i]) anew_.push_back(operands_[i] = std::make_shared<Placed>(placed(layouts_.operands[i])));
        take_memory();
        allocate();
        Arguments buffers;
        for (const auto& memory : memory_) buffers.push_back(memory->buffer);
        const auto stream = design_->streams.get(*design_->context, design_->full_elf, parameters_);
        Execution execution(design_->context->command(*stream, buffers), described());
        return std::make_unique<JobState>(JobState{design_, sizes_, std::move(residents_), std::move(operands_),
                                                   std::move(memory_), stream, std::move(execution), users_});
    }

private:
    static std::shared_ptr<Memory> made(std::shared_ptr<Buffer> buffer, bool touched) {
        return std::make_shared<Memory>(std::move(buffer), touched);
    }

    std::string described() const {
        return design_->manifest.design + " " + shape_of(design_->program(), parameters_) + " on " +
               design_->device.name();
    }

    void check_room(std::size_t argument, const Memory& memory, const JobState& other) const {
        const std::size_t needed = layouts_.bytes[argument], there = memory.buffer->bytes();
        if (needed > there)
            throw ArgumentError(concat(design_->program().arguments[argument].name, " of ", described(), " takes ", needed,
                                       " bytes, and has ", there, " in the memory of ", other.execution.what(),
                                       "; make the largest job first"));
    }

    /// Type, shape, and where in its buffer an operand's elements are.
    static std::string elements(const Placed& placed) {
        const Layout& layout = placed.layout;
        if (!placed.direct) return "in a form of its own";
        const auto& [leading, first] = *placed.direct;
        const std::string& type = layout.operand().type;
        if (layout.lines() == 1 || leading == layout.line())
            return concat(type, "[", layout.lines() * layout.line(), "] from byte ", first, " on");
        return concat(type, "[", layout.lines(), " x ", layout.line(), "] from byte ", first, " on, lines ", leading,
                      " apart");
    }

    /// ArgumentError unless an operand's elements are just those of another job's; null: nobody says which.
    void check_place(const Placed& own, const JobState& other, const Placed* theirs) const {
        const std::string what = "operand " + own.layout.operand().name + " of " + described();
        if (theirs == nullptr)
            throw ArgumentError(what + " lies in one buffer with others that are to stand where " + other.execution.what() +
                                " has them; say where this one is there, too");
        const std::string name = theirs->layout.operand().name;
        if (memory_[own.layout.operand().argument] != other.memory[theirs->layout.operand().argument] || !own.direct ||
            elements(own) != elements(*theirs))
            throw ArgumentError(what + " does not lie where " + other.execution.what() + " has " + name + ": it is " +
                                elements(own) + ", that one " + elements(*theirs) +
                                "; give them buffers with the same tensors in the same order");
        if (own.layout.operand().out && own.layout.reach() > theirs->layout.reach())
            throw ArgumentError(what + " is written with rows behind it, where " + other.execution.what() +
                                " has something else; give it a buffer of its own");
    }

    void take_residents() {
        for (const Resident& resident : options_.residents) {
            const ResidentState& state = *resident.state();
            const std::string& name = state.layouts.front().operand().name;
            if (state.design != design_)
                throw ArgumentError("the resident " + name + " was packed for another design, or for " +
                                    state.design->manifest.design + " as it was loaded before; pack it for this one");
            check_sizes(state);
            if (memory_[state.argument]) throw ArgumentError("two residents hold " + name + "; give one");
            memory_[state.argument] = made(state.buffer, false);
            resident_[state.argument] = true;
        }
    }

    void check_sizes(const ResidentState& state) const {
        for (const auto& [size, value] : state.sizes) {
            const auto own = sizes_.find(size);
            if (own != sizes_.end() ? own->second != value : value != 0)
                throw ArgumentError(concat("the resident ", state.layouts.front().operand().name, " has ", size, " = ",
                                         value, ", the job another; place it for this size"));
        }
    }

    /// Where an operand's elements are: in lines of the caller's kind, or as the program copies them.
    Placed placed(const Layout& copied) {
        const sequence::Operand& operand = copied.operand();
        const bool resident = resident_[operand.argument];
        std::int64_t leading = 0;
        if (operand.leading != sequence::no_value && parameters_[operand.leading] == copied.line())
            parameters_[operand.leading] = 0;  // which is the same
        if (operand.leading != sequence::no_value) leading = parameters_[operand.leading];
        const bool walked = operand.leading != sequence::no_value && !copied.staged();
        Layout layout = walked && !resident ? copied.in_lines(leading) : copied;
        const Layout lines = layout.in_lines();
        auto direct = layout.direct();
        Placed made{std::move(layout), lines, direct, resident, false, {}};
        if (!direct && operand.out) made.memory.resize(lines.reach());
        return made;
    }

    void take_memory() {
        std::vector<std::pair<Extent, bool>> taken;
        for (std::size_t i = 0; i < operands_.size(); ++i) {
            const auto found = options_.memory.find(operands_[i]->layout.operand().name);
            if (found == options_.memory.end() || found->second == nullptr) continue;
            Placed& placed = *operands_[i];
            const sequence::Operand& operand = placed.layout.operand();
            check_memory(placed, layouts_.operands[i], found->second);
            const Extent memory{operand.name.c_str(), found->second, placed.layout.reach()};
            for (const auto& [other, out] : taken)
                if (out || operand.out)
                    refuse_overlap(other, memory, "give each its own, what the array writes must not be read");
            taken.emplace_back(memory, operand.out);
            memory_[operand.argument] =
                made(design_->context->adopt(operand.argument, found->second, memory.bytes), true);
            memory_[operand.argument]->kept = true;
            placed.callers = true;
        }
    }

    void check_memory(const Placed& placed, const Layout& copied, const void* memory) const {
        const sequence::Operand& operand = placed.layout.operand();
        const auto beside = [&](const auto& each) { return each->layout.operand().argument == operand.argument; };
        std::string why;
        if (memory_[operand.argument])
            why = "it is resident";
        else if (copied.staged() && operand.leading != sequence::no_value)
            why =
                "it is smaller than a tile, or its lines do not start at 4-byte words within a BD's reach, or are no "
                "whole slabs; the array walks a copy";
        else if (copied.staged() || !placed.direct || std::count_if(operands_.begin(), operands_.end(), beside) > 1)
            why = "the array reads it in a form of its own";
        if (!why.empty())
            throw ArgumentError(operand.name + " cannot be the caller's memory: " + why +
                                "; leave it out, and use the job's own");
        if (reinterpret_cast<std::uintptr_t>(memory) % page_bytes != 0)
            throw ArgumentError(concat(operand.name, " is not aligned to ", page_bytes,
                                     " bytes; allocate it with aligned_alloc or mmap, or use the job's own memory"));
    }

    void allocate() {
        for (std::size_t i = 0; i < memory_.size(); ++i) {
            if (memory_[i]) continue;
            memory_[i] = made(design_->context->allocate(i, layouts_.bytes[i]), true);
            std::memset(memory_[i]->buffer->data(), 0, memory_[i]->buffer->bytes());
        }
        for (const auto& placed : anew_) {
            const Layout& layout = placed->layout;
            if (placed->resident || placed->callers || kept_) continue;
            Buffer& buffer = *memory_[layout.operand().argument]->buffer;
            if (layout.reach() > buffer.bytes())
                throw ManifestError(concat(design_->manifest.file, ": operand ", layout.operand().name, " takes ",
                                         layout.reach(), " bytes, its buffer has ", buffer.bytes(),
                                         "; build the design again"));
            layout.place_missing(buffer.data());
        }
    }

    const std::shared_ptr<DesignState>& design_;
    const Sizes& sizes_;
    const JobOptions& options_;
    std::vector<Resident> residents_;
    sequence::Parameters parameters_;
    Layouts layouts_;
    std::vector<std::shared_ptr<Placed>> operands_, anew_;
    std::vector<std::shared_ptr<Memory>> memory_;
    std::vector<bool> resident_;  // by argument
    bool kept_ = false;           // another job's, with what stands there
    std::shared_ptr<Users> users_ = std::make_shared<Users>();
};

void refuse_lent(const JobState& state) {
    if (state.lent) throw StateError(state.execution.what() + " runs in a batch; wait for the batch");
}

void refuse_running_beside(const JobState& state) {
    refuse_lent(state);
    if (!state.execution.running() && state.users->running())
        throw StateError(state.execution.what() + " shares memory with a job that is running; wait for that first");
}

void refuse_running(const JobState& state) {
    refuse_running_beside(state);
    if (state.execution.running()) throw StateError(state.execution.what() + " is running; wait for it first");
}

}  // namespace

void JobState::begin() {
    users->run();
    in_use.begin(users, residents);
    for (const auto& each : memory) each->sent = each->received = false;
}

void JobState::send() {
    for (const auto& placed : operands) {
        Memory& to = memory_of(*placed);
        const bool input = placed->direct && !placed->resident && !placed->layout.operand().out;
        if (input && to.kept && !to.sent) to.touched = true;  // which the user may write at any time
    }
    for (const auto& placed : operands) {
        Memory& to = memory_of(*placed);
        if (to.sent || placed->layout.operand().out || placed->memory.empty()) continue;
        const Layout lines = placed->lines.units();
        place(placed->layout.units(),
              {placed->memory.data(), placed->memory.size(), static_cast<std::size_t>(lines.line())},
              to.current());
        to.touched = true;
    }
    for (const auto& each : memory) {
        if (each->sent) continue;
        if (each->touched) each->buffer->to_device();
        each->touched = false;
        each->sent = true;
    }
}

void JobState::receive() {
    in_use.end();
    for (const auto& placed : operands) {
        Memory& from = memory_of(*placed);
        if (from.received || !placed->layout.operand().out) continue;
        from.behind = true;
        if (from.kept || placed->resident) from.current();  // else when somebody asks
        if (!placed->memory.empty())
            placed->layout.units().fetch(from.current(), placed->memory.data(), placed->lines.units().line());
    }
    for (const auto& each : memory) each->received = true;
}

Job::Job(const Design& design, const Sizes& sizes, const JobOptions& options)
    : state_(shared_execution(Preparation(design.state(), sizes, options).job())) {}

Job Job::beside(const std::vector<std::string>& operands, const std::vector<Resident>& residents) const {
    const JobOptions options{{}, residents};
    return Job(shared_execution(
        Preparation(state_->design, state_->sizes, options).beside(*state_, operands).job()));
}

Job Job::beside(const Design& design, const Sizes& sizes, const std::map<std::string, std::string>& operands,
                const std::vector<Resident>& residents) const {
    const JobOptions options{{}, residents};
    return Job(shared_execution(Preparation(design.state(), sizes, options).standing(*state_, operands).job()));
}

Job Job::resized(const Sizes& sizes) const {
    Sizes all = sizes;
    all.insert(state_->sizes.begin(), state_->sizes.end());
    const JobOptions options;
    return Job(shared_execution(Preparation(state_->design, all, options).within(*state_).job()));
}

std::vector<OperandShape> Job::operands() const {
    std::vector<OperandShape> found;
    for (const auto& placed : state_->operands) {
        const Layout& layout = placed->layout;
        found.push_back({layout.operand().name, layout.operand().type, layout.operand().out, layout.column_major(),
                         static_cast<std::size_t>(layout.rows()), static_cast<std::size_t>(layout.columns()),
                         layout.element_bytes(), layout.shape()});
    }
    return found;
}

const Sizes& Job::sizes() const { return state_->sizes; }

void Job::place(const std::string& operand, const ConstArray& array) {
    Placed& placed = state_->operand(operand);
    const Users::Turn turn = state_->turn();
    refuse_running(*state_);
    if (placed.resident) throw ArgumentError("operand " + operand + " is resident; place it there");
    if (placed.layout.operand().out) throw ArgumentError("operand " + operand + " is an output; fetch it");
    state_->users->check_place(state_->execution.what(), operand);
    const bool lines = !placed.memory.empty();
    bdforge::place(lines ? placed.lines : placed.layout, array,
                   lines ? placed.memory.data() : state_->memory_of(placed).current());
    if (!lines) state_->memory_of(placed).touched = true;
    state_->users->placed(operand);
}

void Job::fetch(const std::string& operand, const Array& array) const {
    const Placed& placed = state_->operand(operand);
    const Users::Turn turn = state_->turn();
    refuse_running(*state_);
    const std::int64_t leading = leading_of(placed.layout, array.data, array.bytes, array.stride);
    if (!placed.layout.operand().out)
        throw ArgumentError("operand " + operand + " is an input; only outputs are fetched");
    state_->users->fetch(state_->execution.what());
    placed.layout.fetch(state_->memory_of(placed).current(), array.data, leading);
}

void* Job::memory(const std::string& operand) {
    Placed& placed = state_->operand(operand);
    if (placed.resident) throw ArgumentError("operand " + operand + " is resident; place it there");
    if (placed.direct) return const_cast<void*>(std::as_const(*this).memory(operand));
    const Users::Turn turn = state_->turn();
    if (placed.memory.empty()) {
        refuse_running(*state_);
        placed.memory.resize(placed.lines.reach());
        placed.lines.place_missing(placed.memory.data());
    }
    return const_cast<void*>(std::as_const(*this).memory(operand));
}

const void* Job::memory(const std::string& operand) const {
    const Placed& placed = state_->operand(operand);
    if (!placed.direct) {
        const Users::Turn turn = state_->turn();
        return placed.memory.data();
    }
    return static_cast<const std::byte*>(state_->memory_of(placed).shown()) + placed.direct->first;
}

std::size_t Job::stride(const std::string& operand) const {
    const Placed& placed = state_->operand(operand);
    return static_cast<std::size_t>(placed.direct ? placed.direct->leading : placed.lines.direct()->leading);
}

void Job::run_async() {
    const Users::Turn turn = state_->turn();
    refuse_running_beside(*state_);
    try {
        if (!state_->execution.running()) state_->begin(), state_->send();
        state_->execution.start();
    } catch (...) {
        if (!state_->execution.running()) state_->in_use.end();
        throw;
    }
}

void Job::wait(std::chrono::milliseconds timeout) {
    const Users::Turn turn = state_->turn();
    refuse_lent(*state_);
    try {
        state_->execution.wait(timeout);
    } catch (...) {
        if (!state_->execution.running()) state_->in_use.end();
        throw;
    }
    state_->receive();
}

void Job::run(std::chrono::milliseconds timeout) {
    const Users::Turn turn = state_->turn();
    state_->execution.check(timeout);  // wait() would refuse it only once the job runs
    run_async();
    wait(timeout);
}

std::size_t Job::stream_words() const { return state_->stream->words; }

}  // namespace bdforge
