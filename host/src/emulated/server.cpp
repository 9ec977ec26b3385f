#include "server.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "bdforge/error.hpp"
#include "interpreter.hpp"

namespace bdforge::emulated {
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
        if (name_.size() + 1 > sizeof address.sun_path) missing(std::string(socket_variable) + " is no server's name");
        std::memcpy(address.sun_path + 1, name_.data(), name_.size());  // behind a 0: the abstract namespace
        const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
        File file(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        if (::connect(file.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
            missing("nobody serves " + std::string(socket_variable) + "=" + name_ + " (" + std::strerror(errno) +
                    "); run the program under 'bdforge device --', or unset the variable");
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
            ends.second = File();
            send_open(ends.first.number(), "");
            answer = receive_answer(ends.first.number());
        }
        if (answer.status == Status::done) return;
        end();
        missing(answer.status == Status::fault
                    ? answer.text
                    : "its server ended at once (" + words[0] + "); install bdforge there, or name a Python that has it by " +
                          python_variable);
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
