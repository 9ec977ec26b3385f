#include "../xrt_backend.hpp"

#include <cctype>

#include <xrt/detail/version-slim.h>
#include <xrt/xrt_device.h>

#include "contexts.hpp"
#include "guard.hpp"

namespace bdforge {
namespace {

class XrtBackend final : public Backend {
public:
    explicit XrtBackend(xrt::device device)
        : device_(std::move(device)), name_(device_.get_info<xrt::info::device::name>()) {}

    std::string name() const override { return name_; }
    bool is_npu() const override { return true; }

    std::unique_ptr<Context> load(const Image& image) override {
        if (image.full_elf) return std::make_unique<ElfContext>(device_, image);
        return std::make_unique<XclbinContext>(device_, image);
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

std::shared_ptr<Backend> open_xrt(const std::string& name) {
    constexpr const char* help = "'bdforge doctor' says what is missing (driver amdxdna, group render)";
    return guarded<DeviceError>("device " + name, help, [&] {
        xrt::device device = is_index(name) ? xrt::device(static_cast<unsigned>(std::stoul(name))) : xrt::device(name);
        return std::make_shared<XrtBackend>(std::move(device));
    });
}

std::string xrt_version() {
    return std::to_string(XRT_VERSION_CODE >> 16) + "." + std::to_string(XRT_VERSION_CODE & 0xFFFF);
}

}  // namespace bdforge
