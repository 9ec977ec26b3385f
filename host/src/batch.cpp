#include <algorithm>
#include <string>
#include <utility>

#include "bdforge/error.hpp"
#include "bdforge/gemm.hpp"
#include "extent.hpp"
#include "state.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

std::chrono::milliseconds left(std::chrono::steady_clock::time_point deadline) {
    const auto rest =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(rest, std::chrono::milliseconds{1});  // 0 would wait for ever
}

}  // namespace

Chains::Chains(Context& context, std::vector<Command*> commands, const Repeatable& repeatable)
    : context_(context), count_(commands.size()) {
    for (std::size_t first = 0; first < count_; first += chain_commands) {
        const std::size_t end = std::min(first + chain_commands, count_);
        const auto begin = commands.begin();
        Chain chain{{begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end)},
                    first,
                    repeatable(first, end),
                    {}};
        chain.submission = context.batch(chain.commands);
        chains_.push_back(std::move(chain));
    }
}

void Chains::start() {
    current_ = 0;
    note_.clear();
    submit();
}

void Chains::submit() {
    singly_ = false;
    Chain& chain = chains_[current_];
    if (!chain.submission) chain.submission = context_.batch(chain.commands);
    chain.submission->start();
}

Outcome Chains::wait(std::chrono::milliseconds timeout) {
    const Clock::time_point deadline = Clock::now() + timeout;
    for (;;) {
        const Outcome outcome = singly_ ? run_singly(deadline) : wait_for_chain(deadline);
        if (outcome == Outcome::timed_out) return outcome;
        if (current_ + 1 == chains_.size()) return Outcome::completed;
        ++current_;
        submit();
    }
}

Outcome Chains::wait_for_chain(Clock::time_point deadline) {
    try {
        return chains_[current_].submission->wait(left(deadline));
    } catch (const RunError& error) {
        give_up(error.what());
    }
    return run_singly(deadline);
}

/// The submission that failed stays for ever: some of it may be going still.
void Chains::give_up(const std::string& reason) {
    Chain& chain = chains_[current_];
    keep_for_ever(chain.submission.release());
    const std::string all = concat("commands ", chain.first + 1, " to ", chain.first + chain.commands.size(), " of ", count_);
    if (!chain.repeatable)
        throw RunError(concat("one of ", all, " failed, and those behind it did not run; they overwrite what they read, so "
                            "place that again before the next run: ", reason));
    if (!note_.empty()) note_ += "; ";
    note_ += concat(all, " ran one by one, since their chain failed: ", reason);
    singly_ = true;
    single_ = 0;
    single_runs_ = false;
}

Outcome Chains::run_singly(Clock::time_point deadline) {
    const Chain& chain = chains_[current_];
    for (; single_ < chain.commands.size(); ++single_) {
        try {
            if (!single_runs_) chain.commands[single_]->start();
            single_runs_ = true;
            if (chain.commands[single_]->wait(left(deadline)) == Outcome::timed_out) return Outcome::timed_out;
        } catch (const RunError& error) {
            throw RunError(
                concat("command ", chain.first + single_ + 1, " of ", count_, ": ", error.what(), " (", note_, ")"));
        }
        single_runs_ = false;
    }
    return Outcome::completed;
}

namespace {

/// The jobs' states; ArgumentError for none, one twice, or one on another array.
std::vector<std::shared_ptr<JobState>> members(const DesignState& design, const std::vector<Job>& jobs) {
    if (jobs.empty()) throw ArgumentError("a batch needs at least one job");
    std::vector<std::shared_ptr<JobState>> states;
    for (const Job& job : jobs) {
        const auto& state = job.state();
        check_array(*state->design, design);
        if (std::find(states.begin(), states.end(), state) != states.end()) {
            throw ArgumentError(state->execution.what() + " stands twice in a batch; make two jobs of it, by 'beside' in "
                                                          "the same memory");
        }
        states.push_back(state);
    }
    return states;
}

std::vector<Extent> extents(const JobState& job, bool out) {
    std::vector<Extent> found;
    for (const auto& placed : job.operands)
        if (placed->layout.operand().out == out)
            found.push_back({"", job.buffer(*placed).data(), job.buffer(*placed).bytes()});
    return found;
}

/// Whether no job overwrites what it, or one before it, reads: whole buffers, of which parts may be apart.
bool repeatable(const std::vector<std::shared_ptr<JobState>>& states, std::size_t first, std::size_t end) {
    std::vector<Extent> read;
    for (std::size_t i = first; i < end; ++i) {
        for (const Extent& extent : extents(*states[i], false)) read.push_back(extent);
        for (const Extent& written : extents(*states[i], true))
            if (std::any_of(read.begin(), read.end(), [&](const Extent& each) { return overlap(each, written); }))
                return false;
    }
    return true;
}

std::vector<Job> jobs_of(const std::vector<Gemm*>& gemms) {
    std::vector<Job> jobs;
    for (const Gemm* gemm : gemms) jobs.push_back(gemm->job());
    return jobs;
}

/// Jobs come back: at once, as calls of others end at once while a batch has them.
void take_back(const BatchState& batch) {
    for (const auto& job : batch.jobs) {
        const Users::Turn turn = job->users->wait();
        job->lent = false;
        job->in_use.end();
    }
}

}  // namespace

Batch::Batch(const Design& design, const std::vector<Gemm*>& gemms) : Batch(of(design, jobs_of(gemms))) {}

Batch Batch::of(const Design& design, const std::vector<Job>& jobs) {
    auto states = members(*design.state(), jobs);
    std::vector<Command*> commands;
    for (const auto& state : states) commands.push_back(&state->execution.command());
    const auto again = [&](std::size_t first, std::size_t end) { return repeatable(states, first, end); };
    auto chains = std::make_unique<Chains>(*design.state()->context, commands, again);
    const Chains& all = *chains;
    Execution execution(std::move(chains), "the batch of " + std::to_string(jobs.size()), false);
    return Batch(
        shared_execution(std::make_unique<BatchState>(BatchState{std::move(states), all, std::move(execution)})));
}

void Batch::run_async() {
    const Users::Turn turn = state_->users.turn(state_->execution.what());
    std::vector<Users::Turn> turns;
    for (const auto& job : state_->jobs) {
        turns.push_back(job->turn());
        if (job->users->running())
            throw StateError(job->execution.what() + " is running; wait for it before the batch starts");
    }
    try {
        for (const auto& job : state_->jobs) job->begin();
        for (const auto& job : state_->jobs) job->send();
        state_->execution.start();
    } catch (...) {
        if (!state_->execution.running()) take_back(*state_);
        throw;
    }
    for (const auto& job : state_->jobs) job->lent = true;
}

void Batch::wait(std::chrono::milliseconds timeout) {
    const Users::Turn turn = state_->users.turn(state_->execution.what());
    const bool running = state_->execution.running();
    try {
        state_->execution.wait(timeout);
    } catch (...) {
        if (running && !state_->execution.running()) take_back(*state_);
        throw;
    }
    for (const auto& job : state_->jobs) {
        const Users::Turn of_job = job->users->wait();
        job->receive();
    }
    take_back(*state_);
}

const std::string& Batch::note() const { return state_->chains.note(); }

void Batch::run(std::chrono::milliseconds timeout) {
    const Users::Turn turn = state_->users.turn(state_->execution.what());
    state_->execution.check(timeout);
    run_async();
    wait(timeout);
}

}  // namespace bdforge
