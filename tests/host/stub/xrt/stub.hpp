#pragma once
// What the library uses of XRT 2.25, over a device that a test scripts. Memory of host and device are apart, as caches may
// keep them: what one side wrote the other sees after a sync in that direction, and not before.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

enum ert_cmd_state {
    ERT_CMD_STATE_NEW = 1,
    ERT_CMD_STATE_QUEUED = 2,
    ERT_CMD_STATE_RUNNING = 3,
    ERT_CMD_STATE_COMPLETED = 4,
    ERT_CMD_STATE_ERROR = 5,
    ERT_CMD_STATE_ABORT = 6,
    ERT_CMD_STATE_SUBMITTED = 7,
    ERT_CMD_STATE_TIMEOUT = 8,
    ERT_CMD_STATE_NORESPONSE = 9,
    ERT_CMD_STATE_SKERROR = 10,
};
enum xclBOSyncDirection { XCL_BO_SYNC_BO_TO_DEVICE = 0, XCL_BO_SYNC_BO_FROM_DEVICE = 1 };

namespace stub {

struct Memory {
    std::vector<std::byte> own;
    std::byte* host;
    std::vector<std::byte> device;
};

/// An argument of a run: memory, or a number.
struct Value {
    std::shared_ptr<Memory> memory;
    unsigned number = 0;
};

/// A started run: the kernel's name, and all of its arguments.
struct Launch {
    std::string kernel;
    std::vector<Value> arguments;
};

/// What a wait returns and the state that the command then has.
struct Waited {
    ert_cmd_state returned, state;
};

/// The device, for one test.
struct World {
    std::string name = "NPU Strix Halo";
    std::vector<std::pair<std::string, std::size_t>> kernels = {{"MLIR_AIE", 8}};  // of xclbins, and their arguments
    bool full_elf = true;
    std::string refusal;                            // what everything of an image, its runs and memory throws; "": nothing
    std::deque<Waited> waits;                       // of single runs, the next one first; none: they have completed
    std::deque<std::cv_status> list_waits;          // of runlists, likewise
    std::function<void(const Launch&)> act = [](const Launch&) {};
    std::vector<std::pair<unsigned, int>> buffers;  // flags and memory groups of those that were made; ELFs' have neither
    std::vector<std::pair<xclBOSyncDirection, std::size_t>> syncs;  // direction and bytes of each
    std::size_t contexts = 0;                       // of xclbins that were opened
    std::vector<std::string> crimes;                // what XRT ends a process for

    void may_throw() const {
        if (!refusal.empty()) throw std::runtime_error(refusal);
    }
};

/// None: there is no device.
inline std::unique_ptr<World>& world() {
    static std::unique_ptr<World> here;
    return here;
}

inline std::string no_device(const std::string& name) { return " No such device with index '" + name + "'"; }

}  // namespace stub

namespace xrt {

namespace info {
enum class device { name };
}

struct uuid {
    std::string to_string() const { return image; }
    std::string image;
};

class xclbin {
public:
    class kernel {
    public:
        kernel(std::string name, std::size_t arguments) : name_(std::move(name)), arguments_(arguments) {}
        std::string get_name() const { return name_; }
        std::size_t get_num_args() const { return arguments_; }

    private:
        std::string name_;
        std::size_t arguments_;
    };

    explicit xclbin(const std::string& file) : image_{file} { stub::world()->may_throw(); }
    std::vector<kernel> get_kernels() const {
        std::vector<kernel> found;
        for (const auto& [name, arguments] : stub::world()->kernels) found.emplace_back(name, arguments);
        return found;
    }
    uuid get_uuid() const { return image_; }

private:
    uuid image_;
};

class elf {
public:
    explicit elf(const std::string&) { stub::world()->may_throw(); }
    bool is_full_elf() const { return stub::world()->full_elf; }
};

class device {
public:
    explicit device(unsigned index) : device(std::to_string(index)) {}
    explicit device(const std::string& name) {
        if (!stub::world()) throw std::runtime_error(stub::no_device(name));
    }
    template <info::device>
    std::string get_info() const {
        return stub::world()->name;
    }
    uuid register_xclbin(const xclbin&) { return {}; }
};

class hw_context {
public:
    hw_context(const device&, const uuid&) { ++stub::world()->contexts; }
    hw_context(const device&, const elf&) : of_elf(true) {}
    bool of_elf = false;
};

class bo {
public:
    enum class flags : unsigned { normal = 0, cacheable = 1U << 24, host_only = 1U << 29 };

    bo(const device&, std::size_t bytes, flags kind, int group) : bo(nullptr, bytes, static_cast<unsigned>(kind), group) {}
    bo(const device&, void* callers, std::size_t bytes, flags kind, int group)
        : bo(callers, bytes, static_cast<unsigned>(kind), group) {}

