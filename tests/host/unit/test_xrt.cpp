// The backend for NPUs, over an XRT whose device is a script, or the emulated array behind memory that is apart.

#include <xrt/stub.hpp>

#include "bdforge/error.hpp"
#include "devices.hpp"
#include "operands.hpp"
#include "state.hpp"
#include "unit.hpp"
#include "backend.hpp"

using namespace bdforge;
using namespace unit;
using std::chrono::milliseconds;

namespace {

/// A device for one case; at its end nothing may have been done that XRT ends a process for.
class Npu {
public:
    explicit Npu(bool full_elf = false) : full_elf_(full_elf), manifest_(load_manifest(unit::data_folder() + "/small/manifest.json")) {
        stub::world() = std::make_unique<stub::World>();
    }
    Npu(const Npu&) = delete;
    Npu& operator=(const Npu&) = delete;
    ~Npu() { stub::world().reset(); }

    stub::World* operator->() const { return stub::world().get(); }
    Device device() const { return Device(open_xrt("0")); }
    Image image() const { return {full_elf_ ? "small.elf" : "small.xclbin", full_elf_, manifest_}; }
    std::unique_ptr<Context> load() const { return device().backend().load(image()); }
    Design design() const {
        std::string path = design_path("small");
        if (full_elf_) path.replace(path.rfind("xclbin"), 6, "elf");
        return Design::load(device(), path);
    }

    /// The emulated array does what is launched, on the device's side of memory.
    void runs_emulated() const {
        const auto array = std::shared_ptr<Context>(unit::emulated_device().backend().load(image()));
        const auto streams = std::make_shared<Streams>(manifest_);
        stub::world()->act = [this, array, streams](const stub::Launch& launch) {
            const auto& given = launch.arguments;
            const std::size_t first = full_elf_ ? 0 : 3;
            Stream stream;
            if (full_elf_) {
                check_equal(launch.kernel, "main:gemm_33x40x70", "the instance that is run");
                stream = *streams->get(*array, false, {33, 40, 70, 0, 0, 0});
            } else {
                check_equal(launch.kernel, "MLIR_AIE", "the kernel that is run");
                const std::vector<std::byte>& memory = given.at(1).memory->device;
                check_equal(given.at(0).number, 3U, "opcode");
                check_equal(given.at(2).number * sizeof(std::uint32_t), memory.size(), "bytes of instructions");
                std::vector<std::uint32_t> words(given.at(2).number);
                std::memcpy(words.data(), memory.data(), memory.size());
                stream.instructions = array->instructions(words);
            }
            Arguments arguments;
            for (std::size_t i = first; i < given.size(); ++i) {
                const std::vector<std::byte>& memory = given[i].memory->device;
                arguments.push_back(array->allocate(i - first, memory.size()));
                std::memcpy(arguments.back()->data(), memory.data(), memory.size());
            }
            const auto command = array->command(stream, arguments);
            command->start();
            check(command->wait(milliseconds{20'000}) == Outcome::completed, "the emulated array ends");
            for (std::size_t i = first; i < given.size(); ++i)
                std::memcpy(given[i].memory->device.data(), arguments[i - first]->data(), given[i].memory->device.size());
        };
    }

private:
    bool full_elf_;
    LoadedManifest manifest_;
};

void no_crimes(const Npu& npu, unit::Where at = unit::here()) {
    for (const std::string& crime : npu->crimes) unit::fail(crime, at);
}

/// A command of `load`'s context without arguments.
std::unique_ptr<Command> command_of(Context& context) { return context.command({context.instructions({0, 0, 0, 16}), "", 0}, {}); }

}  // namespace

UNIT_CASE("xrt", every_state_of_a_command_has_its_outcome) {
    constexpr const char *runs = "(runs)", *ended = "(ended)";
    const struct {
        ert_cmd_state returned, state;
        const char* told;  // how a wait ends: as it completed, as it timed out, or by this error
    } cases[] = {
        {ERT_CMD_STATE_COMPLETED, ERT_CMD_STATE_COMPLETED, ended},
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_COMPLETED, ended},  // between the time-out and the question
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_NEW, runs},
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_QUEUED, runs},
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_RUNNING, runs},
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_SUBMITTED, runs},
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_TIMEOUT, "with TIMEOUT (the driver gave up)"},
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_ERROR, "with ERROR"},
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_ABORT, "with ABORT"},
        {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_NORESPONSE, "with NORESPONSE"},
        {ERT_CMD_STATE_NEW, ERT_CMD_STATE_NEW, runs},
        {ERT_CMD_STATE_QUEUED, ERT_CMD_STATE_QUEUED, runs},
        {ERT_CMD_STATE_RUNNING, ERT_CMD_STATE_RUNNING, runs},
        {ERT_CMD_STATE_SUBMITTED, ERT_CMD_STATE_SUBMITTED, runs},
        {ERT_CMD_STATE_ERROR, ERT_CMD_STATE_ERROR, "with ERROR"},
        {ERT_CMD_STATE_ABORT, ERT_CMD_STATE_ABORT, "with ABORT"},
        {ERT_CMD_STATE_NORESPONSE, ERT_CMD_STATE_NORESPONSE, "with NORESPONSE"},
        {ERT_CMD_STATE_SKERROR, ERT_CMD_STATE_SKERROR, "with state 10"},
    };
    const Npu npu;
    const auto context = npu.load();
    for (const auto& [returned, state, expected] : cases) {
        const std::string which = "state " + std::to_string(state) + ", of which a wait returned " + std::to_string(returned);
        const auto command = command_of(*context);
        command->start();
        npu->waits = {{returned, state}};
        std::string told;
        try {
            told = command->wait(milliseconds{5}) == Outcome::completed ? ended : runs;
        } catch (const RunError& error) {
            told = error.what();
        }
        check(told.find(expected) != std::string::npos, which + ": got " + told + ", expected " + expected);
        if (told == runs) check(command->wait(milliseconds{5}) == Outcome::completed, which + ": it ends later");
    }
    no_crimes(npu);
}

