#include "device_server.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "bdforge/error.hpp"
#include "messages.hpp"

#ifndef BDFORGE_BUILT_BY_PYTHON
#define BDFORGE_BUILT_BY_PYTHON ""
#endif

namespace bdforge {

std::string setting(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::vector<std::string> bdforge_command() {
    std::string python = setting(python_variable);
    if (python.empty() && access(BDFORGE_BUILT_BY_PYTHON, X_OK) == 0) python = BDFORGE_BUILT_BY_PYTHON;
    if (python.empty()) return {"bdforge"};
    return {python, "-m", "bdforge.cli"};
}

pid_t start_child(const std::vector<std::string>& words, const std::string& who,
                  const std::function<void(posix_spawn_file_actions_t&)>& add) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    add(actions);
    pid_t child = -1;
    const int failed = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed == 0) return child;
    throw DeviceError(who + words[0] + " cannot be run (" + std::strerror(failed) +
                      "); install bdforge, or name a Python that has it by " + python_variable);
}

}  // namespace bdforge

namespace bdforge::emulated {
namespace {

constexpr std::size_t answer_bytes = 8192;
constexpr int last_words_ms = 1000;

Ends made(int failed, const int (&ends)[2]) {
    if (failed != 0) throw DeviceError(concat("device emulated: no file can be opened: ", std::strerror(errno)));
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

std::vector<std::uint32_t> packet_of(Packet kind, std::uint32_t second,
                                     std::initializer_list<std::uint64_t> wide = {}) {
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
    do sent = sendmsg(connection, &message, MSG_NOSIGNAL);  // a server that ended is no SIGPIPE
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

std::string last_words(int connection, bool keep, const char* otherwise) {
    const Answer answer = readable(connection, last_words_ms) ? receive_answer(connection, keep) : Answer{};
    return answer.text.empty() ? otherwise : answer.text;
}

namespace {

constexpr int inherited = 3;  // the file that a server of ours finds its socket under
constexpr const char* socket_variable = "BDFORGE_DEVICE_SOCKET";
constexpr const char* here = "device emulated: ";

[[noreturn]] void missing(const std::string& what) { throw DeviceError(here + what); }

/// One that somebody else runs.
class NamedServer final : public Server {
public:
    explicit NamedServer(std::string name) : name_(std::move(name)) {}

    File connect() override {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (name_.size() + 1 > sizeof address.sun_path) missing(concat(socket_variable, " is no server's name"));
        std::memcpy(address.sun_path + 1, name_.data(), name_.size());  // behind a 0: the abstract namespace
        const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
        File file(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        if (::connect(file.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
            missing(concat("nobody serves ", socket_variable, "=", name_, " (", std::strerror(errno),
                         "); run the program under 'bdforge device --', or unset the variable"));
        return file;
    }

private:
    std::string name_;
};

/// A child of this process, which ends when this process does, or when its last device is gone.
class OwnServer final : public Server {
public:
    OwnServer() {
        std::vector<std::string> words = bdforge_command();
        words.insert(words.end(), {"device", "--serve", std::to_string(inherited)});
        Ends ends = connected();
        child_ = start_child(words, here, [&ends](posix_spawn_file_actions_t& files) {
            posix_spawn_file_actions_adddup2(&files, ends.second.number(), inherited);
        });
        control_ = std::move(ends.first);
        ends = connected();
        Answer answer;
        if (send_packet(control_.number(), {}, ends.second.number(), "+")) {
            ends.second = File();  // the server's alone: its end ends the connection
            send_open(ends.first.number(), "");
            answer = receive_answer(ends.first.number());
        }
        if (answer.status == Status::done) return;
        end();
        missing(answer.status == Status::fault
                    ? answer.text
                    : "its server ended at once (" + words[0] +
                          "); install bdforge there, or name a Python that has it by " + python_variable);
    }

    ~OwnServer() override { end(); }

    File connect() override {
        Ends ends = connected();
        if (!send_packet(control_.number(), {}, ends.second.number(), "+"))
            missing("its server has ended; open the device again");
        return std::move(ends.first);
    }

private:
    void end() {
        control_ = File();
        while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }

    File control_;
    pid_t child_ = -1;
};

}  // namespace

std::shared_ptr<Server> reach_server() {
    if (const std::string name = setting(socket_variable); !name.empty()) {
        auto server = std::make_shared<NamedServer>(name);
        server->connect();  // whether anybody is there
        return server;
    }
    static std::mutex guard;
    static std::weak_ptr<Server> ours;
    const std::lock_guard<std::mutex> lock(guard);
    std::shared_ptr<Server> server = ours.lock();
    if (!server) ours = server = std::make_shared<OwnServer>();
    return server;
}

}  // namespace bdforge::emulated
