#include "execution.hpp"

#include <atomic>
#include <mutex>
#include <vector>

#include "bdforge/error.hpp"
#include "state.hpp"
#include "messages.hpp"

namespace bdforge {
void Execution::check(std::chrono::milliseconds timeout) const {
    if (timeout.count() > 0) return;
    throw ArgumentError(
        concat(what_, ": a time-out of ", timeout.count(), " ms would wait for ever; give at least 1 ms"));
}

void Execution::start() {
    if (running_) throw StateError(what_ + " is running; wait for it before you start it again");
    command_->start();
    running_ = true;
}

void Execution::wait(std::chrono::milliseconds timeout) {
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
        concat(what_, ": no result after ", timeout.count(),
             " ms; wait again, or end the process and run it on the emulated array ('bdforge run'), which names "
             "what a deadlock waits for"));
}

bool Execution::droppable() noexcept {
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

namespace {

constexpr std::size_t threads_most = 1024;  // whose last run is known
constexpr const char* one_at_a_time =
    "; give each thread a handle of its own, or lock it from the first write to the last read";

/// Never that of another thread, unlike the system's, which it gives again.
std::uint64_t this_thread() {
    static std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t own = ++last;
    return own;
}

}  // namespace

Users::Turn Users::turn(const std::string& what) const {
    Turn made(*guard_, std::try_to_lock);
    if (!made) throw StateError(what + " is in use by another thread" + one_at_a_time);
    return made;
}

void Users::check_place(const std::string& what, const std::string& operand) const {
    const auto writer = writers_.find(operand);
    if (writer == writers_.end() || writer->second == this_thread()) return;
    throw StateError(what + " holds " + operand + " of another thread, which no run has read" + one_at_a_time);
}

void Users::placed(const std::string& operand) { writers_[operand] = this_thread(); }

void Users::run() {
    writers_.clear();
    last_[this_thread()] = ++runs_;
    if (last_.size() > threads_most) last_.erase(last_.begin());
}

void Users::fetch(const std::string& what) {
    const auto own = last_.find(this_thread());
    if (own == last_.end() || own->second == runs_) return;
    last_.erase(own);
    throw StateError(what + " was run by another thread since this one ran it: that result is gone" + one_at_a_time);
}

void InUse::begin(const std::shared_ptr<Users>& users, const std::vector<Resident>& residents) {
    end();
    users->began();
    users_ = users;
    for (const Resident& resident : residents) {
        const std::lock_guard<std::mutex> lock(*resident.state()->guard);
        ++resident.state()->readers;
        held_.push_back(resident);
    }
}

void InUse::end() {
    for (const Resident& resident : held_) {
        const std::lock_guard<std::mutex> lock(*resident.state()->guard);
        --resident.state()->readers;
    }
    held_.clear();  // keeping its memory: runs allocate none
    if (const auto users = std::exchange(users_, nullptr)) users->ended();
}

}  // namespace bdforge