UNIT_CASE("xrt", what_either_side_writes_the_other_gets) {
    for (const bool full_elf : {false, true}) {
        const Npu npu(full_elf);
        npu.runs_emulated();
        const Design design = npu.design();
        Operands given = operands(33, 40, 70);
        const Weights weights = design.pack(given.weights.data(), 40, 70);
        const auto a = unit::pages<std::int8_t>(33 * 40);
        const auto c = unit::pages<std::int32_t>(33 * 70);
        for (const bool callers : {false, true}) {
            const std::string which = std::string(full_elf ? "an ELF" : "an xclbin") + (callers ? ", the caller's memory" : ", its own memory");
            Gemm gemm(design, 33, weights, callers ? GemmOptions{{a.get(), 0}, {c.get(), 0}} : GemmOptions{});
            if (callers) check(gemm.a() == a.get() && gemm.c() == c.get(), which + " is used");
            for (int turn = 0; turn < 2; ++turn) {
                for (std::int8_t& value : given.a) value = static_cast<std::int8_t>(value * 5 + turn);
                unit::multiply(given);
                for (std::size_t i = 0; i < given.a.size(); ++i) gemm.a()[i / 40 * gemm.lda() + i % 40] = given.a[i];
                gemm.run();
                std::vector<std::int32_t> found;
                for (std::size_t row = 0; row < 33; ++row)
                    found.insert(found.end(), gemm.c() + row * gemm.ldc(), gemm.c() + row * gemm.ldc() + 70);
                check_equal(found, given.c, "C of " + which + ", turn " + std::to_string(turn));
            }
        }
        Gemm one(design, 33, weights), two(design, 33, weights);
        std::vector<std::int32_t> found(33 * 70);
        const Job jobs[] = {one.job(), two.job(), one.job().beside({"C"})};  // the last one's A is that of the first
        Batch batch = Batch::of(design, {std::begin(jobs), std::end(jobs)});
        for (Gemm* gemm : {&one, &two}) gemm->job().place("A", {given.a.data(), given.a.size()});
        batch.run();
        for (const Job& job : jobs) {
            job.fetch("C", {found.data(), found.size() * 4});
            check_equal(found, given.c, "C of a batch");
        }
        one.run();  // by itself, as well
        no_crimes(npu);
    }
}

