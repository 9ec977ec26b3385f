#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/design.hpp"
#include "bdforge/job.hpp"
#include "bdforge/layout.hpp"
#include "chains.hpp"
#include "flight.hpp"
#include "streams.hpp"
#include "threads.hpp"

namespace bdforge {

/// A design on a device.
class DesignState {
public:
    DesignState(Device on, Manifest facts, bool elf)
        : device(std::move(on)), manifest(std::move(facts)), full_elf(elf), streams(manifest) {}

    Device device;
    Manifest manifest;
    bool full_elf;
    std::unique_ptr<Context> context;
    Streams streams;

    const generator::Program& program() const { return manifest.streams.program; }
};

/// The place of an operand in the design's program; ArgumentError for none of that name.
std::size_t operand_index(const DesignState& design, const std::string& name);

/// The layouts of all operands, or of those of one argument, and the bytes of each argument's buffer (0: not known).
/// ManifestError where operands leave their buffers.
struct Layouts {
    std::vector<generator::Layout> operands;
    std::vector<std::size_t> bytes;
};
Layouts layouts(const DesignState& design, const generator::detail::Values& values, const std::size_t* argument = nullptr);

/// Checks a caller's array and writes it to its places.
void place(const generator::Layout& layout, const ConstArray& array, void* buffer);
/// The stride that was asked for, 0 meaning none. ArgumentError for lines that overlap, and for arrays that are too small.
std::int64_t leading_of(const generator::Layout& layout, const void* data, std::size_t bytes, std::size_t stride);

/// The buffer of one argument, with the operands in it; it goes before the context it lives in.
class ResidentState {
public:
    std::shared_ptr<DesignState> design;
    Sizes sizes;
    std::size_t argument;
    std::vector<generator::Layout> layouts;
    std::shared_ptr<Buffer> buffer;
    std::unique_ptr<std::mutex> guard = std::make_unique<std::mutex>();
    std::size_t readers = 0;  // runs under way
};

/// An operand of a job. `lines`: memory of the user's elements, where these do not lie so in the buffer.
struct Placed {
    generator::Layout layout;
    generator::Layout lines;
    std::optional<generator::Layout::Direct> direct;
    bool resident, callers;
    std::vector<std::byte> memory;
};

class JobState {
public:
    std::shared_ptr<DesignState> design;
    Sizes sizes;
    std::vector<Resident> residents;
    std::vector<Placed> operands;
    Arguments buffers;
    std::vector<bool> touched;  // by argument: what the host may have written since it was sent
    std::size_t stream_words;
    Flight flight;
    bool lent = false;  // to a batch that is running
    Users users = {};
    Reading reading = {};

    Users::Turn turn() const { return users.turn(flight.what()); }
    /// Makes what the user wrote visible to the device; a run begins.
    void send();
    /// Makes what the device wrote visible to the user; the run has ended.
    void receive();
    Placed& operand(const std::string& name) { return operands[operand_index(*design, name)]; }
    Buffer& buffer(const Placed& placed) const { return *buffers[placed.layout.operand().argument]; }
};

class BatchState {
public:
    std::vector<std::shared_ptr<JobState>> jobs;
    const Chains& chains;  // the flight's command
    Flight flight;
    Users users = {};
};

}  // namespace bdforge
