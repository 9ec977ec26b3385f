#include "software_backend.hpp"

#include <cstring>

#include "array.hpp"
#include "bdforge/error.hpp"
#include "bdforge/manifest.hpp"
#include "controller.hpp"
#include "facts.hpp"

namespace bdforge {
namespace {

using software::Facts;

class HostBuffer final : public Buffer {
public:
    explicit HostBuffer(std::size_t bytes) : own_(bytes), data_(own_.data()), bytes_(bytes) {}
    HostBuffer(void* memory, std::size_t bytes) : data_(memory), bytes_(bytes) {}

    void* data() override { return data_; }
    std::size_t bytes() const override { return bytes_; }
    void to_device() override {}
    void from_device() override {}

private:
    std::vector<std::byte> own_;
    void* data_;
    std::size_t bytes_;
};

class SoftwareCommand final : public Command {
public:
    SoftwareCommand(std::shared_ptr<const Facts> facts, Program program, Arguments arguments)
        : facts_(std::move(facts)), program_(std::move(program)), arguments_(std::move(arguments)) {}

    void start() override {
        software::Controller::Operands operands{};
        for (std::size_t i = 0; i < operands.size(); ++i) {
            operands[i] = {static_cast<std::byte*>(arguments_[i]->data()), arguments_[i]->bytes()};
        }
        software::Controller controller(*facts_, operands);
        const auto* words = static_cast<const std::uint32_t*>(program_.instructions->data());
        controller.execute(words, program_.instructions->bytes() / sizeof(std::uint32_t));
        software::compute(*facts_, controller);
    }

    Outcome wait(std::chrono::milliseconds) override { return Outcome::completed; }

private:
    std::shared_ptr<const Facts> facts_;
    Program program_;
    Arguments arguments_;
};

class SoftwareBatch final : public Command {
public:
    explicit SoftwareBatch(std::vector<Command*> commands) : commands_(std::move(commands)) {}

    void start() override {
        for (Command* command : commands_) command->start();
    }

    Outcome wait(std::chrono::milliseconds) override { return Outcome::completed; }

private:
    std::vector<Command*> commands_;
};

class SoftwareContext final : public Context {
public:
    explicit SoftwareContext(const Manifest& manifest)
        : facts_(std::make_shared<const Facts>(software::read_facts(manifest))) {}

    std::shared_ptr<Buffer> allocate(std::size_t, std::size_t bytes) override {
        return std::make_shared<HostBuffer>(bytes);
    }

    std::shared_ptr<Buffer> adopt(std::size_t, void* memory, std::size_t bytes) override {
        return std::make_shared<HostBuffer>(memory, bytes);
    }

    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>& words) override {
        auto buffer = std::make_shared<HostBuffer>(words.size() * sizeof(std::uint32_t));
        std::memcpy(buffer->data(), words.data(), buffer->bytes());
        return buffer;
    }

    std::unique_ptr<Command> command(const Program& program, const Arguments& arguments) override {
        return std::make_unique<SoftwareCommand>(facts_, program, arguments);
    }

    std::unique_ptr<Command> batch(const std::vector<Command*>& commands) override {
        return std::make_unique<SoftwareBatch>(commands);
    }

private:
    std::shared_ptr<const Facts> facts_;
};

class SoftwareBackend final : public Backend {
public:
    std::string name() const override { return "software"; }
    bool is_npu() const override { return false; }

    std::unique_ptr<Context> load(const Image& image) override {
        if (image.full_elf)
            throw DeviceError(image.path + ": the software device runs xclbins' streams, no ELF; use the xclbin");
        return std::make_unique<SoftwareContext>(image.manifest);
    }
};

}  // namespace

std::shared_ptr<Backend> open_software() { return std::make_shared<SoftwareBackend>(); }

}  // namespace bdforge
