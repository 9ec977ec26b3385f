#pragma once
// What keeps a handle that several threads use right, or refuses: calls one at a time, and results for who asked for them.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace bdforge {

class Resident;

/// The threads that use something. Calls that overlap are refused. So are calls one after another that mix what threads
/// want: what one has placed is not written over before a run has read it, and what one fetches is of its own run.
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

private:
    std::unique_ptr<std::recursive_mutex> guard_ = std::make_unique<std::recursive_mutex>();
    std::map<std::string, std::uint64_t> writers_;  // threads, by operands that no run has read
    std::uint64_t runs_ = 0;
    std::map<std::uint64_t, std::uint64_t> last_;  // run of each thread
};

/// Residents that a run reads, which are not written meanwhile.
class Reading {
public:
    Reading() = default;
    Reading(Reading&&) = default;
    Reading& operator=(Reading&&) = delete;
    ~Reading() { end(); }

    void begin(const std::vector<Resident>& residents);
    void end();

private:
    std::vector<Resident> held_;
};

}  // namespace bdforge
