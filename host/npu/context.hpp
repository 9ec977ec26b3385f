#pragma once
// A hardware context: an array of its own in another process, and commands that run there one after another.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device_server.hpp"
#include "objects.hpp"

namespace npu {

/// A command packet of those that one submission runs.
struct Job {
    ObjectPointer packet;
    bdforge::emulated::WireRun run;
    std::vector<ObjectPointer> uses;  // what its addresses lie in
};

/// `packet` is the job's own, or the one of a chain.
struct Command {
    ObjectPointer packet;
    std::vector<Job> jobs;
};

using Configuration = std::vector<std::byte>;  // a PDI
constexpr std::uint64_t configuration_bytes_most = std::uint64_t{64} << 20;

class Context {
public:
    /// `array`: what so many columns are called in MLIR.
    Context(std::uint32_t handle, std::uint32_t columns, std::string array)
        : handle_(handle), columns_(columns), array_(std::move(array)) {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { end(); }

    /// Loads a configuration, unless it is the one that runs; EINVAL with a line on stderr when the array does not take it.
    void boot(const Configuration& pdi, const std::string& images);
    /// What each unit's commands need loaded.
    std::vector<Configuration> units;

    /// The number of a command, which now runs; EIO when there is nobody to run it.
    std::uint64_t submit(Command command);
    /// Until the command has ended, `milliseconds` at most (0: for ever); ETIME when it has not.
    void wait(std::uint64_t command, std::uint32_t milliseconds);
    /// An object is closed.
    void forget(const Object& object);
    ContextEntry entry() const;
    std::string name() const { return "context " + std::to_string(handle_); }

private:
    void end();
    void hear();
    void finish(const bdforge::emulated::Answer& answer);
    void lose();
    void show(const ObjectPointer& object);

    const std::uint32_t handle_, columns_;
    const std::string array_;
    std::mutex booting_;
    mutable std::mutex guard_;
    std::condition_variable moved_;
    Configuration loaded_;
    bdforge::emulated::File connection_, answers_, answered_;  // answers_: ours, answered_: the other process'
    std::thread listener_;
    bool alive_ = false;
    std::atomic<bool> ending_{false};  // on purpose: nothing to report
    std::deque<Command> running_;
    std::map<std::uint64_t, std::weak_ptr<const Object>> shown_;
    std::uint64_t submitted_ = 0, ended_ = 0, errors_ = 0;
};

/// What a packet wants done, and which of the context's configurations it needs; control code may load another.
struct Wanted {
    Command command;
    std::uint32_t unit = 0;
};

/// EINVAL for packets that are none, or lead where no object is. `handles`: what the submission says it uses.
Wanted read_packet(const Objects& objects, const ObjectPointer& packet, const std::vector<ObjectPointer>& handles);

/// The configuration that a job's control code starts with loading; empty when it loads none.
Configuration loaded_by(const Objects& objects, const Job& job);

}  // namespace npu