UNIT_CASE("xrt", memory_is_synchronised_where_somebody_looks) {
    const Npu npu;
    npu.runs_emulated();
    const Design design = npu.design();
    Operands given = operands(33, 40, 70);
    Job job(design, {{"M", 33}, {"K", 40}, {"N", 70}}, {{}, {design.pack(given.weights.data(), 40, 70)}});
    std::vector<std::int32_t> found(33 * 70);
    const auto synced = [&](const std::string& after) {
        std::string told;
        for (const auto& [direction, bytes] : npu->syncs) told += direction == XCL_BO_SYNC_BO_TO_DEVICE ? ">" : "<";
        npu->syncs.clear();
        return after + told;
    };
    const auto fetch = [&] {
        job.fetch("C", {found.data(), found.size() * 4});
        check_equal(found, given.c, "C");
    };
    job.place("A", {given.a.data(), given.a.size()});
    job.run();
    synced("");
    job.run();
    check_equal(synced("nothing new: "), std::string("nothing new: "), "syncs");
    fetch(), fetch();
    check_equal(synced("fetched twice: "), std::string("fetched twice: <"), "syncs");
    job.place("A", {given.a.data(), given.a.size()});
    job.run();
    check_equal(synced("placed: "), std::string("placed: >"), "syncs");
    const auto* const c = static_cast<const std::int32_t*>(std::as_const(job).memory("C"));
    check_equal(synced("shown: "), std::string("shown: <"), "syncs");
    auto* const a = static_cast<std::int8_t*>(job.memory("A"));
    a[0] = static_cast<std::int8_t>(a[0] ^ 1), given.a[0] = a[0];
    unit::multiply(given);
    job.run();
    check_equal(synced("written and read at any time: "), std::string("written and read at any time: ><"), "syncs");
    check_equal(c[0], given.c[0], "C where it was shown");
    fetch();
    check_equal(synced("seen already: "), std::string("seen already: "), "syncs");
    no_crimes(npu);
}

UNIT_CASE("xrt", each_buffer_is_synchronised_in_the_direction_that_is_asked_for) {
    for (const bool full_elf : {false, true}) {
        const Npu npu(full_elf);
        const auto context = npu.load();
        const auto callers = unit::pages<char>(4096);
        for (const auto& buffer : {context->allocate(0, 64), context->adopt(0, callers.get(), 64)}) {
            std::shared_ptr<stub::Memory> memory;
            npu->act = [&](const stub::Launch& launch) { memory = launch.arguments.back().memory; };
            const Stream stream{full_elf ? nullptr : context->instructions({1}), "main", 1};
            context->command(stream, {buffer})->start();
            auto* const host = static_cast<char*>(buffer->data());
            const std::string which = host == callers.get() ? "the caller's" : "its own";
            std::memset(host, 'h', 64);
            std::memset(memory->device.data(), 'd', 64);
            buffer->to_device();
            check_equal(static_cast<char>(memory->device[63]), 'h', "the device's side of " + which);
            std::memset(memory->device.data(), 'd', 64);
            buffer->from_device();
            check_equal(host[63], 'd', "the host's side of " + which);
        }
        npu->crimes.clear();  // of runs that this case leaves
    }
}

UNIT_CASE("xrt", memory_is_of_the_kinds_and_groups_that_npus_take) {
    constexpr auto host_only = static_cast<unsigned>(xrt::bo::flags::host_only), cacheable = static_cast<unsigned>(xrt::bo::flags::cacheable);
    const auto made = [](bool full_elf) {
        const Npu npu(full_elf);
        const auto context = npu.load(), other = npu.load();
        const auto callers = unit::pages<char>(4096);
        context->allocate(0, 1), context->adopt(2, callers.get(), 4096), context->instructions({1, 2});
        no_crimes(npu);
        std::string told;
        for (const auto& [flags, group] : npu->buffers) told += std::to_string(flags) + " " + std::to_string(group) + ", ";
        return told;
    };
    const auto one = [](unsigned flags, int group) { return std::to_string(flags) + " " + std::to_string(group) + ", "; };
    check_equal(made(false), one(host_only, 65539) + one(host_only, 65541) + one(cacheable, 65537), "an xclbin's");
    check_equal(made(true), one(0, 0) + one(0, 0), "an ELF's");
}

