#pragma once
/// A connection to the device server. bdforge/runtime/service/wire.py describes the protocol.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bdforge::emulated {

constexpr std::uint32_t protocol_version = 1;
enum class Packet : std::uint32_t { open = 1, buffer = 2, free = 3, run = 4 };
enum class Status : std::uint32_t { done, bad_input, fault, ended };  // ended: nobody is there any more

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
    std::string text;
};

/// A packet's words; `file` goes with it unless it is -1. False when nobody is there.
bool send_packet(int connection, const std::vector<std::uint32_t>& words, int file = -1, const std::string& text = "");

/// The answer in a pipe, waiting for it.
Answer read_answer(int pipe);
/// The same on a connection; with `keep` it stands there for the next one who asks.
Answer receive_answer(int connection, bool keep = false);

/// Whether a file can be read, or has ended, within `milliseconds`; -1: no limit.
bool readable(int file, int milliseconds);

}  // namespace bdforge::emulated
