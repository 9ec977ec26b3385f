#pragma once
#include <memory>
#include <string>

#include "bdforge/backend.hpp"

namespace bdforge {

/// A device that runs designs. Copies are the same device.
class Device {
public:
    /// `name`: XRT's index ("0"), a PCI address ("0000:c5:00.1"), or "emulated" for the array that bdforge emulates, which
    /// needs no NPU ("software" was its name before). DeviceError when it is not there.
    static Device open(const std::string& name = "0");

    /// A device of one's own, for tests.
    explicit Device(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

    std::string name() const { return backend_->name(); }
    bool is_npu() const { return backend_->is_npu(); }
    Backend& backend() const { return *backend_; }

private:
    std::shared_ptr<Backend> backend_;
};

/// Whether an NPU with this name of XRT's has the array `mlir_device` ("npu1", "npu2", "npu2_4col").
bool has_array(const std::string& device_name, const std::string& mlir_device);

/// Version of XRT that this library was built with, "none" without XRT.
std::string xrt_version();

}  // namespace bdforge
