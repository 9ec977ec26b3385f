#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/design.hpp"

namespace bdforge {

class JobState;
class ResidentState;
class BatchState;
class Gemm;

/// Long enough for what was queued before it; the driver stops a command that runs for long sooner, some after 2 s.
constexpr std::chrono::milliseconds default_timeout{10'000};

/// Sizes of a problem by the parameters of the design's sequence program, such as {{"M", 256}, {"K", 2560}, {"N", 640}}.
/// Leading dimensions, elements from line to line, that are left out are 0: no gap.
using Sizes = std::map<std::string, std::size_t>;

/// An array as a call gives it: elements of the operand's type, types below a byte in a byte, block floats as floats.
/// `stride`: elements from line to line (rows of row-major operands, columns of column-major ones), 0: no gap.
struct Array {
    void* data;
    std::size_t bytes;
    std::size_t stride = 0;
};
struct ConstArray {
    const void* data;
    std::size_t bytes;
    std::size_t stride = 0;
};

/// What an operand is: `rows` x `columns` elements of `type`, whether they lie in columns, the bytes of one in an Array,
/// and the extent of each axis. One axis is a row; of more than two, all but the last make the rows.
struct OperandShape {
    std::string name, type;
    bool output, column_major;
    std::size_t rows, columns, element_bytes;
    std::vector<std::size_t> shape;
};

/// Operands that are placed once, where the array reads them, for any number of jobs. Copies are the same.
class Resident {
public:
    /// The buffer in which `operand` stands. `sizes` are those that it depends on; jobs that use it must have the same.
    /// An output's is memory that jobs share: each run writes it, and any of them fetches what was written last.
    /// ArgumentError for sizes that the design does not take, or that are missing.
    Resident(const Design& design, const std::string& operand, const Sizes& sizes);

    /// Writes an operand that stands in this buffer. ArgumentError for another one or an array of another size,
    /// WeightError names the first value that the operand's type does not hold, StateError is for a run that reads it.
    void place(const std::string& operand, const ConstArray& array);
    /// Takes the whole buffer as Python's `Loaded.pack` makes it. WeightError for bytes that this layout packs of no array.
    void place_bytes(const void* data, std::size_t bytes);
    std::size_t bytes() const;
    /// Sizes that it was made with.
    const Sizes& sizes() const;

    const std::shared_ptr<ResidentState>& state() const { return state_; }

private:
    std::shared_ptr<ResidentState> state_;
};

/// Where a job's operands are. Those that are named nowhere have memory of the job's own.
struct JobOptions {
    /// Memory of the caller, by operand, used without a copy: aligned to pages, alive as long as the job.
    std::map<std::string, void*> memory;
    std::vector<Resident> residents;
};

/// One problem of a design, any operator's, with its operands, ready to run any number of times. Copies are the same job.
///
/// For one thread at a time: StateError for calls that overlap, for an operand that another thread placed and no run has
/// read, and where another thread ran it since this one that fetches.
///
/// When the last is destroyed while a run is still going, as after a time-out, its memory stays until the process ends.
class Job {
public:
    /// Prepares everything; running it then costs no allocation. ArgumentError for sizes that the design cannot take and
    /// memory that cannot be used, ManifestError for operands that leave their buffers.
    Job(const Design& design, const Sizes& sizes, const JobOptions& options = {});

    /// Another job of these sizes in the same memory, but for `residents` and for the buffers of some operands, which are its
    /// own. So each job of a batch works on what the one before it left, with weights of its own, and leaves what is to be
    /// kept in a place of its own. What is shared is placed, written and fetched by either. They are for one thread at a
    /// time together, and outside of batches one runs at a time. ArgumentError for an operand that `residents` hold.
    Job beside(const std::vector<std::string>& operands, const std::vector<Resident>& residents = {}) const;

    /// A job of another design on this array (of the same image, loaded on the same Device), some of whose `operands` stand
    /// where this job has those that they name: so in a batch it reads what this one left, without a copy. All that lies with
    /// one in a buffer is named. As of the other `beside`, one runs at a time. ArgumentError for operands that are not there,
    /// or lie otherwise there, and for a design on another array.
    Job beside(const Design& design, const Sizes& sizes, const std::map<std::string, std::string>& operands,
               const std::vector<Resident>& residents = {}) const;

    /// Another job in the same memory with the same residents, of other sizes; those that are left out stay. Operands begin
    /// where this one's do if what lies before them has one size: so a cache at the start of a buffer grows from run to run,
    /// in the memory of the largest job. As of `beside`, one runs at a time. ArgumentError where memory is too small, or
    /// the caller's, and for sizes that a resident depends on.
    Job resized(const Sizes& sizes) const;

    /// Every operand, in the program's order.
    std::vector<OperandShape> operands() const;
    const Sizes& sizes() const;

    /// Writes an input; those that no call gives are 0, or what the design says for them, such as scales of 1.
    /// ArgumentError for another size or an operand that is resident, WeightError as Resident::place, StateError while
    /// the job is running.
    void place(const std::string& operand, const ConstArray& array);
    /// Reads an operand back after a run.
    void fetch(const std::string& operand, const Array& array) const;

    /// Where to write an input or read an output without a copy, in the operand's orders; block floats lie in lines of 8
    /// rows, 72 bytes for every 8 columns. Not while a run is going. From then on each run synchronises the buffer, as the
    /// pointer may be used at any time; without, only what was placed goes to the device, and what is fetched comes back.
    void* memory(const std::string& operand);
    const void* memory(const std::string& operand) const;
    /// Elements from line to line there.
    std::size_t stride(const std::string& operand) const;

    /// TimeoutError when the run takes longer, RunError when the device fails.
    void run(std::chrono::milliseconds timeout = default_timeout);
    /// Starts and returns; StateError when it is running already.
    void run_async();
    /// Waits for `run_async`. After a TimeoutError it may be called again. StateError when nothing was started.
    void wait(std::chrono::milliseconds timeout = default_timeout);

    /// Words of the instruction stream; 0 when a full ELF brings its own.
    std::size_t stream_words() const;

    const std::shared_ptr<JobState>& state() const { return state_; }

private:
    explicit Job(std::shared_ptr<JobState> state) : state_(std::move(state)) {}
    std::shared_ptr<JobState> state_;
};

/// Several jobs of designs on one array, submitted 24 at a time and run in order (XRT's runlists). While it runs, they cannot.
///
/// Jobs may have memory in common (`Job::beside`, residents, the caller's): each reads what those before it wrote. What is
/// placed is placed for all, before the first one runs; what is fetched is what the last one left. So of an argument that
/// several write, what is to be kept of one needs a buffer of its own.
///
/// Where a submission fails, its jobs are run again, one by one; `note` says which. Not where one has overwritten what it,
/// or one before it, reads: that is a RunError, and what was placed there may be gone.
class Batch {
public:
    /// ArgumentError for none, for one that stands twice (`Job::beside` makes another), and for jobs of designs
    /// on another array than `design`: one image that is loaded on one Device is one array.
    Batch(const Design& design, const std::vector<Gemm*>& gemms);
    static Batch of(const Design& design, const std::vector<Job>& jobs);
    Batch(Batch&&) noexcept = default;
    Batch& operator=(Batch&&) noexcept = default;
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch() = default;

    void run(std::chrono::milliseconds timeout = default_timeout);
    void run_async();
    void wait(std::chrono::milliseconds timeout = default_timeout);

    /// Which jobs of the last run, counted from 1, ran one by one and why; "" when none had to.
    const std::string& note() const;

private:
    explicit Batch(std::shared_ptr<BatchState> state) : state_(std::move(state)) {}
    std::shared_ptr<BatchState> state_;
};

}  // namespace bdforge
