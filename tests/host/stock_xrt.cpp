// stock_xrt DESIGN.xclbin INSTRUCTIONS FOLDER: a program that knows XRT and nothing of bdforge. It runs the instructions
// (a file of words, or their ELF) on the operands 0.bin, 1.bin and 2.bin, alone and in a runlist, and writes 2.bin back.

#include <xrt/experimental/xrt_ext.h>
#include <xrt/experimental/xrt_kernel.h>
#include <xrt/experimental/xrt_module.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_hw_context.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

std::vector<char> content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

template <class Run>
void twice(const xrt::hw_context& context, Run&& made) {
    xrt::run alone = made(), listed = made();
    alone.start();
    alone.wait2();
    xrt::runlist list(context);
    list.add(listed);
    list.execute();
    list.wait();
}

}  // namespace

int main(int, char** words) {
    const std::string instructions = words[2], folder = words[3];
    xrt::device device(0U);
    const xrt::xclbin xclbin{std::string(words[1])};
    const xrt::hw_context context(device, device.register_xclbin(xclbin));
    std::vector<xrt::bo> operands;
    for (int i = 0; i < 3; ++i) {
        const std::vector<char> data = content(folder + "/" + std::to_string(i) + ".bin");
        operands.push_back(xrt::ext::bo(device, data.size()));
        operands.back().write(data.data());
        operands.back().sync(XCL_BO_SYNC_BO_TO_DEVICE);
    }
    const auto run = [&](const xrt::kernel& kernel, auto... first) {
        xrt::run made(kernel);
        int argument = 0;
        (made.set_arg(argument++, first), ...);
        for (const xrt::bo& operand : operands) made.set_arg(argument++, operand);
        return made;
    };
    if (instructions.find(".elf") != std::string::npos) {
        const xrt::ext::kernel kernel(context, xrt::module(xrt::elf(instructions)), "MLIR_AIE");
        twice(context, [&] { return run(kernel, std::uint64_t{3}, std::uint64_t{0}, std::uint32_t{0}); });
    } else {
        const xrt::kernel kernel(context, "MLIR_AIE");
        const std::vector<char> data = content(instructions);
        xrt::bo stream(device, data.size(), XCL_BO_FLAGS_CACHEABLE, kernel.group_id(1));
        stream.write(data.data());
        stream.sync(XCL_BO_SYNC_BO_TO_DEVICE);
        const auto count = static_cast<std::uint32_t>(data.size() / 4);
        twice(context, [&] { return run(kernel, std::uint64_t{3}, stream, count); });
    }
    operands[2].sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    std::ofstream out(folder + "/2.bin", std::ios::binary);
    out.write(operands[2].map<char*>(), static_cast<std::streamsize>(operands[2].size()));
}
