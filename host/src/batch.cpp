#include <algorithm>
#include <string>
#include <utility>

#include "bdforge/error.hpp"
#include "bdforge/gemm.hpp"
#include "extent.hpp"
#include "state.hpp"

namespace bdforge {
namespace {

/// The jobs' states; ArgumentError for none, one twice, or one of another design.
std::vector<std::shared_ptr<JobState>> members(const DesignState& design, const std::vector<Job>& jobs) {
    if (jobs.empty()) throw ArgumentError("a batch needs at least one job");
    std::vector<std::shared_ptr<JobState>> states;
    for (const Job& job : jobs) {
        const auto& state = job.state();
        if (state->design.get() != &design) throw ArgumentError("a batch holds jobs of one design; make one for each");
        if (std::find(states.begin(), states.end(), state) != states.end()) {
            throw ArgumentError(state->flight.what() + " stands twice in a batch; make two jobs of it");
        }
        states.push_back(state);
    }
    return states;
}

/// The buffers that a job writes, or reads.
std::vector<std::pair<std::string, Buffer*>> memory(const JobState& job, bool out, const char* of) {
    std::vector<std::pair<std::string, Buffer*>> found;
    for (const Placed& placed : job.operands)
        if (const generator::Operand& operand = placed.layout.operand(); operand.out == out)
            found.emplace_back(operand.name + of, &job.buffer(placed));
    return found;
}

/// Where a submission fails all of it runs again: nothing that is read may be gone by then.
void refuse_overwriting(const std::vector<std::shared_ptr<JobState>>& states) {
    for (std::size_t later = 0; later < states.size(); ++later) {
        for (std::size_t i = 0; i < later; ++i) {
            for (const auto& [written, to] : memory(*states[later], true, " of a job"))
                for (const auto& [read, from] : memory(*states[i], false, " of one before it"))
                    refuse_overlap({written.c_str(), to->data(), to->bytes()}, {read.c_str(), from->data(), from->bytes()},
                                   "a batch that fails is run again, put the second into another batch");
        }
    }
}

std::vector<Job> jobs_of(const std::vector<Gemm*>& gemms) {
    std::vector<Job> jobs;
    for (const Gemm* gemm : gemms) jobs.push_back(gemm->job());
    return jobs;
}

/// Jobs come back: at once, as calls of others end at once while a batch has them.
void take_back(const BatchState& batch) {
    for (const auto& job : batch.jobs) {
        const Users::Turn turn = job->users.wait();
        job->lent = false;
        job->reading.end();
    }
}

}  // namespace

Batch::Batch(const Design& design, const std::vector<Gemm*>& gemms) : Batch(of(design, jobs_of(gemms))) {}

Batch Batch::of(const Design& design, const std::vector<Job>& jobs) {
    auto states = members(*design.state(), jobs);
    refuse_overwriting(states);
    std::vector<Command*> commands;
    for (const auto& state : states) commands.push_back(&state->flight.command());
    auto chains = std::make_unique<Chains>(*design.state()->context, commands);
    const Chains& all = *chains;
    Flight flight(std::move(chains), "the batch of " + std::to_string(jobs.size()), false);
    return Batch(shared_flight(std::make_unique<BatchState>(BatchState{std::move(states), all, std::move(flight)})));
}

void Batch::run_async() {
    const Users::Turn turn = state_->users.turn(state_->flight.what());
    std::vector<Users::Turn> turns;
    for (const auto& job : state_->jobs) {
        turns.push_back(job->turn());
        if (job->lent || job->flight.running()) {
            throw StateError(job->flight.what() + " is running; wait for it before the batch starts");
        }
    }
    for (const auto& job : state_->jobs) job->send();
    try {
        state_->flight.start();
    } catch (...) {
        if (!state_->flight.running()) take_back(*state_);
        throw;
    }
    for (const auto& job : state_->jobs) job->lent = true;
}

void Batch::wait(std::chrono::milliseconds timeout) {
    const Users::Turn turn = state_->users.turn(state_->flight.what());
    const bool running = state_->flight.running();
    try {
        state_->flight.wait(timeout);
    } catch (...) {
        if (running && !state_->flight.running()) take_back(*state_);
        throw;
    }
    for (const auto& job : state_->jobs) {
        const Users::Turn of_job = job->users.wait();
        job->receive();
    }
    take_back(*state_);
}

const std::string& Batch::note() const { return state_->chains.note(); }

void Batch::run(std::chrono::milliseconds timeout) {
    const Users::Turn turn = state_->users.turn(state_->flight.what());
    state_->flight.check(timeout);
    run_async();
    wait(timeout);
}

}  // namespace bdforge
