#include <algorithm>
#include <cstring>

#include <xrt/experimental/xrt_xclbin.h>
#include <xrt/xrt_kernel.h>

#include "bdforge/manifest.hpp"
#include "contexts.hpp"

namespace bdforge {
namespace {

constexpr unsigned opcode_run = 3;  // of the firmware's DPU kernels: run an instruction stream
constexpr int opcode_index = 0, instructions_index = 1, word_count_index = 2, first_buffer_index = 3;

int kernel_index(std::size_t argument) { return first_buffer_index + static_cast<int>(argument); }

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
    const std::size_t needed = first_buffer_index + image.manifest.streams.program.arguments.size();
    if (found->get_num_args() < needed) {
        throw ManifestError(image.path + ": kernel " + image.manifest.kernel + " takes " +
                            std::to_string(found->get_num_args()) + " arguments, the design needs " +
                            std::to_string(needed) + "; build the design again");
    }
}

/// register_xclbin, since load_xclbin is not supported on NPUs.
xrt::hw_context open_context(xrt::device& device, const Image& image) {
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
        : XrtContext(device, open_context(device, image)), kernel_(context_, image.manifest.kernel) {}

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

    // Arguments are set one by one on a run: calling the kernel would start it at once.
    std::unique_ptr<Command> command(const Program& program, const Arguments& arguments) override {
        return guarded<DeviceError>("preparing the run", "load the design again", [&] {
            return std::make_unique<XrtCommand>([kernel = kernel_, stream = program.instructions, arguments] {
                const auto& words = dynamic_cast<XrtBuffer&>(*stream);
                xrt::run run(kernel);
                run.set_arg(opcode_index, opcode_run);
                run.set_arg(instructions_index, words.bo());
                run.set_arg(word_count_index, static_cast<unsigned>(words.bytes() / sizeof(std::uint32_t)));
                for (std::size_t i = 0; i < arguments.size(); ++i) {
                    run.set_arg(kernel_index(i), dynamic_cast<XrtBuffer&>(*arguments[i]).bo());
                }
                return run;
            });
        });
    }

private:
    // Host-only memory: the flags normal, device_only, svm and p2p always throw on an NPU. The memory group is asked of
    // the kernel, since its number is not the same on all versions.
    xrt::bo buffer(std::size_t argument, void* memory, std::size_t bytes) override {
        const auto group = kernel_.group_id(kernel_index(argument));
        constexpr auto flags = xrt::bo::flags::host_only;
        return memory ? xrt::bo(device_, memory, bytes, flags, group) : xrt::bo(device_, bytes, flags, group);
    }

    xrt::kernel kernel_;
};

}  // namespace

std::unique_ptr<Context> xclbin_context(xrt::device device, const Image& image) {
    return std::make_unique<XclbinContext>(std::move(device), image);
}

}  // namespace bdforge
