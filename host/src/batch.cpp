#include <algorithm>

#include "bdforge/error.hpp"
#include "extent.hpp"
#include "state.hpp"

namespace bdforge {
namespace {

/// The Gemms' states; ArgumentError for none, one twice, or one of another design.
std::vector<std::shared_ptr<GemmState>> members(const DesignState& design, const std::vector<Gemm*>& gemms) {
    if (gemms.empty()) throw ArgumentError("a batch needs at least one Gemm");
    std::vector<std::shared_ptr<GemmState>> states;
    for (const Gemm* gemm : gemms) {
        const auto& state = gemm->state();
        if (state->design.get() != &design) throw ArgumentError("a batch holds Gemms of one design; make one for each");
        if (std::find(states.begin(), states.end(), state) != states.end()) {
            throw ArgumentError(state->flight.what() + " stands twice in a batch; make two Gemms of it");
        }
        states.push_back(state);
    }
    return states;
}

Extent memory(const char* name, const Matrix& matrix) { return {name, matrix.buffer->data(), matrix.buffer->bytes()}; }

/// Where a submission fails all of it runs again: no A may be gone by then.
void refuse_overwriting(const std::vector<std::shared_ptr<GemmState>>& states) {
    for (std::size_t later = 0; later < states.size(); ++later) {
        for (std::size_t i = 0; i < later; ++i)
            refuse_overlap(memory("C of a Gemm", states[later]->c), memory("A of one before it", states[i]->a),
                           "a batch that fails is run again, put the second into another batch");
    }
}

void lend(const BatchState& batch, bool lent) {
    for (const auto& gemm : batch.gemms) gemm->lent = lent;
}

}  // namespace

Batch::Batch(const Design& design, const std::vector<Gemm*>& gemms) {
    auto states = members(*design.state(), gemms);
    refuse_overwriting(states);
    std::vector<Command*> commands;
    for (const auto& state : states) commands.push_back(&state->flight.command());
    auto chains = std::make_unique<Chains>(*design.state()->context, commands);
    const Chains& all = *chains;
    Flight flight(std::move(chains), "the batch of " + std::to_string(gemms.size()), false);
    state_ = shared_flight(std::make_unique<BatchState>(BatchState{std::move(states), all, std::move(flight)}));
}

void Batch::run_async() {
    for (const auto& gemm : state_->gemms) {
        if (gemm->lent || gemm->flight.running()) {
            throw StateError(gemm->flight.what() + " is running; wait for it before the batch starts");
        }
    }
    for (const auto& gemm : state_->gemms) gemm->send_a();
    state_->flight.start();
    lend(*state_, true);
}

void Batch::wait(std::chrono::milliseconds timeout) {
    try {
        state_->flight.wait(timeout);
    } catch (...) {
        lend(*state_, state_->flight.running());
        throw;
    }
    lend(*state_, false);
    for (const auto& gemm : state_->gemms) gemm->c.buffer->from_device();
}

const std::string& Batch::note() const { return state_->chains.note(); }

void Batch::run(std::chrono::milliseconds timeout) {
    state_->flight.check(timeout);
    run_async();
    wait(timeout);
}

}  // namespace bdforge
