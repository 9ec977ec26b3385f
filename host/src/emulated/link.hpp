#pragma once
/// A connection to the device server. bdforge/runtime/service/wire.py describes the protocol.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

/// Whether a file can be read, or has ended, within `milliseconds`; -1: no limit.
bool readable(int file, int milliseconds);

}  // namespace bdforge::emulated
