#include <xrt/experimental/xrt_elf.h>
#include <xrt/experimental/xrt_ext.h>
#include <xrt/xrt_kernel.h>

#include "bdforge/manifest.hpp"
#include "contexts.hpp"

namespace bdforge {
namespace {

constexpr const char* rebuild = "build the design again with format=elf";

xrt::hw_context open_context(const xrt::device& device, const Image& image) {
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
        : XrtContext(device, open_context(device, image)), kernel_(image.manifest.elf_kernel) {}

    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>&) override { return nullptr; }

    // Arguments start at 0: opcode, instructions and word count are inside the ELF.
    std::unique_ptr<Command> command(const Program& program, const Arguments& arguments) override {
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

private:
    // ext::bo needs no memory group; asking a kernel of a full ELF for one crashes.
    xrt::bo buffer(std::size_t, void* memory, std::size_t bytes) override {
        return memory ? xrt::ext::bo(device_, memory, bytes) : xrt::ext::bo(device_, bytes);
    }

    std::string kernel_;
};

}  // namespace

std::unique_ptr<Context> elf_context(xrt::device device, const Image& image) {
    return std::make_unique<ElfContext>(std::move(device), image);
}

}  // namespace bdforge
