#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "devices.hpp"
#include "operands.hpp"
#include "state.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;

namespace {

Sizes sizes_of(const Operands& given) { return {{"M", given.M}, {"K", given.K}, {"N", given.N}}; }

void check_fetched(const Job& job, const Operands& given, std::size_t stride, unit::Where at = unit::here()) {
    std::vector<std::int32_t> c(given.M * stride, -7), expected = c;  // gaps stay as they are
    job.fetch("C", {c.data(), c.size() * 4, stride});
    for (std::size_t i = 0; i < given.c.size(); ++i) expected[i / given.N * stride + i % given.N] = given.c[i];
    check_equal(c, expected, "C in lines of " + std::to_string(stride), at);
}

}  // namespace

UNIT_CASE("job", operands_are_placed_and_fetched_by_name) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    constexpr std::size_t shapes[][3] = {{64, 64, 128}, {1, 1, 1}, {33, 41, 70}};
    for (const auto& [M, K, N] : shapes) {
        const Operands given = operands(M, K, N);
        Job job(design, sizes_of(given));
        job.place("A", {given.a.data(), given.a.size()});
        job.place("B", {given.weights.data(), given.weights.size()});
        job.run();
        check_fetched(job, given, N);
        check_fetched(job, given, N + 3);
    }
}

UNIT_CASE("job", an_operand_that_stays_serves_many_jobs) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands one = operands(20, 40, 60), other = operands(33, 40, 60);
    Resident b(design, "B", {{"K", 40}, {"N", 60}});
    b.place("B", {one.weights.data(), one.weights.size()});
    for (const Operands* given : {&one, &other}) {
        Job job(design, sizes_of(*given), {{}, {b}});
        check_contains(message_of<ArgumentError>([&] { job.place("B", {one.weights.data(), 2400}); }), "B is resident");
        check_contains(message_of<ArgumentError>([&] { job.memory("B"); }), "B is resident");
        job.place("A", {given->a.data(), given->a.size()});
        job.run();
        if (given == &one) check_fetched(job, one, 60);
    }
    check_contains(message_of<ArgumentError>([&] { Job(design, {{"M", 8}, {"K", 44}, {"N", 60}}, {{}, {b}}); }),
                   "the resident B has K = 40, the job another");
    check_contains(message_of<ArgumentError>([&] { Job(design, sizes_of(one), {{}, {b, b}}); }), "two residents hold B");
    const Resident plain(design, "A", {{"M", 20}, {"K", 40}, {"lda", 0}});
    Job(design, sizes_of(one), {{}, {plain}});  // a leading dimension of 0 is none
    const Resident a(design, "A", {{"M", 20}, {"K", 40}, {"lda", 64}});
    check_contains(message_of<ArgumentError>([&] { Job(design, sizes_of(one), {{}, {a}}); }),
                   "the resident A has lda = 64, the job another");
}

UNIT_CASE("job", what_was_written_since_is_sent_before_every_run) {
    const Design design = Design::load(unit::scripted_device(std::make_shared<unit::Script>()), design_path("small"));
    constexpr std::size_t shapes[][3] = {{40, 64, 72}, {20, 40, 60}};  // A as it stands, and staged
    for (const auto& [M, K, N] : shapes) {
        Operands given = operands(M, K, N);
        const auto change = [&](std::vector<std::int8_t>& values) {
            std::rotate(values.begin(), values.begin() + 1, values.end());
            unit::multiply(given);
        };
        Resident b(design, "B", {{"K", K}, {"N", N}});
        Job own(design, sizes_of(given)), with_b(design, sizes_of(given), {{}, {b}});
        for (int turn = 0; turn < 2; ++turn) {
            own.place("A", {given.a.data(), given.a.size()});
            own.place("B", {given.weights.data(), given.weights.size()});
            with_b.place("A", {given.a.data(), given.a.size()});
            b.place("B", {given.weights.data(), given.weights.size()});
            for (Job* job : {&own, &with_b}) {
                job->run();
                check_fetched(*job, given, N);
            }
            change(given.weights);
        }
        auto *const a = static_cast<std::int8_t*>(with_b.memory("A")), *const own_b = static_cast<std::int8_t*>(own.memory("B"));
        own.place("A", {given.a.data(), given.a.size()});
        for (int turn = 0; turn < 2; ++turn) {  // the same memory, asked for once
            for (std::size_t i = 0; i < given.weights.size(); ++i) own_b[i / N * own.stride("B") + i % N] = given.weights[i];
            own.run();
            check_fetched(own, given, N);
            change(given.weights);
        }
        b.place("B", {given.weights.data(), given.weights.size()});
        for (int turn = 0; turn < 2; ++turn) {
            for (std::size_t i = 0; i < given.a.size(); ++i) a[i / K * with_b.stride("A") + i % K] = given.a[i];
            with_b.run();
            check_fetched(with_b, given, N);
            change(given.a);
        }
        Resident packed(design, "B", {{"K", K}, {"N", N}});
        packed.place_bytes(b.state()->buffer->data(), b.bytes());
        Job last(design, sizes_of(given), {{}, {packed}});
        last.place("A", {given.a.data(), given.a.size()});
        last.run();
        check_fetched(last, given, N);
    }
}

