#include "context.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "bdforge/error.hpp"
#include "device_server.hpp"
#include "log.hpp"
#include "messages.hpp"

namespace npu {
namespace {

using namespace bdforge::emulated;

constexpr std::size_t chain_error_index = 3;  // word of a chain's packet

void set_state(const Object& packet, State state) {
    auto* word = reinterpret_cast<std::uint32_t*>(packet.host);
    __atomic_store_n(word, (*word & ~0xFU) | static_cast<std::uint32_t>(state), __ATOMIC_RELEASE);
}

State state_of(Status status) {
    switch (status) {
        case Status::done: return State::completed;
        case Status::stuck: return State::timeout;  // as a real driver says it, after seconds
        case Status::ended: return State::abort;
        default: return State::error;
    }
}

bool is_chain(const Command& command) { return command.jobs.empty() || command.jobs[0].packet != command.packet; }

std::string what(const Command& command) {
    if (is_chain(command)) return bdforge::concat("a chain of ", command.jobs.size(), " runs");
    return command.jobs[0].run.form == Form::stream ? "an instruction stream" : "control code";
}

const char* word_for(State state) {
    return state == State::timeout ? "TIMEOUT" : state == State::abort ? "ABORT" : "ERROR";
}

File shared_copy(const Configuration& pdi) {
    File file(memfd_create("pdi", MFD_CLOEXEC));
    if (write(file.number(), pdi.data(), pdi.size()) != static_cast<ssize_t>(pdi.size())) throw Refused{ENOMEM};
    return file;
}

}  // namespace

void Context::boot(const Configuration& pdi, const std::string& images) {
    const std::lock_guard<std::mutex> one_at_a_time(booting_);
    if (pdi == loaded_) return;
    if (listener_.joinable()) wait(submitted_, 0);
    end();
    try {
        connection_ = reach_server()->connect();
        Ends ends = connected();
        answers_ = std::move(ends.first);
        answered_ = std::move(ends.second);
    } catch (const bdforge::Error& error) {
        report(name(), error.what());
        throw Refused{EIO};
    }
    send_open(connection_.number(), array_ + images, shared_copy(pdi).number());
    const Answer answer = receive_answer(connection_.number());
    if (answer.status != Status::done) {
        report(name(), answer.status == Status::ended ? "the process with the emulated array has ended" : answer.text);
        throw Refused{answer.status == Status::ended ? EIO : EINVAL};
    }
    trace(bdforge::concat(name(), ": a configuration of ", pdi.size(), " bytes"));
    loaded_ = pdi;
    alive_ = true;
    ending_ = false;
    listener_ = std::thread([this] { hear(); });
}

/// What runs is given up; the other process ends with the connection.
void Context::end() {
    if (!listener_.joinable()) return;
    ending_ = true;
    shutdown(connection_.number(), SHUT_RDWR);
    listener_.join();
    loaded_.clear();
    shown_.clear();
}

std::uint64_t Context::submit(Command command) {
    const std::lock_guard<std::mutex> lock(guard_);
    if (!alive_) throw Refused{EIO};
    std::vector<WireRun> runs;
    for (const Job& job : command.jobs) {
        for (const ObjectPointer& object : job.uses) {
            show(object);
            object->to_device();
        }
        runs.push_back(job.run);
    }
    trace(bdforge::concat(name(), ", command ", submitted_ + 1, ": ", what(command)));
    running_.push_back(std::move(command));
    send_runs(connection_.number(), runs, answered_.number());  // where nobody is there, the listener hears it
    return ++submitted_;
}

/// The other process gets to know a buffer.
void Context::show(const ObjectPointer& object) {
    std::weak_ptr<const Object>& known = shown_[object->address];
    if (known.lock() == object) return;
    known = object;
    send_buffer(connection_.number(), object->address, object->bytes, object->pages->file(), object->offset);
}

void Context::forget(const Object& object) {
    const std::lock_guard<std::mutex> lock(guard_);
    if (shown_.erase(object.address) > 0 && alive_) send_free(connection_.number(), object.address);
}

void Context::wait(std::uint64_t command, std::uint32_t milliseconds) {
    std::unique_lock<std::mutex> lock(guard_);
    if (command > submitted_) throw Refused{EINVAL};
    const auto over = [&] { return ended_ >= command; };
    if (milliseconds == 0)
        moved_.wait(lock, over);
    else if (!moved_.wait_for(lock, std::chrono::milliseconds{milliseconds}, over))
        throw Refused{ETIME};
}

/// Takes answers until the other process is gone.
void Context::hear() {
    for (;;) {
        pollfd files[] = {{answers_.number(), POLLIN, 0}, {connection_.number(), POLLIN, 0}};
        if (poll(files, 2, -1) < 0) continue;
        if (files[0].revents != 0)
            finish(read_answer(answers_.number()));
        else if (files[1].revents != 0)
            return lose();
    }
}

void Context::finish(const Answer& answer) {
    const std::lock_guard<std::mutex> lock(guard_);
    if (running_.empty()) return;
    const Command command = std::move(running_.front());
    running_.pop_front();
    const State state = state_of(answer.status);
    const std::size_t well = std::min<std::size_t>(answer.runs, command.jobs.size());
    for (std::size_t i = 0; i < command.jobs.size(); ++i) {
        const Job& job = command.jobs[i];
        if (i <= well)
            for (const ObjectPointer& object : job.uses) object->from_device();
        if (job.packet == command.packet) continue;
        set_state(*job.packet, i < well ? State::completed : i == well ? state : State::abort);
    }
    const bool chain = is_chain(command);
    if (chain && state != State::completed)
        reinterpret_cast<std::uint32_t*>(command.packet->host)[chain_error_index] = static_cast<std::uint32_t>(well);
    set_state(*command.packet, state);
    ++ended_;
    if (state != State::completed && !ending_) {
        ++errors_;
        const std::string part = chain ? ", run " + std::to_string(well) + " of a chain" : "";
        report(bdforge::concat(name(), ", command ", ended_, part, ": ", word_for(state)), answer.text);
    }
    moved_.notify_all();
}

/// The other process has ended: everything that runs is aborted.
void Context::lose() {
    const Answer answer{Status::ended, 0,
                        last_words(connection_.number(), false, "the process with the emulated array has ended")};
    std::size_t left = 0;
    {
        const std::lock_guard<std::mutex> lock(guard_);
        alive_ = false;
        left = running_.size();
    }
    while (left-- > 0) finish(answer);
}

ContextEntry Context::entry() const {
    const std::lock_guard<std::mutex> lock(guard_);
    return {handle_, 0, columns_, handle_, getpid(), submitted_, ended_, 0, 0, errors_};
}

}  // namespace npu
