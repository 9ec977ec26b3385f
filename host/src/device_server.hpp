#pragma once
// The device server, which runs designs on the emulated array: how it is reached, and what is said to it.
// bdforge/runtime/service/wire.py describes the protocol.

#include <spawn.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bdforge {

/// Names the Python that has bdforge, in messages too.
inline constexpr const char* python_variable = "BDFORGE_PYTHON";

/// A value of the environment; "" when there is none.
std::string setting(const char* name);

/// How a command of bdforge's starts: by an interpreter that has it, or by the command of that name.
std::vector<std::string> bdforge_command();

/// Starts a command with nothing on its standard input and the files that `add` says; DeviceError, `who` at its head, when
/// it cannot be run.
pid_t start_child(const std::vector<std::string>& words, const std::string& who,
                  const std::function<void(posix_spawn_file_actions_t&)>& add);

}  // namespace bdforge

namespace bdforge::emulated {

constexpr std::uint32_t protocol_version = 3;
enum class Packet : std::uint32_t { open = 1, buffer = 2, free = 3, run = 4, sequence = 5 };
enum class Form : std::uint32_t { stream, control_code };
enum class Status : std::uint32_t { done, bad_input, fault, stuck, ended };  // ended: nobody is there any more

/// An open file of the system, closed with its owner.
class File {
public:
    explicit File(int number = -1) : number_(number) {}
    File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    File& operator=(File&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~File();

    int number() const { return number_; }

private:
    int number_;
};

/// Two ends of something; DeviceError where the system gives none.
using Ends = std::pair<File, File>;
Ends connected();
Ends piped();

struct Answer {
    Status status = Status::ended;
    std::uint32_t runs = 0;  // that ended well
    std::string text;
};

/// One run of a RUN.
struct WireRun {
    Form form;
    std::uint64_t address, bytes;  // of its words
    std::vector<std::uint64_t> arguments;
};

/// Packets of these kinds: false when nobody is there.
bool send_open(int connection, const std::string& text, int pdi = -1);
bool send_buffer(int connection, std::uint64_t address, std::uint64_t bytes, int file, std::uint64_t offset = 0);
bool send_free(int connection, std::uint64_t address);
bool send_sequence(int connection, std::uint64_t address, const std::string& elf, const std::string& name, int answer);
bool send_runs(int connection, const std::vector<WireRun>& runs, int answer);

/// A packet's words; `file` goes with it unless it is -1. False when nobody is there.
bool send_packet(int connection, const std::vector<std::uint32_t>& words, int file = -1, const std::string& text = "");

/// The answer in a pipe or socket, waiting for it.
Answer read_answer(int pipe);
/// The same on a connection; with `keep` it stands there for the next one who asks.
Answer receive_answer(int connection, bool keep = false);

/// What a server says that hangs up, waiting for a second; `otherwise` when it says nothing. `keep` as above.
std::string last_words(int connection, bool keep, const char* otherwise);

/// Whether a file can be read, or has ended, within `milliseconds`; -1: no limit.
bool readable(int file, int milliseconds);

/// The device server: the one that BDFORGE_DEVICE_SOCKET names, or else one of this process, which all its devices share.
class Server {
public:
    Server() = default;
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    virtual ~Server() = default;

    /// A new connection; DeviceError when nobody is there.
    virtual File connect() = 0;
};

/// DeviceError names what is missing and the next step.
std::shared_ptr<Server> reach_server();

}  // namespace bdforge::emulated
