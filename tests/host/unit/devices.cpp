#include "devices.hpp"

#include <cstring>

#include "backend.hpp"
#include "unit.hpp"

namespace unit {
namespace {

using namespace bdforge;

class ScriptedCommand final : public Command {
public:
    ScriptedCommand(std::unique_ptr<Command> command, std::shared_ptr<Script> script)
        : command_(std::move(command)), script_(std::move(script)) {}

    /// What runs on the array; null for a sequence of an ELF.
    Command* inner() const { return command_.get(); }

    void start() override {
        ++script_->starts;
        runs_ = command_ && script_->behaviour == Behaviour::good;
        if (runs_) command_->start();
    }

    Outcome wait(std::chrono::milliseconds timeout) override {
        if (script_->hanging_waits > 0) return --script_->hanging_waits, Outcome::timed_out;
        if (script_->behaviour == Behaviour::fails) throw RunError("the device ended the run with ERROR");
        if (script_->behaviour == Behaviour::hangs) return Outcome::timed_out;
        return runs_ ? command_->wait(timeout) : Outcome::completed;
    }

private:
    bool runs_ = false;
    std::unique_ptr<Command> command_;
    std::shared_ptr<Script> script_;
};

/// Memory of the host's beside the device's, as its caches are: full of something else, until one is copied to the other.
class ApartBuffer final : public Buffer {
public:
    explicit ApartBuffer(std::shared_ptr<Buffer> device) : device_(std::move(device)), host_(device_->bytes(), '\x5A') {
        std::memset(device_->data(), '\x5A', host_.size());
    }

    void* data() override { return host_.data(); }
    std::size_t bytes() const override { return host_.size(); }
    void to_device() override {
        std::memcpy(device_->data(), host_.data(), host_.size());
        device_->to_device();
    }
    void from_device() override {
        device_->from_device();
        std::memcpy(host_.data(), device_->data(), host_.size());
    }

    const std::shared_ptr<Buffer>& device() const { return device_; }

private:
    std::shared_ptr<Buffer> device_;
    std::vector<char> host_;
};

/// A submission: fails as often as the script says.
class ScriptedBatch final : public Command {
public:
    ScriptedBatch(std::unique_ptr<Command> batch, std::size_t commands, const std::shared_ptr<Script>& script)
        : batch_(std::move(batch), script), commands_(commands), script_(script) {}

    void start() override {
        batch_.start();
        if (script_->behaviour == Behaviour::good) script_->starts += commands_;
    }

    Outcome wait(std::chrono::milliseconds timeout) override {
        const Outcome outcome = batch_.wait(timeout);  // a chain that was lost has ended, too
        if (script_->failing_batches == 0) return outcome;
        --script_->failing_batches;
        throw RunError("the chain was lost");
    }

private:
    ScriptedCommand batch_;
    std::size_t commands_;
    std::shared_ptr<Script> script_;
};

class ScriptedContext final : public Context {
public:
    ScriptedContext(std::unique_ptr<Context> context, std::shared_ptr<Script> script)
        : context_(std::move(context)), script_(std::move(script)) {}

    std::shared_ptr<Buffer> allocate(std::size_t argument, std::size_t bytes) override {
        return std::make_shared<ApartBuffer>(context_->allocate(argument, bytes));
    }

    std::shared_ptr<Buffer> adopt(std::size_t argument, void* memory, std::size_t bytes) override {
        return context_->adopt(argument, memory, bytes);
    }

    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>& words) override {
        script_->streams.push_back(words);
        return context_->instructions(words);
    }

    std::unique_ptr<Command> command(const Stream& stream, const Arguments& arguments) override {
        const bool elf = stream.instructions == nullptr;
        if (elf) script_->sequences.push_back(stream.sequence);
        Arguments of_device;
        for (const auto& argument : arguments) {
            const auto* const apart = dynamic_cast<const ApartBuffer*>(argument.get());
            of_device.push_back(apart == nullptr ? argument : apart->device());
        }
        return std::make_unique<ScriptedCommand>(elf ? nullptr : context_->command(stream, of_device), script_);
    }

    std::unique_ptr<Command> batch(const std::vector<Command*>& commands) override {
        script_->batches.push_back(commands.size());
        std::vector<Command*> inner;
        for (const Command* command : commands) inner.push_back(dynamic_cast<const ScriptedCommand&>(*command).inner());
        return std::make_unique<ScriptedBatch>(context_->batch(inner), inner.size(), script_);
    }

private:
    std::unique_ptr<Context> context_;
    std::shared_ptr<Script> script_;
};

class ScriptedBackend final : public Backend {
public:
    ScriptedBackend(std::shared_ptr<Script> script, std::string name)
        : script_(std::move(script)), name_(std::move(name)) {}

    std::string name() const override { return name_; }
    bool is_npu() const override { return true; }

    std::unique_ptr<Context> load(const Image& image) override {
        ++script_->loads;
        return std::make_unique<ScriptedContext>(open_emulated()->load({image.path, false, image.manifest}), script_);
    }

private:
    std::shared_ptr<Script> script_;
    std::string name_;
};

class MemoryBuffer final : public Buffer {
public:
    explicit MemoryBuffer(std::size_t bytes) : own_(bytes), data_(own_.data()), bytes_(bytes) {}
    MemoryBuffer(void* callers, std::size_t bytes) : data_(callers), bytes_(bytes) {}

    void* data() override { return data_; }
    std::size_t bytes() const override { return bytes_; }
    void to_device() override {}
    void from_device() override {}

private:
    std::vector<char> own_;
    void* data_;
    std::size_t bytes_;
};

class NoCommand final : public Command {
public:
    explicit NoCommand(std::function<void()> act) : act_(std::move(act)) {}

    void start() override { act_(); }
    Outcome wait(std::chrono::milliseconds) override { return Outcome::completed; }

private:
    std::function<void()> act_;
};

class MemoryContext final : public Context {
public:
    explicit MemoryContext(std::function<void()> act) : act_(std::move(act)) {}

    std::shared_ptr<Buffer> allocate(std::size_t, std::size_t bytes) override { return std::make_shared<MemoryBuffer>(bytes); }
    std::shared_ptr<Buffer> adopt(std::size_t, void* memory, std::size_t bytes) override {
        return std::make_shared<MemoryBuffer>(memory, bytes);
    }
    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>& words) override {
        const auto made = allocate(0, words.size() * sizeof words[0]);
        std::memcpy(made->data(), words.data(), made->bytes());
        return made;
    }
    std::unique_ptr<Command> command(const Stream&, const Arguments&) override { return std::make_unique<NoCommand>(act_); }
    std::unique_ptr<Command> batch(const std::vector<Command*>&) override { return std::make_unique<NoCommand>(act_); }

private:
    std::function<void()> act_;
};

class MemoryBackend final : public Backend {
public:
    explicit MemoryBackend(std::function<void()> act) : act_(std::move(act)) {}

    std::string name() const override { return "memory"; }
    bool is_npu() const override { return false; }
    bool takes_images() const override { return false; }
    std::unique_ptr<Context> load(const Image&) override { return std::make_unique<MemoryContext>(act_); }

private:
    std::function<void()> act_;
};

}  // namespace

Device scripted_device(const std::shared_ptr<Script>& script, const std::string& name) {
    return Device(std::make_shared<ScriptedBackend>(script, name));
}

Device memory_device(std::function<void()> act) { return Device(std::make_shared<MemoryBackend>(std::move(act))); }

Device emulated_device() { return Device(open_emulated()); }

std::string design_path(const std::string& name) { return data_folder() + "/" + name + "/" + name + ".xclbin"; }

}  // namespace unit
