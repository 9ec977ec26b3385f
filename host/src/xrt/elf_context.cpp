#include <xrt/experimental/xrt_ext.h>

#include "bdforge/error.hpp"
#include "bdforge/manifest.hpp"
#include "commands.hpp"
#include "contexts.hpp"
#include "guard.hpp"

namespace bdforge {
namespace {

constexpr const char* memory_help = "free memory, or raise the limit of locked memory (ulimit -l)";
constexpr const char* rebuild = "build the design again with format=elf";

xrt::hw_context open_context(const xrt::device& device, const Image& image) {
    const xrt::elf elf = guarded<FileError>(image.path, rebuild, [&] { return xrt::elf(image.path); });
    if (!elf.is_full_elf()) {
        throw FileError(image.path + ": holds instructions only, no array configuration; " + rebuild);
    }
    return guarded<DeviceError>(image.path + ": the device does not load it", "run 'xrt-smi examine' and 'dmesg'",
                                [&] { return xrt::hw_context(device, elf); });
}

}  // namespace

ElfContext::ElfContext(xrt::device device, const Image& image)
    : device_(std::move(device)), context_(open_context(device_, image)), kernel_(image.manifest.elf_kernel) {}

// ext::bo needs no memory group; asking a kernel of a full ELF for one crashes.
std::shared_ptr<Buffer> ElfContext::allocate(std::size_t, std::size_t bytes) {
    return guarded<DeviceError>("allocating " + std::to_string(bytes) + " bytes", memory_help,
                                [&] { return std::make_shared<XrtBuffer>(xrt::ext::bo(device_, bytes)); });
}

std::shared_ptr<Buffer> ElfContext::adopt(std::size_t, void* memory, std::size_t bytes) {
    return guarded<DeviceError>("sharing " + std::to_string(bytes) + " bytes of the caller", memory_help,
                                [&] { return std::make_shared<XrtBuffer>(xrt::ext::bo(device_, memory, bytes)); });
}

std::shared_ptr<Buffer> ElfContext::instructions(const std::vector<std::uint32_t>&) { return nullptr; }

// Arguments start at 0: opcode, instructions and word count are inside the ELF.
std::unique_ptr<Command> ElfContext::command(const Program& program, const Arguments& arguments) {
    const std::string name = kernel_ + ":" + program.sequence;
    return guarded<ManifestError>(name, rebuild, [&] {
        const xrt::ext::kernel kernel(context_, name);
        return std::make_unique<XrtCommand>([kernel, arguments] {
            xrt::run run(kernel);
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                run.set_arg(static_cast<int>(i), dynamic_cast<XrtBuffer&>(*arguments[i]).bo());
            }
            return run;
        });
    });
}

std::unique_ptr<Command> ElfContext::batch(const std::vector<Command*>& commands) {
    return guarded<DeviceError>("preparing the batch", "load the design again",
                                [&] { return std::make_unique<XrtBatch>(context_, commands); });
}

}  // namespace bdforge