    template <class Pointer>
    Pointer map() {
        return reinterpret_cast<Pointer>(memory->host);
    }
    std::size_t size() const { return memory->device.size(); }
    void sync(xclBOSyncDirection direction) {
        stub::world()->may_throw();
        stub::world()->syncs.emplace_back(direction, size());
        std::byte *const host = memory->host, *const other = memory->device.data();
        direction == XCL_BO_SYNC_BO_TO_DEVICE ? std::memcpy(other, host, size()) : std::memcpy(host, other, size());
    }

    std::shared_ptr<stub::Memory> memory;

protected:
    /// Neither side holds what the other one will.
    bo(void* callers, std::size_t bytes, unsigned kind, int group) : memory(std::make_shared<stub::Memory>()) {
        stub::world()->may_throw();
        memory->own.assign(callers == nullptr ? bytes : 0, std::byte{0x3C});
        memory->host = callers == nullptr ? memory->own.data() : static_cast<std::byte*>(callers);
        memory->device.assign(bytes, std::byte{0x5A});
        stub::world()->buffers.emplace_back(kind, group);
    }
};

class kernel {
public:
    kernel(const hw_context& context, std::string name) : name(std::move(name)), of_elf(context.of_elf) {}
    int group_id(int argument) const {
        if (of_elf) stub::world()->crimes.emplace_back("the memory group of an ELF's kernel");
        return 65536 + argument;
    }

    std::string name;
    bool of_elf;
};

class run {
public:
    explicit run(const kernel& of) : state_(std::make_shared<State>()) { state_->launch.kernel = of.name; }

    void set_arg(int index, const bo& value) { at(index) = {value.memory}; }
    void set_arg(int index, unsigned value) { at(index) = {nullptr, value}; }
    void start() {
        stub::world()->may_throw();
        if (running(state_->now) || state_->in_list) throw std::runtime_error("bad command state, can't launch");
        state_->now = ERT_CMD_STATE_RUNNING;
        state_->started = true;
        stub::world()->act(state_->launch);
    }
    ert_cmd_state wait(const std::chrono::milliseconds& timeout) {
        stub::world()->may_throw();
        if (!state_->started || timeout.count() == 0) stub::world()->crimes.emplace_back("a wait for ever");
        stub::Waited next{ERT_CMD_STATE_COMPLETED, ERT_CMD_STATE_COMPLETED};
        if (!stub::world()->waits.empty()) next = stub::world()->waits.front(), stub::world()->waits.pop_front();
        state_->now = next.state;
        return next.returned;
    }
    ert_cmd_state state() const { return state_->now; }

    void launch_in_list() { stub::world()->act(state_->launch); }
    void take_into_list() { state_->in_list = true; }

private:
    struct State {
        stub::Launch launch;
        ert_cmd_state now = ERT_CMD_STATE_NEW;
        bool in_list = false, started = false;

        ~State() {
            if (running(now) && stub::world()) stub::world()->crimes.emplace_back("a run destructed while in progress");
        }
    };
    static bool running(ert_cmd_state state) {
        return state == ERT_CMD_STATE_QUEUED || state == ERT_CMD_STATE_RUNNING || state == ERT_CMD_STATE_SUBMITTED;
    }
    stub::Value& at(int index) {
        auto& arguments = state_->launch.arguments;
        if (arguments.size() <= static_cast<std::size_t>(index)) arguments.resize(static_cast<std::size_t>(index) + 1);
        return arguments[static_cast<std::size_t>(index)];
    }

    std::shared_ptr<State> state_;
};

class runlist {
public:
    explicit runlist(const hw_context&) {}
    void add(run one) {
        one.take_into_list();
        runs_.push_back(std::move(one));
    }
    void execute() {
        stub::world()->may_throw();
        for (run& one : runs_) one.launch_in_list();
    }
    std::cv_status wait(const std::chrono::milliseconds&) {
        stub::world()->may_throw();
        if (stub::world()->list_waits.empty()) return std::cv_status::no_timeout;
        const std::cv_status next = stub::world()->list_waits.front();
        stub::world()->list_waits.pop_front();
        return next;
    }

private:
    std::vector<run> runs_;
};

namespace ext {

class bo : public xrt::bo {
public:
    bo(const device&, std::size_t bytes) : xrt::bo(nullptr, bytes, 0, 0) {}
    bo(const device&, void* callers, std::size_t bytes) : xrt::bo(callers, bytes, 0, 0) {}
};

class kernel : public xrt::kernel {
public:
    kernel(const hw_context& context, const std::string& name) : xrt::kernel(context, name) { stub::world()->may_throw(); }
};

}  // namespace ext
}  // namespace xrt
