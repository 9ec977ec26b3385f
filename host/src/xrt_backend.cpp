// NPUs by XRT: hardware contexts of xclbins and full ELFs, their memory and runs.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <xrt/detail/version-slim.h>
#include <xrt/experimental/xrt_elf.h>
#include <xrt/experimental/xrt_ext.h>
#include <xrt/experimental/xrt_kernel.h>
#include <xrt/experimental/xrt_xclbin.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_hw_context.h>
#include <xrt/xrt_kernel.h>

#include "backend.hpp"
#include "bdforge/error.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

/// XRT's text without the blanks and newlines that some of its messages start or end with.
std::string trimmed(const std::string& text) {
    constexpr const char* blanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string::npos) return "no reason given";
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Calls `act`; what XRT throws becomes a `Fault`: what was tried, XRT's reason, the next step.
/// XRT throws half a dozen types (std::runtime_error, std::system_error, xrt_core::error, xrt::run::aie_error);
/// all derive from std::exception, and the text is all that can be relied upon.
template <class Fault, class Act>
auto guarded(const std::string& what, const std::string& next_step, Act act) -> decltype(act()) {
    try {
        return act();
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        throw Fault(what + ": " + trimmed(error.what()) + "; " + next_step);
    }
}

constexpr const char* after_failure = "load the design again; 'dmesg' and 'xrt-smi examine' may say more";

std::string name_of(ert_cmd_state state) {
    switch (state) {
        case ERT_CMD_STATE_ERROR: return "ERROR";
        case ERT_CMD_STATE_ABORT: return "ABORT";
        case ERT_CMD_STATE_TIMEOUT: return "TIMEOUT (the driver gave up)";
        case ERT_CMD_STATE_NORESPONSE: return "NORESPONSE";
        default: return concat("state ", static_cast<int>(state));
    }
}

class XrtBuffer final : public Buffer {
public:
    explicit XrtBuffer(xrt::bo bo) : bo_(std::move(bo)), data_(bo_.map<void*>()) {}

    void* data() override { return data_; }
    std::size_t bytes() const override { return bo_.size(); }
    void to_device() override {
        guarded<RunError>("flushing a buffer", after_failure, [&] { bo_.sync(XCL_BO_SYNC_BO_TO_DEVICE); });
    }
    void from_device() override {
        guarded<RunError>("reading a buffer", after_failure, [&] { bo_.sync(XCL_BO_SYNC_BO_FROM_DEVICE); });
    }
    const xrt::bo& bo() const { return bo_; }

private:
    xrt::bo bo_;
    void* data_;
};

/// A run. A runlist must get another one with the same arguments: XRT starts none by itself that is part of a list.
class XrtCommand final : public Command {
public:
    explicit XrtCommand(std::function<xrt::run()> prepare) : prepare_(std::move(prepare)), run_(prepare_()) {}

    void start() override {
        guarded<RunError>("starting the run", after_failure, [&] { run_.start(); });
    }
    // wait(ms) and not wait2(ms): it reports a failed run by its state, which the message needs. A time-out of the wait and
    // one that the driver found are the same return value; the run's own state tells them apart.
    Outcome wait(std::chrono::milliseconds timeout) override {
        return guarded<RunError>("waiting for the run", after_failure, [&] {
            const ert_cmd_state returned = run_.wait(timeout);
            if (returned == ERT_CMD_STATE_COMPLETED) return Outcome::completed;
            const ert_cmd_state state = returned == ERT_CMD_STATE_TIMEOUT ? run_.state() : returned;
            if (state == ERT_CMD_STATE_COMPLETED) return Outcome::completed;
            if (state < ERT_CMD_STATE_COMPLETED || state == ERT_CMD_STATE_SUBMITTED) return Outcome::timed_out;
            throw RunError("the device ended the run with " + name_of(state) + "; " + after_failure);
        });
    }
    xrt::run another() const { return prepare_(); }

private:
    std::function<xrt::run()> prepare_;
    xrt::run run_;
};

/// At most `chain_commands`.
class XrtBatch final : public Command {
public:
    XrtBatch(const xrt::hw_context& context, const std::vector<Command*>& commands) : list_(context) {
        for (Command* command : commands) list_.add(dynamic_cast<XrtCommand&>(*command).another());
    }

    void start() override {
        guarded<RunError>("starting the batch", after_failure, [&] { list_.execute(); });
    }
    Outcome wait(std::chrono::milliseconds timeout) override {
        return guarded<RunError>("waiting for the batch", after_failure, [&] {
            return list_.wait(timeout) == std::cv_status::timeout ? Outcome::timed_out : Outcome::completed;
        });
    }

private:
    xrt::runlist list_;
};