UNIT_CASE("job", what_a_thread_placed_or_ran_is_not_mixed_with_anothers) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands given = operands(20, 40, 60);
    Job job(design, sizes_of(given));
    const auto place = [&](const char* name, const std::vector<std::int8_t>& values) { job.place(name, {values.data(), values.size()}); };
    const auto elsewhere = [](const std::function<void()>& act) { std::thread(act).join(); };
    const auto refused = [](const std::function<void()>& act) { return message_of<StateError>(act); };
    elsewhere([&] { place("B", given.weights); });
    place("A", given.a);  // another operand than that thread's
    place("A", given.a);
    elsewhere([&] { check_contains(refused([&] { place("A", given.a); }), "holds A of another thread, which no run has read"); });
    check_contains(refused([&] { place("B", given.weights); }), "holds B of another thread");
    elsewhere([&] { job.run(); });  // which may be a third one's work, as what it gives may be
    check_fetched(job, given, 60);
    place("B", given.weights);
    job.run();
    elsewhere([&] { job.run(); });
    check_contains(refused([&] { check_fetched(job, given, 60); }), "was run by another thread since this one ran it");
    check_fetched(job, given, 60);  // as of then, it asks for the last one's
    job.run();
    check_fetched(job, given, 60);
    check_fetched(job, given, 60);
}

UNIT_CASE("job", calls_that_overlap_are_refused) {
    std::function<void()> act = [] {};
    const Design design = Design::load(unit::memory_device([&] { act(); }), design_path("small"));
    Gemm gemm(design, 20, design.pack(std::vector<std::int8_t>(2400).data(), 40, 60));
    Job& job = gemm.job();
    std::vector<std::int8_t> a(800);
    std::vector<std::int32_t> c(1200);
    std::vector<float> floats(1200);
    Batch batch = Batch::of(design, {job});
    std::vector<std::string> told;
    const std::function<void()> calls[] = {
        [&] { job.place("A", {a.data(), a.size()}); }, [&] { job.fetch("C", {c.data(), 4800}); }, [&] { job.run(); },
        [&] { job.run_async(); }, [&] { job.wait(); }, [&] { gemm.run(a.data(), 0, c.data(), 0); }, [&] { batch.run(); },
        [&] { gemm.scaled(floats.data(), 0, {}); },
    };
    act = [&] {  // while the run begins, in its thread
        std::thread([&] {
            for (const auto& call : calls) told.push_back(message_of<StateError>(call));
        }).join();
    };
    job.run();
    check_equal(told.size(), std::size(calls), "calls");
    for (const std::string& one : told) check_contains(one, "in use by another thread");
    act = [] {};
    for (const auto& call : calls)  // as wait would now be for nothing
        if (&call - calls != 3 && &call - calls != 4) call();
}

