// The emulated array behind the library: faults of the array are errors, time-outs are none.

#include <stdlib.h>

#include <cstring>

#include "manifest.hpp"
#include "devices.hpp"
#include "backend.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds long_enough{120000};

/// The instruction stream that the Python side made for a folder's design, with its operands.
struct Loaded {
    explicit Loaded(const std::string& name, Device on = unit::emulated_device())
        : device(std::move(on)),
          manifest(load_manifest(unit::data_folder() + "/" + name + "/manifest.json")),
          context(device.backend().load({"", false, manifest})) {}

    std::shared_ptr<Buffer> buffer(std::size_t bytes) const {
        auto made = context->allocate(0, bytes);
        std::memset(made->data(), 0, made->bytes());
        return made;
    }

    Device device;
    LoadedManifest manifest;
    std::unique_ptr<Context> context;
};

/// A run of the stream in data/words.bin, 64 x 64 x 128 of the small design: A and B, where its codes are 1, are 0.
struct Work {
    static constexpr std::size_t M = 64, K = 64, N = 128;

    explicit Work(const Loaded& on, std::size_t a_bytes = M * K)
        : words(on.context->instructions(unit::recorded_words())), a(on.buffer(a_bytes)), b(on.buffer(K * N / 4)),
          c(on.buffer(M * N * 4)), command(on.context->command({words, "", 0}, {a, b, c})) {
        std::memset(b->data(), 0xAA, b->bytes());  // every weight is 1
        for (std::size_t i = 0; i < a->bytes(); ++i) static_cast<std::int8_t*>(a->data())[i] = static_cast<std::int8_t>(i / K);
    }

    std::shared_ptr<Buffer> words, a, b, c;
    std::unique_ptr<Command> command;

    void check() const {
        for (std::size_t i = 0; i < M * N; ++i)
            check_equal(static_cast<const std::int32_t*>(c->data())[i], static_cast<std::int32_t>(i / N * K), "C");
    }
};

std::string fault(Command& command) {
    return message_of<RunError>([&] {
        command.start();
        command.wait(long_enough);
    });
}

}  // namespace

UNIT_CASE("emulated", words_run_on_the_array_and_faults_are_its_own) {
    const Loaded small("small");
    Work good(small), bad(small, Work::M * Work::K - 4);
    check_contains(fault(*bad.command), "of argument 0, which has 4092");
    good.command->start();
    check_equal(good.command->wait(long_enough) == Outcome::completed, true, "completed");
    good.check();
}

UNIT_CASE("emulated", a_run_that_does_not_end_times_out_and_ends_with_its_client) {
    const Loaded endless("endless");
    Work work(endless);
    work.command->start();
    check_equal(work.command->wait(milliseconds{20}) == Outcome::timed_out, true, "timed out");
}

UNIT_CASE("own_server", a_program_starts_one_where_none_is_named) {
    unsetenv("BDFORGE_DEVICE_SOCKET");
    setenv("BDFORGE_PYTHON", "/no/such/python", 1);
    check_contains(message_of<DeviceError>([] { Device::open("emulated"); }),
                   "/no/such/python cannot be run (No such file or directory); install bdforge, or name");
    setenv("BDFORGE_PYTHON", "/bin/false", 1);
    check_contains(message_of<DeviceError>([] { Device::open("emulated"); }), "its server ended at once (/bin/false)");
    unsetenv("BDFORGE_PYTHON");
    const Loaded small("small"), again("small", Device::open("software"));
    Work work(small), other(again);
    work.command->start();
    other.command->start();
    work.command->wait(long_enough);
    other.command->wait(long_enough);
    work.check();
    other.check();
}