constexpr const char* memory_help = "free memory, or raise the limit of locked memory (ulimit -l)";

/// A hardware context: memory is what it differs in by image, and how a run is made.
class XrtContext : public Context {
public:
    XrtContext(xrt::device device, xrt::hw_context context)
        : device_(std::move(device)), context_(std::move(context)) {}

    std::shared_ptr<Buffer> allocate(std::size_t argument, std::size_t bytes) final {
        return guarded<DeviceError>("allocating " + std::to_string(bytes) + " bytes", memory_help,
                                    [&] { return std::make_shared<XrtBuffer>(buffer(argument, nullptr, bytes)); });
    }
    std::shared_ptr<Buffer> adopt(std::size_t argument, void* memory, std::size_t bytes) final {
        return guarded<DeviceError>("sharing " + std::to_string(bytes) + " bytes of the caller", memory_help,
                                    [&] { return std::make_shared<XrtBuffer>(buffer(argument, memory, bytes)); });
    }
    std::unique_ptr<Command> batch(const std::vector<Command*>& commands) final {
        return guarded<DeviceError>("preparing the batch", "load the design again",
                                    [&] { return std::make_unique<XrtBatch>(context_, commands); });
    }

protected:
    /// A buffer for an argument of runs: the caller's memory unless that is null.
    virtual xrt::bo buffer(std::size_t argument, void* memory, std::size_t bytes) = 0;

    /// Arguments are set one by one on a run: calling the kernel would start it at once.
    static xrt::run run_of(const xrt::kernel& kernel, int first, const Arguments& arguments) {
        xrt::run run(kernel);
        for (const auto& argument : arguments) run.set_arg(first++, dynamic_cast<XrtBuffer&>(*argument).bo());
        return run;
    }

    xrt::device device_;
    xrt::hw_context context_;
};

constexpr unsigned opcode_run = 3;  // of the firmware's DPU kernels: run an instruction stream
constexpr int opcode_index = 0, instructions_index = 1, word_count_index = 2, first_buffer_index = 3;

xrt::xclbin read_xclbin(const std::string& path) {
    return guarded<FileError>(path, "build the design again", [&] { return xrt::xclbin(path); });
}

/// Refuses an xclbin without the manifest's kernel, or whose kernel takes fewer arguments: XRT crashes at set_arg with
/// an index that does not exist.
void check_kernel(const xrt::xclbin& xclbin, const Image& image) {
    const auto kernels = xclbin.get_kernels();
    const auto named = [&](const auto& kernel) { return kernel.get_name() == image.manifest.kernel; };
    const auto found = std::find_if(kernels.begin(), kernels.end(), named);
    if (found == kernels.end()) {
        const std::string has = kernels.empty() ? "none" : kernels.front().get_name();
        throw ManifestError(image.path + ": the manifest names kernel " + image.manifest.kernel + ", the xclbin has " +
                            has + "; they come from different builds, build the design again");
    }
    const std::size_t needed = first_buffer_index + image.manifest.source.program.arguments.size();
    if (found->get_num_args() < needed) {
        throw ManifestError(concat(image.path, ": kernel ", image.manifest.kernel, " takes ", found->get_num_args(),
                                 " arguments, the design needs ", needed, "; build the design again"));
    }
}

/// register_xclbin, since load_xclbin is not supported on NPUs.
xrt::hw_context open_xclbin(xrt::device& device, const Image& image) {
    const xrt::xclbin xclbin = read_xclbin(image.path);
    check_kernel(xclbin, image);
    return guarded<DeviceError>(image.path + ": the device does not load it", "run 'xrt-smi examine' and 'dmesg'", [&] {
        device.register_xclbin(xclbin);
        return xrt::hw_context(device, xclbin.get_uuid());
    });
}

class XclbinContext final : public XrtContext {
public:
    XclbinContext(xrt::device device, const Image& image)
        : XrtContext(device, open_xclbin(device, image)),
          name_(image.manifest.kernel),
          kernel_(context_, name_) {}