UNIT_CASE("job", what_a_run_reads_is_not_written) {
    const auto script = std::make_shared<unit::Script>();
    const Design design = Design::load(unit::scripted_device(script), design_path("small"));
    const Operands given = operands(20, 40, 60);
    Resident b(design, "B", {{"K", 40}, {"N", 60}});
    const auto place = [&] { b.place("B", {given.weights.data(), given.weights.size()}); };
    place();
    const auto refused = [&] { check_contains(message_of<StateError>(place), "the resident B is read by a run under way"); };
    Job job(design, sizes_of(given), {{}, {b}}), other(design, sizes_of(given), {{}, {b}});
    job.place("A", {given.a.data(), given.a.size()});
    Batch batch = Batch::of(design, {other});
    job.run_async(), refused();
    check_contains(message_of<StateError>([&] { job.run_async(); }), "is running"), refused();
    check_contains(message_of<StateError>([&] { batch.wait(); }), "was not started"), refused();
    batch.run_async(), job.wait(), refused();
    check_fetched(job, given, 60);
    batch.wait(), place();
    script->hanging_waits = 1;
    job.run_async(), refused();
    check_contains(message_of<TimeoutError>([&] { job.wait(); }), "no result"), refused();
    job.wait(), place();
    script->behaviour = unit::Behaviour::fails;
    job.run_async(), refused();
    check_contains(message_of<RunError>([&] { job.wait(); }), "ERROR"), place();
    batch.run_async(), refused();
    check_contains(message_of<RunError>([&] { batch.wait(); }), "ERROR"), place();
}

UNIT_CASE("job", jobs_beside_each_other_share_all_but_what_is_named) {
    const auto script = std::make_shared<unit::Script>();
    const Design design = Design::load(unit::scripted_device(script), design_path("small"));
    Operands given = operands(20, 40, 60), other = given;
    std::reverse(other.weights.begin(), other.weights.end());
    unit::multiply(other);
    Resident b(design, "B", {{"K", 40}, {"N", 60}}), second_b = Resident(design, "B", {{"K", 40}, {"N", 60}});
    b.place("B", {given.weights.data(), given.weights.size()});
    second_b.place("B", {other.weights.data(), other.weights.size()});
    Job job(design, sizes_of(given), {{}, {b}}), beside = job.beside({"C"}, {second_b}), same = beside.beside({});
    check_equal(beside.memory("A") == job.memory("A"), true, "A in common");
    check_equal(std::as_const(beside).memory("C") == std::as_const(job).memory("C"), false, "C in common");
    check_equal(std::as_const(beside).memory("C") == std::as_const(same).memory("C"), true, "C of the same");
    Batch batch = Batch::of(design, {same, job, beside});
    for (Job* places : {&job, &beside}) {  // each for all
        places->place("A", {given.a.data(), given.a.size()});
        batch.run();
        check_fetched(job, given, 60), check_fetched(beside, other, 60), check_fetched(same, other, 60);
        for (Operands* each : {&given, &other}) {
            for (auto& value : each->a) value = static_cast<std::int8_t>(value * 3 + 1);
            unit::multiply(*each);
        }
    }
    check_contains(message_of<ArgumentError>([&] { job.beside({"B"}, {b}); }), "operand B is resident; name it once");
    check_contains(message_of<ArgumentError>([&] { job.beside({"D"}); }), "has no operand D");
}

UNIT_CASE("job", one_of_jobs_beside_each_other_runs_at_a_time) {
    const auto script = std::make_shared<unit::Script>();
    const Design design = Design::load(unit::scripted_device(script), design_path("small"));
    const Operands given = operands(20, 40, 60);
    Job job(design, sizes_of(given)), beside = job.beside({"C"}), apart(design, sizes_of(given));
    Batch batch = Batch::of(design, {apart, beside});
    std::vector<std::int32_t> c(20 * 60);
    const std::function<void()> calls[] = {
        [&] { beside.run(); }, [&] { beside.run_async(); }, [&] { beside.place("A", {given.a.data(), given.a.size()}); },
        [&] { beside.fetch("C", {c.data(), c.size() * 4}); }, [&] { batch.run(); },
    };
    job.run_async();
    for (const auto& call : calls) {
        const std::string told = message_of<StateError>(call);
        check_contains(told, &call - calls < 4 ? "shares memory with a job that is running" : "is running; wait for it before the batch");
    }
    job.wait();
    for (const auto& call : calls)
        if (&call - calls != 1) call();
    batch.run_async();
    check_contains(message_of<StateError>([&] { job.run(); }), "shares memory with a job that is running");
    batch.wait();
    script->behaviour = unit::Behaviour::fails;
    job.run_async();
    check_contains(message_of<RunError>([&] { job.wait(); }), "ERROR");
    script->behaviour = unit::Behaviour::hangs;
    check_contains(message_of<TimeoutError>([&] { beside.run(std::chrono::milliseconds{1}); }), "no result");
    check_contains(message_of<StateError>([&] { job.run(); }), "shares memory with a job that is running");
}

