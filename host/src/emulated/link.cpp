#include "link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "bdforge/error.hpp"

namespace bdforge::emulated {
namespace {

constexpr std::size_t answer_bytes = 8192;

Ends made(int failed, const int (&ends)[2]) {
    if (failed != 0) throw DeviceError(std::string("device emulated: no file can be opened: ") + std::strerror(errno));
    return {File(ends[0]), File(ends[1])};
}

Answer answer_in(const char* packet, ssize_t bytes) {
    std::uint32_t head[2] = {};
    if (bytes < static_cast<ssize_t>(sizeof head)) return {};
    std::memcpy(head, packet, sizeof head);
    const std::string text(packet + sizeof head, static_cast<std::size_t>(bytes) - sizeof head);
    return {head[0] < static_cast<std::uint32_t>(Status::ended) ? Status{head[0]} : Status::fault, head[1], text};
}

void append(std::vector<std::uint32_t>& words, std::uint64_t wide) {
    words.push_back(static_cast<std::uint32_t>(wide));
    words.push_back(static_cast<std::uint32_t>(wide >> 32));
}

std::vector<std::uint32_t> packet_of(Packet kind, std::uint32_t second, std::initializer_list<std::uint64_t> wide = {}) {
    std::vector<std::uint32_t> words{static_cast<std::uint32_t>(kind), second};
    for (const std::uint64_t one : wide) append(words, one);
    return words;
}

}  // namespace

File::~File() {
    if (number_ >= 0) close(number_);
}

Ends connected() {
    int ends[2] = {-1, -1};
    const int failed = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    return made(failed, ends);
}

Ends piped() {
    int ends[2] = {-1, -1};
    const int failed = pipe2(ends, O_CLOEXEC);
    return made(failed, ends);
}

bool send_open(int connection, const std::string& text, int pdi) {
    return send_packet(connection, packet_of(Packet::open, protocol_version), pdi, text);
}

bool send_buffer(int connection, std::uint64_t address, std::uint64_t bytes, int file, std::uint64_t offset) {
    return send_packet(connection, packet_of(Packet::buffer, 0, {address, bytes, offset}), file);
}

bool send_free(int connection, std::uint64_t address) {
    return send_packet(connection, packet_of(Packet::free, 0, {address}));
}

bool send_sequence(int connection, std::uint64_t address, const std::string& elf, const std::string& name, int answer) {
    return send_packet(connection, packet_of(Packet::sequence, 0, {address}), answer, elf + '\0' + name);
}

bool send_runs(int connection, const std::vector<WireRun>& runs, int answer) {
    std::vector<std::uint32_t> words = packet_of(Packet::run, static_cast<std::uint32_t>(runs.size()));
    for (const WireRun& run : runs) {
        words.push_back(static_cast<std::uint32_t>(run.form));
        words.push_back(static_cast<std::uint32_t>(run.arguments.size()));
        append(words, run.address);
        append(words, run.bytes);
        for (const std::uint64_t argument : run.arguments) append(words, argument);
    }
    return send_packet(connection, words, answer);
}

bool send_packet(int connection, const std::vector<std::uint32_t>& words, int file, const std::string& text) {
    iovec parts[] = {{const_cast<std::uint32_t*>(words.data()), words.size() * sizeof(words[0])},
                     {const_cast<char*>(text.data()), text.size()}};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    if (file >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    ssize_t sent = 0;
    do sent = sendmsg(connection, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

Answer read_answer(int pipe) {
    char packet[answer_bytes];
    ssize_t got = 0;
    do got = read(pipe, packet, sizeof packet);
    while (got < 0 && errno == EINTR);
    return answer_in(packet, got);
}

/// What the other end did not read before it closed is told first, as an error, and once.
Answer receive_answer(int connection, bool keep) {
    char packet[answer_bytes];
    ssize_t got = 0;
    do got = recv(connection, packet, sizeof packet, keep ? MSG_PEEK : 0);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    return answer_in(packet, got);
}

bool readable(int file, int milliseconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds{milliseconds};
    pollfd wanted{file, POLLIN, 0};
    for (int left = milliseconds;;) {
        const int found = poll(&wanted, 1, left);
        if (found >= 0 || errno != EINTR) return found != 0;
        if (milliseconds < 0) continue;
        const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        left = static_cast<int>(std::max<decltype(rest)>(rest, 0));
    }
}

}  // namespace bdforge::emulated
