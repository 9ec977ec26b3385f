#include "../xrt_backend.hpp"

#include <cctype>
#include <cstdlib>

#include <xrt/detail/version-slim.h>
#include <xrt/xrt_device.h>

#include "contexts.hpp"
#include "guard.hpp"
#include "machine.hpp"

namespace bdforge {
namespace {

class XrtBackend final : public Backend {
public:
    explicit XrtBackend(xrt::device device)
        : device_(std::move(device)), name_(device_.get_info<xrt::info::device::name>()) {}

    std::string name() const override { return name_; }
    /// Under `bdforge device` an emulated array stands below XRT.
    bool is_npu() const override { return std::getenv("BDFORGE_NPU") == nullptr; }

    std::unique_ptr<Context> load(const Image& image) override {
        return image.full_elf ? elf_context(device_, image) : xclbin_context(device_, image);
    }

private:
    xrt::device device_;
    std::string name_;
};

bool is_index(const std::string& name) {
    if (name.empty() || name.size() > 4) return false;
    for (const char c : name) {
        if (!std::isdigit(static_cast<unsigned char>(c))) return false;
    }
    return true;
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

std::string xrt_version() {
    return std::to_string(XRT_VERSION_CODE >> 16) + "." + std::to_string(XRT_VERSION_CODE & 0xFFFF);
}

}  // namespace bdforge
