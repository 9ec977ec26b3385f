#pragma once
// What the library's handles hold, and what they share.

#include <atomic>
#include <cstddef>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/error.hpp"
#include "bdforge/job.hpp"
#include "execution.hpp"
#include "layout.hpp"
#include "manifest.hpp"

namespace bdforge {

/// The streams that were made last of a design, on its device. Any number of threads may ask.
class Streams {
public:
    /// ArgumentError for sequences that are to wait in a way that there is none of.
    explicit Streams(const LoadedManifest& manifest, const SequenceOptions& options = {});

    /// The stream for parameters; of a full ELF its name, as it brings its own. Threads that ask for one in the making wait
    /// for it; others are not held up. ArgumentError says why the design cannot compute the problem.
    std::shared_ptr<const Stream> get(Context& context, bool full_elf, const sequence::Parameters& parameters);

    /// The values of a problem, of all parameters or of some; ArgumentError as `get`.
    template <class AllOrSome>
    sequence::Values values(const AllOrSome& parameters) const {
        return named([&] { return sequencer_.values(parameters); });
    }

private:
    using Made = std::shared_ptr<const Stream>;

    /// What `act` returns; its SequenceErrors name the design.
    template <class Act>
    auto named(Act act) const {
        try {
            return act();
        } catch (const sequence::SequenceError& error) {
            throw ArgumentError(
                concat(manifest_.design, ": ", error.what(), "; split the problem, or leave it to the processor"));
        }
    }
    Made make(Context& context, bool full_elf, const sequence::Parameters& parameters);
    std::string built_sequence(const sequence::Parameters& parameters) const;

    const LoadedManifest& manifest_;
    const sequence::Sequencer sequencer_;
    std::mutex guard_, device_;
    std::map<sequence::Parameters, std::shared_future<Made>> made_;
    std::deque<sequence::Parameters> order_;  // of `made_`, the first one first
};

/// A design on a device.
class DesignState {
public:
    DesignState(Device on, LoadedManifest facts, bool elf, const SequenceOptions& options = {})
        : device(std::move(on)), manifest(std::move(facts)), full_elf(elf), streams(manifest, options) {}

    Device device;
    LoadedManifest manifest;
    bool full_elf;
    std::shared_ptr<Context> context;  // that of all designs on its array
    Streams streams;

    const sequence::Program& program() const { return manifest.source.program; }
    /// An operand by its name; ArgumentError for none of that name.
    const sequence::Operand& operand(const std::string& name) const;
};

/// ArgumentError unless two designs are on one array.
void check_array(const DesignState& one, const DesignState& other);
/// The parameters of sizes by name: those that are given, and 0 for leading dimensions that are not. ArgumentError for names
/// that are no parameters.
sequence::SomeParameters some_parameters(const DesignState& design, const Sizes& sizes);
/// All of them; ArgumentError for one that is missing.
sequence::Parameters all_parameters(const DesignState& design, const Sizes& sizes);
/// ArgumentError where an operand depends on sizes that are not given.
void require_known(const DesignState& design, const sequence::Operand& operand, const sequence::Values& values);
/// A problem's sizes without leading dimensions, such as 256x2560x640.
std::string shape_of(const sequence::Program& program, const sequence::Parameters& parameters);

/// The layouts of all operands, or of those of one argument, and the bytes of each argument's buffer (0: not known).
/// ManifestError where operands leave their buffers.
struct Layouts {
    std::vector<sequence::Layout> operands;
    std::vector<std::size_t> bytes;
};
Layouts layouts(const DesignState& design, const sequence::Values& values, const std::size_t* argument = nullptr);

/// Checks a caller's array and writes it to its places.
void place(const sequence::Layout& layout, const ConstArray& array, void* buffer);
/// The stride that was asked for, 0 meaning none. ArgumentError for lines that overlap, and for arrays that are too small.
std::int64_t leading_of(const sequence::Layout& layout, const void* data, std::size_t bytes, std::size_t stride);

/// The buffer of one argument, with the operands in it; it goes before the context it lives in.
class ResidentState {
public:
    std::shared_ptr<DesignState> design;
    Sizes sizes;
    std::size_t argument;
    std::vector<sequence::Layout> layouts;
    std::shared_ptr<Buffer> buffer;
    std::unique_ptr<std::mutex> guard = std::make_unique<std::mutex>();
    std::size_t readers = 0;  // runs under way
};

/// An operand of a job. `memory`: the user's elements in lines, where these do not lie so in the buffer.
struct Placed {
    sequence::Layout layout;
    sequence::Layout lines;
    std::optional<sequence::Layout::Direct> direct;
    bool resident, callers;
    std::vector<std::byte> memory;
};

/// An argument's memory. Jobs of a batch may have it in common: it is sent once for all of them, and fetched once.
class Memory {
public:
    Memory(std::shared_ptr<Buffer> of, bool written) : buffer(std::move(of)), touched(written) {}

    /// The memory for the host to write to or read from; from now on at any time, if it keeps the pointer.
    void* shown() {
        kept = true;
        return current();
    }
    /// The same for this moment, with what the device wrote.
    void* current() {
        if (behind.exchange(false)) buffer->from_device();
        return buffer->data();
    }

    const std::shared_ptr<Buffer> buffer;
    bool touched;                         // the host may have written it since it was sent
    bool sent = false, received = false;  // for the run or batch that was begun last
    std::atomic<bool> kept{false};        // whether the host has a pointer
    std::atomic<bool> behind{false};      // the device may have written it since it was fetched
};

class JobState {
public:
    std::shared_ptr<DesignState> design;
    Sizes sizes;
    std::vector<Resident> residents;
    std::vector<std::shared_ptr<Placed>> operands;
    std::vector<std::shared_ptr<Memory>> memory;  // by argument
    std::shared_ptr<const Stream> stream;
    Execution execution;
    std::shared_ptr<Users> users;  // of all jobs beside each other
    bool lent = false;             // to a batch that is running
    InUse in_use = {};

    Users::Turn turn() const { return users->turn(execution.what()); }
    /// A run begins; of a batch all do before the first is sent.
    void begin();
    /// Makes what the user wrote visible to the device.
    void send();
    /// Makes what the device wrote visible to the user; the run has ended.
    void receive();
    Placed& operand(const std::string& name) const {
        return *operands[static_cast<std::size_t>(&design->operand(name) - design->program().operands.data())];
    }
    Memory& memory_of(const Placed& placed) const { return *memory[placed.layout.operand().argument]; }
    Buffer& buffer(const Placed& placed) const { return *memory_of(placed).buffer; }
};

class BatchState {
public:
    std::vector<std::shared_ptr<JobState>> jobs;
    const Chains& chains;  // the command that is executed
    Execution execution;
    Users users = {};
};

}  // namespace bdforge
