#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bdforge/backend.hpp"

namespace bdforge {

/// Commands one after another, submitted in chains of at most `chain_commands`. The commands of a chain that fails are
/// run one by one, all of them: which had ended nobody knows, and a GEMM that runs again gives the same C.
class Chains final : public Command {
public:
    /// `commands` must outlive this, and so must `context`.
    Chains(Context& context, std::vector<Command*> commands);
    Chains(const Chains&) = delete;
    Chains& operator=(const Chains&) = delete;
    ~Chains() override = default;

    void start() override;
    /// Each chain starts when the one before has ended, seen here: order holds when one has to be run again.
    Outcome wait(std::chrono::milliseconds timeout) override;

    /// Which commands of the last run ran one by one, and why; "" for none.
    const std::string& note() const { return note_; }

private:
    struct Chain {
        std::vector<Command*> commands;
        std::size_t first;
        std::unique_ptr<Command> submission;
    };
    using Clock = std::chrono::steady_clock;

    void submit();
    Outcome wait_for_chain(Clock::time_point deadline);
    Outcome run_singly(Clock::time_point deadline);
    void give_up(const std::string& reason);

    Context& context_;
    std::vector<Chain> chains_;
    std::size_t count_;
    std::size_t current_ = 0;
    std::size_t single_ = 0;  // command of the current chain that runs alone
    bool singly_ = false, single_runs_ = false;
    std::string note_;
};

}  // namespace bdforge
