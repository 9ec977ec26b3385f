#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "bdforge/backend.hpp"

namespace bdforge {

/// A command and whether it is running. XRT waits for ever for a run that was never started, aborts the process when a
/// running one is dropped, and throws when it is started twice; this class turns all three into errors.
class Flight {
public:
    /// `what` names the work in messages. `one` is false for several runs, of which a failure may leave some going.
    Flight(std::unique_ptr<Command> command, std::string what, bool one = true)
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

/// A shared pointer to `state` that keeps it for ever when its flight cannot be dropped.
template <class State>
std::shared_ptr<State> shared_flight(std::unique_ptr<State> state) {
    const auto drop = [](State* dropped) {
        if (dropped->flight.droppable()) {
            delete dropped;
        } else {
            keep_for_ever(dropped);
        }
    };
    return std::shared_ptr<State>(state.release(), drop);
}

}  // namespace bdforge
