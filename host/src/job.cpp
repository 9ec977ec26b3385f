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
          parameters_(all_parameters(*design, sizes)),
          layouts_(layouts(*design, design->streams.values(parameters_))),
          buffers_(layouts_.bytes.size()),
          touched_(buffers_.size()) {}

    std::unique_ptr<JobState> job() {
        for (const auto& [name, memory] : options_.memory) design_->operand(name);  // refuses unknown ones
        take_residents();
        for (const Layout& layout : layouts_.operands) operands_.push_back(placed(layout));
        take_memory();
        allocate();
        const auto stream = design_->streams.get(*design_->context, design_->full_elf, parameters_);
        Execution execution(design_->context->command(*stream, buffers_), described());
        return std::make_unique<JobState>(JobState{design_, sizes_, options_.residents, std::move(operands_), buffers_,
                                                   touched_, stream->words, std::move(execution), false});
    }

private:
    std::string described() const {
        return design_->manifest.design + " " + shape_of(design_->program(), parameters_) + " on " +
               design_->device.name();
    }

    void take_residents() {
        for (const Resident& resident : options_.residents) {
            const ResidentState& state = *resident.state();
            const std::string& name = state.layouts.front().operand().name;
            if (state.design != design_)
                throw ArgumentError("the resident " + name + " was packed for another design, or for " +
                                    state.design->manifest.design + " as it was loaded before; pack it for this one");
            for (const auto& [size, value] : state.sizes) {
                const auto own = sizes_.find(size);
                if (own != sizes_.end() ? own->second != value : value != 0)
                    throw ArgumentError(concat("the resident ", name, " has ", size, " = ", value,
                                             ", the job another; place it for this size"));
            }
            if (buffers_[state.argument]) throw ArgumentError("two residents hold " + name + "; give one");
            buffers_[state.argument] = state.buffer;
        }
    }

    /// Where an operand's elements are: in lines of the caller's kind, or as the program copies them.
    Placed placed(const Layout& copied) {
        const sequence::Operand& operand = copied.operand();
        const bool resident = buffers_[operand.argument] != nullptr;
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
            const auto found = options_.memory.find(operands_[i].layout.operand().name);
            if (found == options_.memory.end() || found->second == nullptr) continue;
            Placed& placed = operands_[i];
            const sequence::Operand& operand = placed.layout.operand();
            check_memory(placed, layouts_.operands[i], found->second);
            const Extent memory{operand.name.c_str(), found->second, placed.layout.reach()};
            for (const auto& [other, out] : taken)
                if (out || operand.out)
                    refuse_overlap(other, memory, "give each its own, what the array writes must not be read");
            taken.emplace_back(memory, operand.out);
            buffers_[operand.argument] = design_->context->adopt(operand.argument, found->second, memory.bytes);
            placed.callers = true;
        }
    }

    void check_memory(const Placed& placed, const Layout& copied, const void* memory) const {
        const sequence::Operand& operand = placed.layout.operand();
        const auto beside = [&](const Placed& each) { return each.layout.operand().argument == operand.argument; };
        std::string why;
        if (buffers_[operand.argument])
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
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            if (buffers_[i]) continue;
            buffers_[i] = design_->context->allocate(i, layouts_.bytes[i]);
            std::memset(buffers_[i]->data(), 0, buffers_[i]->bytes());
            touched_[i] = true;
        }
        for (const Placed& placed : operands_) {
            const std::size_t argument = placed.layout.operand().argument;
            if (placed.callers) touched_[argument] = true;
            if (placed.resident || placed.callers) continue;
            if (placed.layout.reach() > buffers_[argument]->bytes())
                throw ManifestError(concat(design_->manifest.file, ": operand ", placed.layout.operand().name, " takes ",
                                         placed.layout.reach(), " bytes, its buffer has ", buffers_[argument]->bytes(),
                                         "; build the design again"));
            placed.layout.place_missing(buffers_[argument]->data());
        }
    }

    const std::shared_ptr<DesignState>& design_;
    const Sizes& sizes_;
    const JobOptions& options_;
    sequence::Parameters parameters_;
    Layouts layouts_;
    std::vector<Placed> operands_;
    Arguments buffers_;
    std::vector<bool> touched_;
};

