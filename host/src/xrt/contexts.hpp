#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_hw_context.h>

#include "bdforge/backend.hpp"
#include "bdforge/error.hpp"
#include "commands.hpp"
#include "guard.hpp"

namespace bdforge {

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

    xrt::device device_;
    xrt::hw_context context_;
};

/// An xclbin: one kernel, opcode and instruction stream are its first arguments.
std::unique_ptr<Context> xclbin_context(xrt::device device, const Image& image);
/// A full ELF: each sequence is a kernel instance that brings its own control code.
std::unique_ptr<Context> elf_context(xrt::device device, const Image& image);

}  // namespace bdforge
