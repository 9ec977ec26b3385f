#pragma once
/// What the library needs of a device. Two backends exist: XRT, and the emulated array.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "manifest.hpp"

namespace bdforge {

/// Memory that host and device see. Not for use by two threads at once.
class Buffer {
public:
    virtual ~Buffer() = default;
    virtual void* data() = 0;
    virtual std::size_t bytes() const = 0;
    /// Makes what the host wrote visible to the device.
    virtual void to_device() = 0;
    /// Makes what the device wrote visible to the host.
    virtual void from_device() = 0;
};

enum class Outcome { completed, timed_out };

/// Work for the device; may be started again after it completed. Dropping one that is running stops the process in
/// XRT, so owners keep it until `wait` said completed, or for ever.
class Command {
public:
    virtual ~Command() = default;
    virtual void start() = 0;
    /// Waits for `timeout` at most, which is above 0; only after `start`. RunError when the device reports a failure.
    virtual Outcome wait(std::chrono::milliseconds timeout) = 0;
};

/// Commands that are submitted at once, at most: XRT 2.25 splits longer lists there itself. The driver's firmware takes a
/// chain of 4 KiB, 36 commands of 112 bytes. bdforge/devices/timing.py has the same.
constexpr std::size_t chain_commands = 24;

/// What a command runs: an instruction stream and its words, or the name of a sequence inside a full ELF.
struct Stream {
    std::shared_ptr<Buffer> instructions;
    std::string sequence;
    std::size_t words = 0;
};

/// The host buffers of a sequence, by argument: as many as the design's program has.
using Arguments = std::vector<std::shared_ptr<Buffer>>;

/// A built design: the file that configures the array, and its manifest.
struct Image {
    std::string path;
    bool full_elf;
    const LoadedManifest& manifest;
};

/// An array that was configured with an image, ready for any number of commands of the designs that have that.
class Context {
public:
    virtual ~Context() = default;
    /// Whether another design of its image may run here; ManifestError for one that cannot run at all.
    virtual bool admits(const Image&) { return true; }
    /// Memory for argument number `argument`.
    virtual std::shared_ptr<Buffer> allocate(std::size_t argument, std::size_t bytes) = 0;
    /// Memory of the caller, which must be aligned to pages and outlive the buffer; an NPU copies nothing.
    virtual std::shared_ptr<Buffer> adopt(std::size_t argument, void* memory, std::size_t bytes) = 0;
    virtual std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>& words) = 0;
    virtual std::unique_ptr<Command> command(const Stream& stream, const Arguments& arguments) = 0;
    /// The commands one after another, submitted at once, `chain_commands` at most; they must outlive it, and may be run
    /// by themselves before and after.
    virtual std::unique_ptr<Command> batch(const std::vector<Command*>& commands) = 0;
};

class Backend {
public:
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;
    /// The device's name, such as "NPU Strix Halo".
    virtual std::string name() const = 0;
    /// Whether it is an NPU; results of others must not be called measured.
    virtual bool is_npu() const = 0;
    /// Whether it loads the image itself, which then must be for it; else a manifest is all that it looks at.
    virtual bool takes_images() const { return true; }
    /// An array for a design: that of another one of its image, if it is open, or a new one. So compositions that run where
    /// another is loaded take turns with it without a load. A design that is loaded again gets another array.
    std::shared_ptr<Context> open(const Image& image);
    /// A new one.
    virtual std::unique_ptr<Context> load(const Image& image) = 0;

private:
    struct Opened {
        std::weak_ptr<Context> context;
        std::set<std::string> designs;
    };
    std::mutex guard_;
    std::map<std::string, Opened> by_image_;  // by its SHA-256
};

/// An NPU by XRT's index ("0") or PCI address ("0000:c5:00.1"); DeviceError when there is none, or no XRT was built in.
std::shared_ptr<Backend> open_xrt(const std::string& name);

/// A device without an NPU: instruction streams run on the emulated array that bdforge's device server holds, exactly
/// and slowly; its times say nothing. DeviceError when no server can be reached or started.
std::shared_ptr<Backend> open_emulated();

/// Whether an NPU with this name of XRT's has the array `mlir_device` ("npu1", "npu2", "npu2_4col").
bool has_array(const std::string& device_name, const std::string& mlir_device);

/// The first thing that an NPU needs of this machine and that is not below `root`: what, and how to mend it; "" when
/// all is there. The order and the advice are those of 'bdforge doctor' (Python's bdforge.runtime.npu.machine).
std::string missing_for_npu(const std::string& root = "/");

}  // namespace bdforge
