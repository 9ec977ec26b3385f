// What the library says to a device server and makes of its answers, packet by packet: a server that does as it is told.

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <thread>

#include "manifest.hpp"
#include "devices.hpp"
#include "device_server.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;
using std::chrono::milliseconds;

namespace {

using Words = std::vector<std::uint32_t>;
constexpr std::uint64_t page_bytes = 4096;

struct Reply {
    std::uint32_t status;
    std::string text;

    std::string packet() const {
        const std::uint32_t head[] = {status, 0};
        return std::string(reinterpret_cast<const char*>(head), sizeof head) + text;
    }
};

/// Answers an OPEN and, in their pipes, RUNs; hangs up on the connection where a RUN has no answer.
class Server {
public:
    explicit Server(Reply opened, std::vector<Reply> runs = {}) : opened_(std::move(opened)), runs_(std::move(runs)) {
        const std::string name = "bdforge-wire-" + std::to_string(getpid()) + "-" + std::to_string(made_++);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path + 1, name.data(), name.size());
        const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        listening_ = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        unit::check(bind(listening_, reinterpret_cast<sockaddr*>(&address), bytes) == 0 && listen(listening_, 4) == 0, "listening");
        signal(SIGPIPE, SIG_IGN);  // a client that gives up
        before_ = getenv("BDFORGE_DEVICE_SOCKET");
        setenv("BDFORGE_DEVICE_SOCKET", name.c_str(), 1);
        thread_ = std::thread([this] { serve(); });
    }
    ~Server() {
        thread_.join();
        close(listening_);
        setenv("BDFORGE_DEVICE_SOCKET", before_.c_str(), 1);
    }

    /// Packets so far, once the client has hung up.
    std::vector<Words> packets() {
        std::unique_lock<std::mutex> lock(guard_);
        ended_.wait(lock, [this] { return over_; });
        return packets_;
    }
    std::string text;  // of the OPEN

private:
    void serve() {
        close(accept(listening_, nullptr, nullptr));  // whether anybody is there
        const int client = accept(listening_, nullptr, nullptr);
        while (take(client)) {
        }
        close(client);
        const std::lock_guard<std::mutex> lock(guard_);
        over_ = true;
        ended_.notify_all();
    }

    bool take(int client) {
        std::array<char, 8192> packet{};
        alignas(cmsghdr) char control[64] = {};
        iovec part{packet.data(), packet.size()};
        msghdr message{};
        message.msg_iov = &part, message.msg_iovlen = 1, message.msg_control = control, message.msg_controllen = sizeof control;
        const ssize_t got = recvmsg(client, &message, 0);
        if (got <= 0) return false;
        int file = -1;
        if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) std::memcpy(&file, CMSG_DATA(header), sizeof file);
        Words words(static_cast<std::size_t>(got) / 4);
        std::memcpy(words.data(), packet.data(), words.size() * 4);
        const std::uint32_t kind = words.at(0);
        if (kind == 1) text.assign(packet.data() + 8, static_cast<std::size_t>(got) - 8), words.resize(2);
        packets_.push_back(std::move(words));
        const bool more = answer(kind, client, file);
        if (file >= 0) close(file);
        return more;
    }

    bool answer(std::uint32_t kind, int client, int file) {
        if (kind == 1) return write(client, opened_.packet().data(), opened_.packet().size()) > 0;
        if (kind != 4) return true;
        if (runs_.empty()) {  // what is behind stays unread
            recv(client, nullptr, 0, MSG_PEEK | MSG_TRUNC);
            const std::string last = Reply{2, "last words"}.packet();
            return write(client, last.data(), last.size()) < 0;
        }
        std::this_thread::sleep_for(milliseconds{20});  // a client that does not wait is seen
        const std::string reply = runs_.front().packet();
        runs_.erase(runs_.begin());
        return write(file, reply.data(), reply.size()) > 0;
    }

    static inline int made_ = 0;
    Reply opened_;
    std::vector<Reply> runs_;
    int listening_;
    std::string before_;
    std::mutex guard_;
    std::condition_variable ended_;
    bool over_ = false;
    std::vector<Words> packets_;
    std::thread thread_;
};

std::string manifest_path() { return unit::data_folder() + "/small/manifest.json"; }

std::unique_ptr<Context> loaded() { return unit::emulated_device().backend().load({"", false, load_manifest(manifest_path())}); }

std::uint64_t wide(const Words& words, std::size_t at) { return words.at(at) | std::uint64_t{words.at(at + 1)} << 32; }