    bool admits(const Image& image) override {
        check_kernel(read_xclbin(image.path), image);
        return image.manifest.kernel == name_;
    }

    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>& words) override {
        return guarded<DeviceError>("allocating the instruction stream", memory_help, [&] {
            const std::size_t bytes = words.size() * sizeof(std::uint32_t);
            const auto group = kernel_.group_id(instructions_index);
            auto buffer = std::make_shared<XrtBuffer>(xrt::bo(device_, bytes, xrt::bo::flags::cacheable, group));
            std::memcpy(buffer->data(), words.data(), bytes);
            buffer->to_device();
            return buffer;
        });
    }

    std::unique_ptr<Command> command(const Stream& stream, const Arguments& arguments) override {
        return guarded<DeviceError>("preparing the run", "load the design again", [&] {
            return std::make_unique<XrtCommand>([kernel = kernel_, instructions = stream.instructions, arguments] {
                const auto& words = dynamic_cast<XrtBuffer&>(*instructions);
                xrt::run run = run_of(kernel, first_buffer_index, arguments);
                run.set_arg(opcode_index, opcode_run);
                run.set_arg(instructions_index, words.bo());
                run.set_arg(word_count_index, static_cast<unsigned>(words.bytes() / sizeof(std::uint32_t)));
                return run;
            });
        });
    }

private:
    // Host-only memory: the flags normal, device_only, svm and p2p always throw on an NPU. The memory group is asked of
    // the kernel, since its number is not the same on all versions.
    xrt::bo buffer(std::size_t argument, void* memory, std::size_t bytes) override {
        const auto group = kernel_.group_id(first_buffer_index + static_cast<int>(argument));
        constexpr auto flags = xrt::bo::flags::host_only;
        return memory ? xrt::bo(device_, memory, bytes, flags, group) : xrt::bo(device_, bytes, flags, group);
    }

    std::string name_;
    xrt::kernel kernel_;
};

constexpr const char* rebuild = "build the design again with format=elf";

xrt::hw_context open_elf(const xrt::device& device, const Image& image) {
    const xrt::elf elf = guarded<FileError>(image.path, rebuild, [&] { return xrt::elf(image.path); });
    if (!elf.is_full_elf()) {
        throw FileError(image.path + ": holds instructions only, no array configuration; " + rebuild);
    }
    return guarded<DeviceError>(image.path + ": the device does not load it", "run 'xrt-smi examine' and 'dmesg'",
                                [&] { return xrt::hw_context(device, elf); });
}

class ElfContext final : public XrtContext {
public:
    ElfContext(xrt::device device, const Image& image)
        : XrtContext(device, open_elf(device, image)), kernel_(image.manifest.elf_kernel) {}

    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>&) override { return nullptr; }

    // Arguments start at 0: opcode, instructions and word count are inside the ELF.
    std::unique_ptr<Command> command(const Stream& stream, const Arguments& arguments) override {
        const std::string name = kernel_ + ":" + stream.sequence;
        return guarded<ManifestError>(name, rebuild, [&] {
            const xrt::ext::kernel kernel(context_, name);
            return std::make_unique<XrtCommand>([kernel, arguments] { return run_of(kernel, 0, arguments); });
        });
    }

private:
    // ext::bo needs no memory group; asking a kernel of a full ELF for one crashes.
    xrt::bo buffer(std::size_t, void* memory, std::size_t bytes) override {
        return memory ? xrt::ext::bo(device_, memory, bytes) : xrt::ext::bo(device_, bytes);
    }

    std::string kernel_;
};

class XrtBackend final : public Backend {
public:
    explicit XrtBackend(xrt::device device)
        : device_(std::move(device)), name_(device_.get_info<xrt::info::device::name>()) {}

    std::string name() const override { return name_; }
    /// Under `bdforge device` an emulated array stands below XRT.
    bool is_npu() const override { return std::getenv("BDFORGE_NPU") == nullptr; }

    std::unique_ptr<Context> load(const Image& image) override {
        if (image.full_elf) return std::make_unique<ElfContext>(device_, image);
        return std::make_unique<XclbinContext>(device_, image);
    }

private:
    xrt::device device_;
    std::string name_;
};

bool is_index(const std::string& name) {
    return !name.empty() && name.size() <= 4 && name.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

/// What is missing comes first, XRT's reason behind it: "No such device" is all that XRT says of most causes.
std::shared_ptr<Backend> open_xrt(const std::string& name) {
    try {
        xrt::device device = is_index(name) ? xrt::device(static_cast<unsigned>(std::stoul(name))) : xrt::device(name);
        return std::make_shared<XrtBackend>(std::move(device));
    } catch (const std::exception& error) {
        const std::string missing = missing_for_npu(), reason = trimmed(error.what());
        throw DeviceError(
            "device " + name + ": " +
            (missing.empty() ? reason + "; 'bdforge doctor' shows the machine" : missing + " (XRT: " + reason + ")"));
    }
}

std::string xrt_version() { return concat(XRT_VERSION_CODE >> 16, ".", XRT_VERSION_CODE & 0xFFFF); }

}  // namespace bdforge
