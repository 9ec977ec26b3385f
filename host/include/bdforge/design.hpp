#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bdforge/device.hpp"
#include "bdforge/manifest.hpp"

namespace bdforge {

class DesignState;

class Weights;

struct LoadOptions {
    /// The manifest; "" takes `manifest.json` beside the design.
    std::string manifest;
    /// What the manifest's `spec_hash` must be; "" takes any.
    std::string spec_hash;
    /// Load on a device whose name says another array, or nothing.
    bool any_device = false;
    /// How runs wait, where not as the design says; ArgumentError for a full ELF, which brings its own sequences.
    SequenceOptions sequence;
};

/// A built design, loaded once on a device; any number of problems of any size run on it. Copies are the same design.
class Design {
public:
    /// Loads an xclbin, or a full ELF when `path` ends in ".elf".
    /// FileError, ManifestError or DeviceError say what does not fit; nothing stays loaded then.
    static Design load(const Device& device, const std::string& path, const LoadOptions& options = {});

    const Manifest& manifest() const;
    const Device& device() const;

    /// ArgumentError when the design cannot compute C (M x N) = A (M x K) B (K x N), or is no GEMM.
    void check(std::size_t M, std::size_t K, std::size_t N) const;

    /// Keeps B (K x N) in the form in which the array reads it.
    ///
    /// Designs with packed B take row-major elements and pack them: ternary ones int8 values of -1, 0, 1, int4 ones
    /// int8 values of -8 to 7, block floats floats, others the type's own elements (bf16 as 16-bit words). Designs with
    /// row- or column-major B take it as they store it.
    /// `stride`: elements from line to line, 0: no gap. ArgumentError for impossible sizes, WeightError for values that
    /// the type lacks.
    Weights pack(const void* weights, std::size_t K, std::size_t N, std::size_t stride = 0) const;

    /// B in that form already, for the same tile sizes, as Python's `Loaded.pack` makes it. WeightError for bytes that this
    /// design packs of no K x N, as in a file that is truncated or for other types.
    Weights packed(const void* data, std::size_t bytes, std::size_t K, std::size_t N) const;

    const std::shared_ptr<DesignState>& state() const { return state_; }

private:
    explicit Design(std::shared_ptr<DesignState> state) : state_(std::move(state)) {}
    std::shared_ptr<DesignState> state_;
};

}  // namespace bdforge
