#pragma once
/// Devices, and designs that are loaded on them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bdforge {

class Backend;
class DesignState;
class Weights;

/// A device that runs designs. Copies are the same device.
class Device {
public:
    /// `name`: XRT's index ("0"), a PCI address ("0000:c5:00.1"), or "emulated" for the array that bdforge emulates, which
    /// needs no NPU ("software" was its name before). DeviceError when it is not there.
    static Device open(const std::string& name = "0");

    /// A device of one's own, for tests.
    explicit Device(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

    std::string name() const;
    bool is_npu() const;
    Backend& backend() const { return *backend_; }

private:
    std::shared_ptr<Backend> backend_;
};

/// Version of XRT that this library was built with, "none" without XRT.
std::string xrt_version();

/// A file of the build, relative to the manifest's folder and below it. `sha256` is "" where the build does not record it.
struct BuiltFile {
    std::string path;
    std::string sha256;
};

/// A problem whose sequence is part of the build: the only ones that a full ELF can run. Sizes by parameter.
struct BuiltProblem {
    std::string sequence;
    std::map<std::string, std::int64_t> sizes;
};

/// What a host must know of a built design: `manifest.json` beside the xclbin, checked. `file` is its own path.
struct Manifest {
    std::string file;
    std::string kind;  // the operator's, such as "gemm"
    std::string design;
    std::string spec_hash;
    std::string device;       // the product it was built for, such as "strix_halo"
    std::string mlir_device;  // its array, such as "npu2"
    std::string kernel;       // name of the xclbin's kernel
    std::string elf_kernel;   // name of the full ELF's kernel; its instances are sequences
    std::map<std::string, BuiltFile> files;
    std::vector<BuiltProblem> problems;
};

/// How sequences wait for a step's tokens, column by column or all by one wait; docs/sequences.md has what is guaranteed.
struct SequenceOptions {
    /// "column" or "wide"; "": as the design says, `in_flight` too.
    std::string wait;
    /// Steps at a time: 1 to 4, wide only 1; 0: the most.
    std::size_t in_flight = 0;
};

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
    /// Loads an xclbin, that of a built design's folder, or a full ELF when `built` ends in ".elf".
    /// FileError, ManifestError or DeviceError say what does not fit; nothing stays loaded then.
    static Design load(const Device& device, const std::string& built, const LoadOptions& options = {});

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
