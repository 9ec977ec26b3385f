#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "bdforge/error.hpp"
#include "backend.hpp"
#include "device_server.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

using namespace emulated;

constexpr std::uint64_t buffer_alignment = 4096;

/// A loaded design's connection, addresses of its buffers, and the server that must not end before.
struct Link {
    Link(std::shared_ptr<Server> on, File connection) : server(std::move(on)), file(std::move(connection)) {}

    std::shared_ptr<Server> server;
    File file;
    std::atomic<std::uint64_t> end{buffer_alignment};

    /// Where a new buffer lies: with a gap behind it, so that what overruns it is seen.
    std::uint64_t place(std::size_t bytes) { return end.fetch_add((bytes / buffer_alignment + 2) * buffer_alignment); }

    /// Why nobody answers: what the server says, if it still can. Every thread that asks hears it.
    std::string last_words() const {
        return emulated::last_words(
            file.number(), true,
            "the process with the emulated array has ended; open the device and load the design again");
    }

    void require(bool sent) const {
        if (!sent) throw RunError(last_words());
    }
};

/// Memory that the array's process maps too. `callers`: memory of the caller that it stands for, copied before each run and
/// back behind it.
class SharedBuffer final : public Buffer {
public:
    SharedBuffer(std::shared_ptr<Link> link, std::size_t bytes, void* callers = nullptr)
        : link_(std::move(link)), address_(link_->place(bytes)), bytes_(bytes), callers_(callers) {
        const File file(memfd_create("bdforge", MFD_CLOEXEC));
        const std::size_t mapped = std::max<std::size_t>(bytes, 1);
        void* memory = MAP_FAILED;
        if (ftruncate(file.number(), static_cast<off_t>(mapped)) == 0)
            memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
        if (memory == MAP_FAILED)
            throw DeviceError(concat("device emulated: no memory for ", bytes, " bytes: ", std::strerror(errno)));
        shared_ = memory;
        link_->require(send_buffer(link_->file.number(), address_, mapped, file.number()));
    }
    SharedBuffer(const SharedBuffer&) = delete;
    SharedBuffer& operator=(const SharedBuffer&) = delete;
    ~SharedBuffer() override {
        send_free(link_->file.number(), address_);
        munmap(shared_, std::max<std::size_t>(bytes_, 1));
    }

    std::uint64_t address() const { return address_; }
    bool is_copy() const { return callers_ != nullptr; }
    void* data() override { return callers_ == nullptr ? shared_ : callers_; }
    std::size_t bytes() const override { return bytes_; }
    void to_device() override {
        if (callers_ != nullptr) std::memcpy(shared_, callers_, bytes_);
    }
    void from_device() override {  // an NPU writes outputs alone: what it reads may be memory that cannot be written
        if (callers_ != nullptr && std::memcmp(callers_, shared_, bytes_) != 0) std::memcpy(callers_, shared_, bytes_);
    }

private:
    std::shared_ptr<Link> link_;
    std::uint64_t address_;
    std::size_t bytes_;
    void* shared_ = nullptr;
    void* callers_;
};

/// A run: where its instruction words stand, the buffer that holds them unless it is a sequence of an ELF, and its
/// arguments.
struct Run {
    std::uint64_t words;
    std::shared_ptr<Buffer> instructions;
    Arguments arguments;
};

SharedBuffer& shared(Buffer& buffer) { return dynamic_cast<SharedBuffer&>(buffer); }

/// Runs one after another, sent together; by themselves where memory of the caller is copied, of which another one may have
/// another copy. Each packet has a pipe of its own, in which it is answered.
class EmulatedCommand final : public Command {
public:
    EmulatedCommand(std::shared_ptr<Link> link, std::vector<Run> runs)
        : link_(std::move(link)), runs_(std::move(runs)) {
        for (const Run& run : runs_)
            for (const auto& argument : run.arguments) copies_ = copies_ || shared(*argument).is_copy();
    }

    const std::vector<Run>& runs() const { return runs_; }

    void start() override { send(0); }

    Outcome wait(std::chrono::milliseconds timeout) override {
        using Clock = std::chrono::steady_clock;
        for (const auto deadline = Clock::now() + std::min(timeout, std::chrono::milliseconds{INT_MAX});;) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
            if (!readable(answer_.number(), static_cast<int>(std::max<std::int64_t>(left, 0))))
                return Outcome::timed_out;
            take(read_answer(answer_.number()));
            if (end_ == runs_.size()) return Outcome::completed;
            send(end_);
        }
    }

