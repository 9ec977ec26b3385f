#pragma once
// Commands under way: whether they run, who asked for them, and what they read.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend.hpp"
#include "bdforge/job.hpp"

namespace bdforge {

/// A command and whether it is running. XRT waits for ever for a run that was never started, aborts the process when a
/// running one is dropped, and throws when it is started twice; this class turns all three into errors.
class Execution {
public:
    /// `what` names the work in messages. `one` is false for several runs, of which a failure may leave some going.
    Execution(std::unique_ptr<Command> command, std::string what, bool one = true)
        : command_(std::move(command)), what_(std::move(what)), one_(one) {}

    Command& command() { return *command_; }
    const std::string& what() const { return what_; }
    bool running() const { return running_; }

    /// ArgumentError for a time-out below 1 ms, which XRT takes for no limit.
    void check(std::chrono::milliseconds timeout) const;
    void start();
    void wait(std::chrono::milliseconds timeout);
    /// Whether the command may be dropped: it never ran, or all of it ended.
    bool droppable() noexcept;

private:
    std::unique_ptr<Command> command_;
    std::string what_;
    bool one_;
    bool running_ = false;
    bool failed_ = false;
};

/// Keeps `state` until the process ends, which then has nothing to clean up.
void keep_for_ever(void* state);

/// A shared pointer to `state` that keeps it for ever when its execution cannot be dropped.
template <class State>
std::shared_ptr<State> shared_execution(std::unique_ptr<State> state) {
    const auto drop = [](State* dropped) {
        if (dropped->execution.droppable()) {
            delete dropped;
        } else {
            keep_for_ever(dropped);
        }
    };
    return std::shared_ptr<State>(state.release(), drop);
}

/// Commands one after another, submitted in chains of at most `chain_commands`. The commands of a chain that fails are
/// run one by one, all of them, where that gives the same: which had ended nobody knows. Else it is a RunError.
class Chains final : public Command {
public:
    /// Whether commands, from a first one to the end of a chain, may run again after some of them ran.
    using Repeatable = std::function<bool(std::size_t first, std::size_t end)>;

    /// `commands` must outlive this, and so must `context`.
    Chains(Context& context, std::vector<Command*> commands, const Repeatable& repeatable);
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
        bool repeatable;
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

/// The threads that use something, and its runs. Calls that overlap are refused. So are calls one after another that mix
/// what threads want: what one has placed is not written over before a run has read it, and what one fetches is of its own
/// run.
class Users {
public:
    using Turn = std::unique_lock<std::recursive_mutex>;

    /// This thread's, until it is destroyed; StateError, `what` at its head, while another thread has it.
    Turn turn(const std::string& what) const;
    /// The same, waiting for calls that end at once.
    Turn wait() const { return Turn(*guard_); }

    /// This thread is about to write an operand; StateError where another has written it and no run has read that.
    void check_place(const std::string& what, const std::string& operand) const;
    void placed(const std::string& operand);
    /// This thread starts a run.
    void run();
    /// This thread reads results; StateError where another has run since this one did.
    void fetch(const std::string& what);

    /// Runs that are under way: several in a batch of jobs that share memory.
    bool running() const { return running_ > 0; }
    void began() { ++running_; }
    void ended() {
        const Turn turn = wait();
        --running_;
    }

private:
    std::unique_ptr<std::recursive_mutex> guard_ = std::make_unique<std::recursive_mutex>();
    std::map<std::string, std::uint64_t> writers_;  // threads, by operands that no run has read
    std::uint64_t runs_ = 0;
    std::size_t running_ = 0;
    std::map<std::uint64_t, std::uint64_t> last_;  // run of each thread
};

/// What a run under way uses: memory of jobs, of which no other run begins, and residents, which are not written.
class InUse {
public:
    InUse() = default;
    InUse(InUse&&) = default;
    InUse& operator=(InUse&&) = delete;
    ~InUse() { end(); }

    void begin(const std::shared_ptr<Users>& users, const std::vector<Resident>& residents);
    void end();

private:
    std::shared_ptr<Users> users_;
    std::vector<Resident> held_;
};

}  // namespace bdforge
