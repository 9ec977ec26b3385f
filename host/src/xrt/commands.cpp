#include "commands.hpp"

#include <string>

#include "guard.hpp"

namespace bdforge {
namespace {

constexpr const char* after_failure = "load the design again; 'dmesg' and 'xrt-smi examine' may say more";

std::string name_of(ert_cmd_state state) {
    switch (state) {
        case ERT_CMD_STATE_ERROR: return "ERROR";
        case ERT_CMD_STATE_ABORT: return "ABORT";
        case ERT_CMD_STATE_TIMEOUT: return "TIMEOUT (the driver gave up)";
        case ERT_CMD_STATE_NORESPONSE: return "NORESPONSE";
        default: return "state " + std::to_string(static_cast<int>(state));
    }
}

}  // namespace

void XrtBuffer::to_device() {
    guarded<RunError>("flushing a buffer", after_failure, [&] { bo_.sync(XCL_BO_SYNC_BO_TO_DEVICE); });
}

void XrtBuffer::from_device() {
    guarded<RunError>("reading a buffer", after_failure, [&] { bo_.sync(XCL_BO_SYNC_BO_FROM_DEVICE); });
}

void XrtCommand::start() {
    guarded<RunError>("starting the run", after_failure, [&] { run_.start(); });
}

// wait(ms) and not wait2(ms): it reports a failed run by its state, which the message needs. A time-out of the wait and
// one that the driver found are the same return value; the run's own state tells them apart.
Outcome XrtCommand::wait(std::chrono::milliseconds timeout) {
    return guarded<RunError>("waiting for the run", after_failure, [&] {
        const ert_cmd_state returned = run_.wait(timeout);
        if (returned == ERT_CMD_STATE_COMPLETED) return Outcome::completed;
        const ert_cmd_state state = returned == ERT_CMD_STATE_TIMEOUT ? run_.state() : returned;
        if (state == ERT_CMD_STATE_COMPLETED) return Outcome::completed;
        if (state < ERT_CMD_STATE_COMPLETED || state == ERT_CMD_STATE_SUBMITTED) return Outcome::timed_out;
        throw RunError("the device ended the run with " + name_of(state) + "; " + after_failure);
    });
}

XrtBatch::XrtBatch(const xrt::hw_context& context, const std::vector<Command*>& commands) : list_(context) {
    for (Command* command : commands) list_.add(dynamic_cast<XrtCommand&>(*command).another());
}

void XrtBatch::start() {
    guarded<RunError>("starting the batch", after_failure, [&] { list_.execute(); });
}

Outcome XrtBatch::wait(std::chrono::milliseconds timeout) {
    return guarded<RunError>("waiting for the batch", after_failure, [&] {
        return list_.wait(timeout) == std::cv_status::timeout ? Outcome::timed_out : Outcome::completed;
    });
}

}  // namespace bdforge