UNIT_CASE("job", what_is_written_in_lines_is_shared_too) {
    const Design design = Design::load(unit::memory_device(), design_path("columns"));
    const Operands given = operands(20, 40, 60);
    Job job(design, sizes_of(given));
    const std::string name = job.state()->operand("A").direct ? "B" : "A";
    Job beside = job.beside({"C"});
    check_equal(job.state()->operand(name).direct.has_value(), false, name + " is copied");
    check_equal(beside.memory(name) == job.memory(name), true, name + " in common");
}

UNIT_CASE("job", what_is_written_in_lines_is_sent_to_where_arrays_are_placed) {
    constexpr std::size_t M = 24, K = 40, N = 72;  // beyond a whole tile of each
    for (const char* name : {"small", "columns", "blocks"}) {
        const Design design = Design::load(unit::memory_device(), design_path(name));
        for (const std::string operand : {"A", "B"}) {
            Job placed(design, {{"M", M}, {"K", K}, {"N", N}}), written(design, {{"M", M}, {"K", K}, {"N", N}});
            const sequence::Layout& layout = placed.state()->operand(operand).layout;
            std::vector<char> array(layout.extent(layout.line()));
            if (layout.element_bytes() == sizeof(float)) {
                std::vector<float> values(array.size() / sizeof(float));
                for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 127) - 63;
                std::memcpy(array.data(), values.data(), array.size());
            } else {
                for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<char>(i % 3) - 1;
            }
            written.memory(operand);
            for (Job* job : {&placed, &written}) {
                job->place(operand, {array.data(), array.size()});
                job->run();
            }
            const auto bytes = [&](const Job& job) {
                Buffer& buffer = job.state()->buffer(job.state()->operand(operand));
                const auto* const data = static_cast<const char*>(buffer.data());
                return std::vector<char>(data, data + buffer.bytes());
            };
            check_equal(bytes(written), bytes(placed), operand + " of " + name);
        }
    }
}

UNIT_CASE("job", what_block_floats_cannot_hold_is_named_by_its_tile) {
    const Design design = Design::load(unit::memory_device(), design_path("blocks"));
    constexpr std::size_t M = 24, K = 40;
    Job job(design, {{"M", M}, {"K", K}, {"N", 8}});
    for (const auto& [row, column] : {std::pair(0, 0), std::pair(9, 17), std::pair(23, 39), std::pair(7, 8)}) {
        std::vector<float> a(M * K, 1);
        job.place("A", {a.data(), a.size() * sizeof(float)});
        a[static_cast<std::size_t>(row) * K + static_cast<std::size_t>(column)] = -INFINITY;
        check_contains(message_of<WeightError>([&] { job.place("A", {a.data(), a.size() * sizeof(float)}); }),
                       "operand A: infinite or no number near position " + std::to_string(row / 8 * 8) + ", " +
                           std::to_string(column / 8 * 8) + "; block floats hold neither");
    }
}

UNIT_CASE("job", buffers_begin_as_zeros_whatever_was_in_their_memory) {
    const Design design = Design::load(unit::scripted_device(std::make_shared<unit::Script>()), design_path("small"));
    Operands given = operands(20, 40, 60);
    Job job(design, sizes_of(given));
    job.place("B", {given.weights.data(), given.weights.size()});
    given.c.assign(given.c.size(), 0);
    check_fetched(job, given, 60);  // C before a run
    job.run();
    check_fetched(job, given, 60);  // of an A that nobody gave
    Job of_resident(design, sizes_of(given), {{}, {Resident(design, "A", {{"M", 20}, {"K", 40}})}});
    of_resident.place("B", {given.weights.data(), given.weights.size()});
    of_resident.run();
    check_fetched(of_resident, given, 60);
    const Resident stays(design, "B", {{"K", 40}, {"N", 60}});
    Buffer& b = *stays.state()->buffer;
    const auto* const bytes = static_cast<const char*>(b.data());
    check_equal(std::vector<char>(bytes, bytes + b.bytes()), std::vector<char>(b.bytes()), "what stays");
}

