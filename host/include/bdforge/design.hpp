#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bdforge/device.hpp"
#include "bdforge/manifest.hpp"

namespace bdforge {

class DesignState;
class WeightsState;

struct LoadOptions {
    /// The manifest; "" takes `manifest.json` beside the design.
    std::string manifest;
    /// What the manifest's `spec_hash` must be; "" takes any.
    std::string spec_hash;
    /// Load on a device whose name says another array, or nothing.
    bool any_device = false;
};

/// Weights of one matrix, K x N, packed and resident in memory that the device sees. Copies are the same weights.
class Weights {
public:
    std::size_t K() const;
    std::size_t N() const;
    std::size_t bytes() const;

    explicit Weights(std::shared_ptr<WeightsState> state) : state_(std::move(state)) {}
    const std::shared_ptr<WeightsState>& state() const { return state_; }

private:
    std::shared_ptr<WeightsState> state_;
};

/// A built design, loaded once on a device; any number of GEMMs of any size run on it. Copies are the same design.
class Design {
public:
    /// Loads an xclbin, or a full ELF when `path` ends in ".elf".
    /// FileError, ManifestError or DeviceError say what does not fit; nothing stays loaded then.
    static Design load(const Device& device, const std::string& path, const LoadOptions& options = {});

    const Manifest& manifest() const;
    const Device& device() const;

    /// ArgumentError when the design cannot compute C (M x N) = A (M x K) B (K x N).
    void check(std::size_t M, std::size_t K, std::size_t N) const;

    /// Packs int8 weights of -1, 0, 1, row-major with `stride` elements from row to row (0: N), and keeps the packed
    /// form. ArgumentError for impossible sizes, WeightError for other values.
    Weights pack(const std::int8_t* weights, std::size_t K, std::size_t N, std::size_t stride = 0) const;

    /// Weights that were packed before for the same tile sizes, as by Python's `bdforge.runtime.operands.packed_weights`.
    /// WeightError when `bytes` is not what K and N need, as in a truncated file.
    Weights packed(const void* data, std::size_t bytes, std::size_t K, std::size_t N) const;

    const std::shared_ptr<DesignState>& state() const { return state_; }

private:
    explicit Design(std::shared_ptr<DesignState> state) : state_(std::move(state)) {}
    std::shared_ptr<DesignState> state_;
};

}  // namespace bdforge