private:
    template <class Act>
    void each_argument(Act act) {
        for (std::size_t i = first_; i < end_; ++i)
            for (const auto& argument : runs_[i].arguments) act(*argument);
    }

    void send(std::size_t first) {
        first_ = first, end_ = copies_ ? first + 1 : runs_.size();
        each_argument([](Buffer& argument) { argument.to_device(); });  // what the run does not write comes back as it is
        std::vector<WireRun> runs;
        for (std::size_t i = first_; i < end_; ++i) {
            const Run& run = runs_[i];
            runs.push_back({Form::stream, run.words, run.instructions ? run.instructions->bytes() : 0, {}});
            for (const auto& argument : run.arguments) runs.back().arguments.push_back(shared(*argument).address());
        }
        Ends ends = piped();
        link_->require(send_runs(link_->file.number(), runs, ends.second.number()));
        answer_ = std::move(ends.first);
    }

    void take(const Answer& answer) {
        if (answer.status == Status::ended) throw RunError(link_->last_words());
        if (answer.status == Status::done) return each_argument([](Buffer& argument) { argument.from_device(); });
        if (runs_.size() == 1) throw RunError(answer.text);
        throw RunError(concat("run ", first_ + answer.runs + 1, " of ", runs_.size(), ": ", answer.text));
    }

    std::shared_ptr<Link> link_;
    std::vector<Run> runs_;
    bool copies_ = false;
    std::size_t first_ = 0, end_ = 0;  // runs that were sent last
    File answer_;
};

/// Whether the array boots from a design's image, as an NPU does, and not from its text with kernels of the host.
bool boots(const LoadedManifest& manifest) {
    const JsonView design = manifest.view();
    if (!design.has("toolchain")) return false;
    const JsonView toolchain = design.at("toolchain");
    return toolchain.is_object() && toolchain.at("name").text() == "bdforge" && toolchain.at("host_cores").elements().empty();
}

class EmulatedContext final : public Context {
public:
    EmulatedContext(std::shared_ptr<Link> link, std::string path, const LoadedManifest& manifest)
        : link_(std::move(link)), image_(std::move(path)), boots_(boots(manifest)) {}

    bool admits(const Image& image) override { return boots_ && boots(image.manifest); }

    std::shared_ptr<Buffer> allocate(std::size_t, std::size_t bytes) override {
        return std::make_shared<SharedBuffer>(link_, bytes);
    }

    std::shared_ptr<Buffer> adopt(std::size_t, void* memory, std::size_t bytes) override {
        return std::make_shared<SharedBuffer>(link_, bytes, memory);
    }

    std::shared_ptr<Buffer> instructions(const std::vector<std::uint32_t>& words) override {
        auto buffer = std::make_shared<SharedBuffer>(link_, words.size() * sizeof(std::uint32_t));
        std::memcpy(buffer->data(), words.data(), buffer->bytes());
        return buffer;
    }

    std::unique_ptr<Command> command(const Stream& stream, const Arguments& arguments) override {
        const auto words = stream.instructions ? shared(*stream.instructions).address() : sequence(stream.sequence);
        return std::make_unique<EmulatedCommand>(link_, std::vector<Run>{{words, stream.instructions, arguments}});
    }

    std::unique_ptr<Command> batch(const std::vector<Command*>& commands) override {
        std::vector<Run> runs;
        for (const Command* command : commands) {
            const auto& own = dynamic_cast<const EmulatedCommand&>(*command).runs();
            runs.insert(runs.end(), own.begin(), own.end());
        }
        return std::make_unique<EmulatedCommand>(link_, std::move(runs));
    }

private:
    /// The words of one of a full ELF's sequences, which the array's process reads there once.
    std::uint64_t sequence(const std::string& name) {
        const std::lock_guard<std::mutex> lock(guard_);
        if (const auto found = sequences_.find(name); found != sequences_.end()) return found->second;
        const std::uint64_t address = link_->place(0);
        Ends ends = piped();
        link_->require(send_sequence(link_->file.number(), address, image_, name, ends.second.number()));
        ends.second = File();  // else a server that ends would leave the pipe open
        const Answer answer = read_answer(ends.first.number());
        if (answer.status == Status::ended) throw RunError(link_->last_words());
        if (answer.status != Status::done) throw DeviceError(image_ + ": " + answer.text);
        return sequences_[name] = address;
    }

    std::shared_ptr<Link> link_;
    const std::string image_;
    const bool boots_;
    std::mutex guard_;
    std::map<std::string, std::uint64_t> sequences_;  // addresses of their words
};

class EmulatedBackend final : public Backend {
public:
    explicit EmulatedBackend(std::shared_ptr<Server> server) : server_(std::move(server)) {}

    std::string name() const override { return "emulated"; }
    bool is_npu() const override { return false; }
    bool takes_images() const override { return false; }

    std::unique_ptr<Context> load(const Image& image) override {
        auto link = std::make_shared<Link>(server_, server_->connect());
        send_open(link->file.number(), absolute(image.manifest.file));
        const Answer answer = receive_answer(link->file.number());
        if (answer.status == Status::bad_input) throw ManifestError(answer.text);
        if (answer.status == Status::fault) throw DeviceError(answer.text);
        if (answer.status == Status::ended) throw DeviceError(image.manifest.file + ": " + link->last_words());
        return std::make_unique<EmulatedContext>(std::move(link), absolute(image.path), image.manifest);
    }

private:
    /// Server and client may have different working folders. A design need not have an image.
    static std::string absolute(const std::string& path) {
        return path.empty() ? path : std::filesystem::absolute(path).string();
    }

    std::shared_ptr<Server> server_;
};

}  // namespace

std::shared_ptr<Backend> open_emulated() { return std::make_shared<EmulatedBackend>(reach_server()); }

}  // namespace bdforge
