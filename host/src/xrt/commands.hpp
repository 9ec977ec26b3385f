#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <xrt/experimental/xrt_kernel.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_hw_context.h>
#include <xrt/xrt_kernel.h>

#include "bdforge/backend.hpp"

namespace bdforge {

class XrtBuffer final : public Buffer {
public:
    explicit XrtBuffer(xrt::bo bo) : bo_(std::move(bo)), data_(bo_.map<void*>()) {}

    void* data() override { return data_; }
    std::size_t bytes() const override { return bo_.size(); }
    void to_device() override;
    void from_device() override;
    const xrt::bo& bo() const { return bo_; }

private:
    xrt::bo bo_;
    void* data_;
};

/// A run. A runlist must get another one with the same arguments: XRT starts none by itself that is part of a list.
class XrtCommand final : public Command {
public:
    explicit XrtCommand(std::function<xrt::run()> prepare) : prepare_(std::move(prepare)), run_(prepare_()) {}

    void start() override;
    Outcome wait(std::chrono::milliseconds timeout) override;
    xrt::run another() const { return prepare_(); }

private:
    std::function<xrt::run()> prepare_;
    xrt::run run_;
};

/// At most `chain_commands`.
class XrtBatch final : public Command {
public:
    XrtBatch(const xrt::hw_context& context, const std::vector<Command*>& commands);

    void start() override;
    Outcome wait(std::chrono::milliseconds timeout) override;

private:
    xrt::runlist list_;
};

}  // namespace bdforge