UNIT_CASE("job", memory_of_the_callers_is_used_in_place_and_nothing_beside_it) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands given = operands(40, 64, 72);
    const auto a = unit::pages<char>(4096), c = unit::pages<char>(16384);
    Sizes sizes = sizes_of(given);
    sizes["lda"] = 80;
    sizes["ldc"] = 100;
    Job job(design, sizes, {{{"A", a.get()}, {"C", c.get()}}, {}});
    check_equal(job.memory("A") == a.get() && job.memory("C") == c.get(), true, "no copy");
    check_equal(job.stride("A") == 80 && job.stride("C") == 100, true, "strides");
    for (std::size_t i = 0; i < given.a.size(); ++i) a[i / 64 * 80 + i % 64] = static_cast<char>(given.a[i]);
    job.place("B", {given.weights.data(), given.weights.size()});
    job.run();
    check_fetched(job, given, 72);
    const auto* const held = reinterpret_cast<const std::int32_t*>(c.get());
    for (std::size_t i = 0; i < 40 * 100; ++i)
        if (i % 100 >= 72) check_equal(held[i], 0x07070707, "memory between rows");
    check_contains(message_of<ArgumentError>([&] { Job(design, sizes_of(given), {{{"B", a.get()}}, {}}); }),
                   "B cannot be the caller's memory: the array reads it in a form of its own");
    check_contains(message_of<ArgumentError>([&] { Job(design, sizes_of(given), {{{"D", a.get()}}, {}}); }),
                   "small has no operand D; there are A, B, C");
}

UNIT_CASE("job", calls_that_fit_no_operand_are_refused) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands given = operands(20, 40, 60);
    Job job(design, sizes_of(given));
    const auto refused = [&](const std::string& name, std::size_t bytes, std::size_t stride = 0) {
        return message_of<ArgumentError>([&] { job.place(name, {given.a.data(), bytes, stride}); });
    };
    check_contains(refused("A", 799), "A: an array of 799 bytes, but 20 x 40 elements of int8 take 800");
    check_contains(refused("A", 800, 39), "a stride of 39 is below the 40 elements of a line");
    check_contains(refused("A", 800, 41), "take 819");
    check_contains(refused("A", SIZE_MAX, SIZE_MAX / 2), "more than a process can address");
    check_contains(refused("C", 800), "C is an output");
    std::vector<std::int8_t> back(800);
    check_contains(message_of<ArgumentError>([&] { job.fetch("A", {back.data(), 800}); }), "operand A is an input; only outputs");
    check_contains(message_of<ArgumentError>([&] { job.fetch("C", {back.data(), 800}); }), "20 x 60 elements of int32 take 4800");
    check_contains(message_of<ArgumentError>([&] { job.run(std::chrono::milliseconds{0}); }), "would wait for ever");
    check_contains(message_of<ArgumentError>([&] { job.place("A", {nullptr, 800}); }), "no array was given");
    check_contains(message_of<ArgumentError>([&] { Job(design, {{"M", 1}, {"K", 1}}); }), "size N is missing");
    check_contains(message_of<ArgumentError>([&] { Job(design, {{"M", 1}, {"Q", 1}}); }), "has no size Q");
    check_contains(message_of<ArgumentError>([&] { Resident(design, "A", {{"K", 40}, {"N", 60}}); }),
                   "operand A depends on more sizes than were given");
    std::vector<std::int8_t> wrong(2400, 1);
    wrong[61] = 2;
    check_contains(message_of<WeightError>([&] { job.place("B", {wrong.data(), 2400}); }),
                   "operand B: the value at row 1, column 1 is 2, expected -1 to 1");
}

UNIT_CASE("job", every_operand_is_named) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const std::vector<OperandShape> shapes = Job(design, {{"M", 20}, {"K", 40}, {"N", 60}}).operands();
    check_equal(shapes.size(), 3U, "operands");
    check_equal(shapes[1].name + " " + shapes[1].type, "B int2", "B");
    check_equal(shapes[1].rows * 1000 + shapes[1].columns, 40060U, "shape of B");
    check_equal(shapes[2].output && !shapes[0].output, true, "outputs");
    check_equal(shapes[2].element_bytes, 4U, "bytes of an element of C");
}