void check_words(const Words& found, const Words& wanted, const std::string& what) {
    const auto told = [](const Words& words) {
        std::string all;
        for (const std::uint32_t word : words) all += " " + std::to_string(word);
        return all;
    };
    check_equal(told(found), told(wanted), what);
}

}  // namespace

UNIT_CASE("wire", packets_say_what_is_loaded_shared_run_and_given_back) {
    Server server({0, ""}, {{0, ""}});
    const std::vector<std::size_t> sizes{1, page_bytes - 1, page_bytes, page_bytes + 1, 3 * page_bytes};
    {
        const auto context = loaded();
        std::vector<std::shared_ptr<Buffer>> buffers;
        for (const std::size_t size : sizes) buffers.push_back(context->allocate(0, size));
        const auto words = context->instructions({11, 12, 13});
        const auto command = context->command({words, "", 0}, {buffers[4], buffers[1]});
        command->start();
        check_equal(command->wait(milliseconds{std::int64_t{1} << 32}) == Outcome::completed, true, "waited 2^32 ms at most");
    }
    const std::vector<Words> packets = server.packets();
    check_words(packets.at(0), {1, emulated::protocol_version}, "open");
    check_equal(server.text, manifest_path(), "what is loaded");
    std::vector<std::uint64_t> places;
    for (std::size_t i = 0; i < 6; ++i) {
        const Words& packet = packets.at(1 + i);
        const std::size_t bytes = i < 5 ? sizes[i] : 12;
        places.push_back(wide(packet, 2));
        check_words(packet, {2, 0, packet[2], packet[3], static_cast<std::uint32_t>(bytes), 0, 0, 0}, "buffer");
        check_equal(places[i] % page_bytes, 0U, "a buffer's alignment");
        if (i > 0)
            check_equal(places[i] >= places[i - 1] + sizes[i - 1] + page_bytes, true, "a page between buffers " + std::to_string(i));
    }
    const auto low = [&](std::size_t i) { return static_cast<std::uint32_t>(places[i]); };
    check_words(packets.at(7), {4, 1, 0, 2, low(5), 0, 12, 0, low(4), 0, low(1), 0}, "run");
    check_equal(packets.size(), 8U + 6U, "packets, the last ones free buffers");
    for (std::size_t i = 8; i < 14; ++i) check_equal(packets[i].at(0), 3U, "free");
}

UNIT_CASE("wire", answers_to_loading_are_errors_of_their_kinds) {
    {
        Server server({1, "as told"});
        check_equal(message_of<ManifestError>([] { loaded(); }), std::string("as told"), "bad input");
    }
    for (const std::uint32_t status : {2U, 4U, 5U, 99U}) {
        Server server({status, "as told"});
        check_equal(message_of<DeviceError>([] { loaded(); }), std::string("as told"), "status " + std::to_string(status));
    }
}

UNIT_CASE("wire", answers_to_runs_are_errors_but_the_first_kind) {
    Server server({0, ""}, {{1, "one"}, {2, "two"}, {3, "three"}, {77, "other"}, {0, "none"}});
    const auto context = loaded();
    const auto command = context->command({context->instructions({1}), "", 0}, {});
    for (const char* text : {"one", "two", "three", "other"}) {
        command->start();
        check_equal(message_of<RunError>([&] { command->wait(milliseconds{60000}); }), std::string(text), "answer");
    }
    command->start();
    check_equal(command->wait(milliseconds{60000}) == Outcome::completed, true, "completed");
}

UNIT_CASE("wire", what_a_server_says_before_it_hangs_up_is_told_to_all_who_ask) {
    Server server({0, ""});
    const auto context = loaded();
    const auto command = context->command({context->instructions({1}), "", 0}, {});
    command->start();
    const auto unread = context->allocate(0, 1);
    for (int i = 0; i < 2; ++i)
        check_equal(message_of<RunError>([&] { command->wait(milliseconds{60000}); }), std::string("last words"), "told");
    check_equal(message_of<RunError>([&] { command->start(); }), std::string("last words"), "told at a start");
}

UNIT_CASE("wire", names_of_servers_fit_an_address_or_are_refused) {
    const std::string before = getenv("BDFORGE_DEVICE_SOCKET");
    for (const auto& [length, reason] : {std::pair<std::size_t, const char*>{107, "nobody serves BDFORGE_DEVICE_SOCKET=nnn"}, {108, "is no server's name"}}) {
        setenv("BDFORGE_DEVICE_SOCKET", std::string(length, 'n').c_str(), 1);
        const std::string text = message_of<DeviceError>([] { Device::open("emulated"); });
        setenv("BDFORGE_DEVICE_SOCKET", before.c_str(), 1);
        check_contains(text, reason);
    }
}