UNIT_CASE("xrt", designs_of_one_image_share_its_context) {
    const Npu npu;
    const Device device = npu.device();
    LoadedManifest other = load_manifest(unit::data_folder() + "/small/manifest.json");
    other.design = "beside";
    LoadedManifest elsewhere = other, larger = other;
    elsewhere.files.at("xclbin").sha256 = "0";
    larger.design = "larger", larger.source.program.arguments.resize(6);
    const auto one = device.backend().open(npu.image());
    const auto beside = device.backend().open({"small.xclbin", false, other});
    check_equal(npu->contexts, 1U, "contexts of two designs of an image");
    check_equal(one == beside, true, "one array");
    const auto apart = device.backend().open({"apart.xclbin", false, elsewhere});
    check_equal(npu->contexts, 2U, "contexts of two images");
    const auto again = device.backend().open(npu.image());
    check_equal(npu->contexts, 3U, "contexts of a design that is loaded twice");
    const auto shared = device.backend().open({"small.xclbin", false, other});
    check_equal(npu->contexts, 3U, "contexts: a design beside joins the last one");
    check_equal(shared == again, true, "the last one");
    check(command_of(*shared) != nullptr, "it runs there");
    check_contains(message_of<ManifestError>([&] { device.backend().open({"small.xclbin", false, larger}); }), "the design needs 9");
    larger.source = other.source, larger.kernel = "OTHER";
    check_contains(message_of<ManifestError>([&] { device.backend().open({"small.xclbin", false, larger}); }), "names kernel OTHER");
    { const auto alone = npu.device().backend().open({"small.xclbin", false, other}); }
    check_equal(npu->contexts, 4U, "contexts of another device");
}

UNIT_CASE("xrt", a_run_that_hangs_is_kept) {
    const Npu npu;
    const Design design = npu.design();
    const std::vector<std::int8_t> weights(64 * 64);
    {
        Gemm gemm(design, 33, design.pack(weights.data(), 64, 64));
        gemm.run_async();
        npu->waits.assign(2, {ERT_CMD_STATE_TIMEOUT, ERT_CMD_STATE_SUBMITTED});
        check_contains(message_of<TimeoutError>([&] { gemm.wait(milliseconds{1}); }), "no result after 1 ms");
    }
    no_crimes(npu);
}

UNIT_CASE("xrt", what_xrt_refuses_is_told_as_what_was_tried) {
    const Npu npu;
    const auto context = npu.load();
    const auto command = command_of(*context);
    const auto buffer = context->allocate(0, 8);
    std::vector<Command*> both{command.get()};
    const auto batch = context->batch(both);
    npu->list_waits = {std::cv_status::timeout};
    batch->start();
    check(batch->wait(milliseconds{1}) == Outcome::timed_out, "a batch that goes on");
    check(batch->wait(milliseconds{1}) == Outcome::completed, "a batch that has ended");
    npu->refusal = " no such thing\n";
    const auto refused = [](auto fault, const char* part, const std::function<void()>& act) {
        check_contains(message_of<decltype(fault)>(act), std::string(part) + ": no such thing; ");
    };
    refused(RunError(""), "starting the run", [&] { command->start(); });
    refused(RunError(""), "waiting for the run", [&] { command->wait(milliseconds{1}); });
    refused(RunError(""), "starting the batch", [&] { batch->start(); });
    refused(RunError(""), "waiting for the batch", [&] { batch->wait(milliseconds{1}); });
    refused(RunError(""), "flushing a buffer", [&] { buffer->to_device(); });
    refused(RunError(""), "reading a buffer", [&] { buffer->from_device(); });
    refused(DeviceError(""), "allocating 8 bytes", [&] { context->allocate(0, 8); });
    refused(DeviceError(""), "sharing 8 bytes of the caller", [&] { context->adopt(0, both.data(), 8); });
    refused(DeviceError(""), "allocating the instruction stream", [&] { context->instructions({1}); });
    refused(FileError(""), "small.xclbin", [&] { npu.load(); });
}

UNIT_CASE("xrt", images_that_do_not_fit_are_refused) {
    const Npu npu;
    npu->kernels = {{"other", 8}};
    check_contains(message_of<ManifestError>([&] { npu.load(); }), "names kernel MLIR_AIE, the xclbin has other");
    npu->kernels = {};
    check_contains(message_of<ManifestError>([&] { npu.load(); }), "the xclbin has none");
    npu->kernels = {{"MLIR_AIE", 5}};
    check_contains(message_of<ManifestError>([&] { npu.load(); }), "takes 5 arguments, the design needs 6");
    npu->kernels = {{"other", 8}, {"MLIR_AIE", 6}};
    npu.load();
    {
        const Npu elf(true);
        elf->full_elf = false;
        check_contains(message_of<FileError>([&] { elf.load(); }), "small.elf: holds instructions only");
    }
    check_contains(message_of<DeviceError>([] { open_xrt("0"); }), "device 0: ");
}
