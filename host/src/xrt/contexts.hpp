#pragma once
#include <memory>

#include <xrt/experimental/xrt_elf.h>
#include <xrt/experimental/xrt_xclbin.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_hw_context.h>
#include <xrt/xrt_kernel.h>

#include "bdforge/backend.hpp"

namespace bdforge {

/// An xclbin: one kernel, opcode and instruction stream are its first arguments.
class XclbinContext final : public Context {
public:
    XclbinContext(xrt::device device, const Image& image);

    std::shared_ptr<Buffer> allocate(std::size_t argument, std::size_t bytes) override;
    std::shared_ptr<Buffer> adopt(std::size_t argument, void* memory, std::size_t bytes) override;
    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>& words) override;
    std::unique_ptr<Command> command(const Program& program, const Arguments& arguments) override;
    std::unique_ptr<Command> batch(const std::vector<Command*>& commands) override;

private:
    xrt::device device_;
    xrt::hw_context context_;
    xrt::kernel kernel_;
};

/// A full ELF: each sequence is a kernel instance that brings its own control code.
class ElfContext final : public Context {
public:
    ElfContext(xrt::device device, const Image& image);

    std::shared_ptr<Buffer> allocate(std::size_t argument, std::size_t bytes) override;
    std::shared_ptr<Buffer> adopt(std::size_t argument, void* memory, std::size_t bytes) override;
    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>& words) override;
    std::unique_ptr<Command> command(const Program& program, const Arguments& arguments) override;
    std::unique_ptr<Command> batch(const std::vector<Command*>& commands) override;

private:
    xrt::device device_;
    xrt::hw_context context_;
    std::string kernel_;
};

}  // namespace bdforge
