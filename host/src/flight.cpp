#include "flight.hpp"

#include <mutex>
#include <vector>

#include "bdforge/error.hpp"

namespace bdforge {

void Flight::check(std::chrono::milliseconds timeout) const {
    if (timeout.count() > 0) return;
    throw ArgumentError(what_ + ": a time-out of " + std::to_string(timeout.count()) +
                        " ms would wait for ever; give at least 1 ms");
}

void Flight::start() {
    if (running_) throw StateError(what_ + " is running; wait for it before you start it again");
    command_->start();
    running_ = true;
}

void Flight::wait(std::chrono::milliseconds timeout) {
    if (!running_) throw StateError(what_ + " was not started; call run_async before wait");
    check(timeout);
    try {
        if (command_->wait(timeout) == Outcome::completed) {
            running_ = false;
            return;
        }
    } catch (...) {
        running_ = false;  // the device has ended it
        failed_ = true;
        throw;
    }
    throw TimeoutError(
        what_ + ": no result after " + std::to_string(timeout.count()) +
        " ms; wait again, or end the process and run it on the emulated array ('bdforge run'), which names "
        "what a deadlock waits for");
}

bool Flight::droppable() noexcept {
    try {
        if (running_) running_ = command_->wait(std::chrono::milliseconds{1}) != Outcome::completed;
    } catch (...) {
        running_ = false;
        failed_ = true;
    }
    return !running_ && (one_ || !failed_);
}

void keep_for_ever(void* state) {
    static std::mutex guard;
    static auto* const kept = new std::vector<void*>;  // never destroyed, as what it holds
    const std::lock_guard<std::mutex> lock(guard);
    kept->push_back(state);
}

}  // namespace bdforge