void refuse_lent(const JobState& state) {
    if (state.lent) throw StateError(state.execution.what() + " runs in a batch; wait for the batch");
}

void refuse_running(const JobState& state) {
    refuse_lent(state);
    if (state.execution.running()) throw StateError(state.execution.what() + " is running; wait for it first");
}

}  // namespace

void JobState::send() {
    if (execution.running()) return;
    users.run();
    reading.begin(residents);
    for (Placed& placed : operands) {
        const sequence::Operand& operand = placed.layout.operand();
        if (operand.out || placed.memory.empty()) continue;
        const Layout lines = placed.lines.units();
        place(placed.layout.units(),
              {placed.memory.data(), placed.memory.size(), static_cast<std::size_t>(lines.line())},
              buffer(placed).data());
        touched[operand.argument] = true;
    }
    for (std::size_t i = 0; i < buffers.size(); ++i)
        if (touched[i]) buffers[i]->to_device();
    touched.assign(touched.size(), false);
    for (const Placed& placed : operands)  // which the user may write at any time
        if (placed.direct && !placed.resident && !placed.layout.operand().out)
            touched[placed.layout.operand().argument] = true;
}

void JobState::receive() {
    reading.end();
    for (Placed& placed : operands) {
        if (!placed.layout.operand().out) continue;
        buffer(placed).from_device();
        if (!placed.memory.empty())
            placed.layout.units().fetch(buffer(placed).data(), placed.memory.data(), placed.lines.units().line());
    }
}

Job::Job(const Design& design, const Sizes& sizes, const JobOptions& options)
    : state_(shared_execution(Preparation(design.state(), sizes, options).job())) {}

std::vector<OperandShape> Job::operands() const {
    std::vector<OperandShape> found;
    for (const Placed& placed : state_->operands) {
        const Layout& layout = placed.layout;
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
    state_->users.check_place(state_->execution.what(), operand);
    const bool lines = !placed.memory.empty();
    bdforge::place(lines ? placed.lines : placed.layout, array,
                   lines ? placed.memory.data() : state_->buffer(placed).data());
    if (!lines) state_->touched[placed.layout.operand().argument] = true;
    state_->users.placed(operand);
}

void Job::fetch(const std::string& operand, const Array& array) const {
    const Placed& placed = state_->operand(operand);
    const Users::Turn turn = state_->turn();
    refuse_running(*state_);
    const std::int64_t leading = leading_of(placed.layout, array.data, array.bytes, array.stride);
    if (!placed.layout.operand().out)
        throw ArgumentError("operand " + operand + " is an input; only outputs are fetched");
    state_->users.fetch(state_->execution.what());
    placed.layout.fetch(state_->buffer(placed).data(), array.data, leading);
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
    return static_cast<const std::byte*>(state_->buffer(placed).data()) + placed.direct->first;
}

std::size_t Job::stride(const std::string& operand) const {
    const Placed& placed = state_->operand(operand);
    return static_cast<std::size_t>(placed.direct ? placed.direct->leading : placed.lines.direct()->leading);
}

void Job::run_async() {
    const Users::Turn turn = state_->turn();
    refuse_lent(*state_);
    state_->send();
    try {
        state_->execution.start();
    } catch (...) {
        if (!state_->execution.running()) state_->reading.end();
        throw;
    }
}

void Job::wait(std::chrono::milliseconds timeout) {
    const Users::Turn turn = state_->turn();
    refuse_lent(*state_);
    try {
        state_->execution.wait(timeout);
    } catch (...) {
        if (!state_->execution.running()) state_->reading.end();
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

std::size_t Job::stream_words() const { return state_->stream_words; }

}  // namespace bdforge
