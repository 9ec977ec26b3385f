#include "chains.hpp"

#include <algorithm>

#include "bdforge/error.hpp"
#include "flight.hpp"

namespace bdforge {
namespace {

std::chrono::milliseconds left(std::chrono::steady_clock::time_point deadline) {
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(rest, std::chrono::milliseconds{1});
}

}  // namespace

Chains::Chains(Context& context, std::vector<Command*> commands) : context_(context), count_(commands.size()) {
    for (std::size_t first = 0; first < count_; first += chain_commands) {
        const std::size_t end = std::min(first + chain_commands, count_);
        const auto begin = commands.begin();
        Chain chain{{begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end)}, first, {}};
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
    const std::string last = std::to_string(chain.first + chain.commands.size());
    if (!note_.empty()) note_ += "; ";
    note_ += "commands " + std::to_string(chain.first + 1) + " to " + last + " of " + std::to_string(count_) +
             " ran one by one, since their chain failed: " + reason;
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
            throw RunError("command " + std::to_string(chain.first + single_ + 1) + " of " + std::to_string(count_) +
                           ": " + error.what() + " (" + note_ + ")");
        }
        single_runs_ = false;
    }
    return Outcome::completed;
}

}  // namespace bdforge
