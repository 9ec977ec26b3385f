#include <algorithm>
#include <cstring>

#include "devices.hpp"
#include "extent.hpp"
#include "operands.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t page = 4096;

std::string refused(const std::function<void()>& act) { return message_of<ArgumentError>(act); }

const std::size_t wrapping[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 255, std::size_t{1} << 63, std::size_t{1} << 56};

}  // namespace

UNIT_CASE("memory", products_never_wrap) {
    check_equal(bytes_of("x", 3, 5, 7), 22U, "3 * 5 + 7");
    check_equal(bytes_of("x", 0, SIZE_MAX), 0U, "nothing");
    check_equal(bytes_of("x", std::size_t{1} << 40, 128), extent_limit, "the limit");
    check_contains(refused([] { bytes_of("x", std::size_t{1} << 40, 128, 1); }), "more than a process can address");
    for (const std::size_t size : wrapping) {
        check_contains(refused([&] { bytes_of("x", size, 2); }), "x: " + std::to_string(size) + " times 2 bytes");
        check_contains(refused([&] { bytes_of("x", 2, size); }), "x: 2 times " + std::to_string(size) + " bytes");
        check_contains(refused([&] { bytes_of("x", 1, 1, size); }), "x: 1 times 1 bytes are more");
    }
}

UNIT_CASE("memory", overlaps_are_found_to_the_byte) {
    char memory[16];
    const auto both = [&](std::size_t at, std::size_t bytes) {
        const Extent middle{"one", memory + 4, 4}, other{"other", memory + at, bytes};
        check_equal(overlap(middle, other), overlap(other, middle), "order");
        return overlap(middle, other);
    };
    for (std::size_t at = 0; at < 12; ++at) {
        for (std::size_t bytes = 0; bytes < 5; ++bytes) {
            bool shared = false;
            for (std::size_t byte = at; byte < at + bytes; ++byte) shared |= byte >= 4 && byte < 8;
            check_equal(both(at, bytes), shared, std::to_string(at) + " + " + std::to_string(bytes));
        }
    }
    check_equal(overlap({"one", nullptr, 9}, {"other", nullptr, 9}), false, "no memory");
}

UNIT_CASE("memory", strides_that_wrap_are_refused_wherever_one_is_taken) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands given = operands(40, 64, 72);
    const Weights weights = design.pack(given.weights.data(), 64, 72);
    Gemm gemm(design, 40, weights);
    const auto a = pages<char>(page), c = pages<char>(4 * page);
    std::vector<float> out(40 * 72);
    std::vector<std::int32_t> sums(40 * 72);
    for (const std::size_t stride : wrapping) {
        const auto beyond = [&](const std::function<void()>& act) {
            check_contains(refused(act), "more than a process can address, 2^47");
        };
        beyond([&] { design.pack(given.weights.data(), 64, 72, stride); });
        beyond([&] { Gemm(design, 40, weights, {{a.get(), stride}, {}}); });
        beyond([&] { Gemm(design, 40, weights, {{}, {c.get(), stride}}); });
        beyond([&] { gemm.run(given.a.data(), stride, sums.data(), 0); });
        beyond([&] { gemm.run(given.a.data(), 0, sums.data(), stride); });
        beyond([&] { gemm.scaled(out.data(), stride, {}); });
    }
}

UNIT_CASE("memory", c_may_not_lie_over_a) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands given = operands(64, 64, 64);  // A one page, C four
    const Weights weights = design.pack(given.weights.data(), 64, 64);
    const auto memory = pages<char>(6 * page);
    const auto made = [&](std::size_t a_page, std::size_t c_page) {
        Gemm(design, 64, weights, {{memory.get() + a_page * page, 0}, {memory.get() + c_page * page, 0}});
    };
    for (std::size_t a_page = 1; a_page < 5; ++a_page)
        check_contains(refused([&] { made(a_page, 1); }),
                       "A (4096 bytes) and C (16384 bytes) overlap in memory; give each");
    made(0, 1);
    made(5, 1);
}

UNIT_CASE("memory", copies_may_not_overlap_the_gemms_own) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands given = operands(20, 40, 60);
    Gemm gemm(design, 20, design.pack(given.weights.data(), 40, 60));
    std::vector<std::int32_t> c(20 * 60);
    auto* own_c = const_cast<std::int32_t*>(gemm.c());
    check_contains(refused([&] { gemm.run(gemm.a() + 8, 0, c.data(), 0); }), "and the Gemm's A");
    check_contains(refused([&] { gemm.run(given.a.data(), 0, own_c, 0); }), "and the Gemm's C");
    auto* floats = reinterpret_cast<float*>(own_c);
    check_contains(refused([&] { gemm.scaled(floats, 0, {}); }), "the floats (4800 bytes) and C");
    std::vector<float> out(20 * 60);
    check_contains(refused([&] { gemm.scaled(out.data(), 0, {out.data() + 7, nullptr, 1}); }), "overlap in memory");
    check_contains(refused([&] { gemm.scaled(out.data(), 0, {nullptr, out.data() + 1199, 1}); }), "overlap in memory");
}

namespace {

/// A GEMM that writes C over the memory from which another one reads A, and what both must make in turn.
struct Chained {
    explicit Chained(const Design& design)
        : memory(pages<char>(4 * page)), before(operands(64, 64, 64)), behind(before),
          weights(design.pack(before.weights.data(), 64, 64)), reads(design, 64, weights, {{memory.get() + page, 0}, {}}),
          writes(design, 64, weights, {{}, {memory.get(), 0}}) {
        std::memcpy(behind.a.data(), reinterpret_cast<const char*>(before.c.data()) + page, behind.a.size());
        multiply(behind);
    }

    void place() {
        for (Gemm* gemm : {&reads, &writes}) gemm->job().place("A", {before.a.data(), before.a.size()});
    }
    /// C of the one that reads, and of the other.
    void check(const Operands& read) const {
        check_equal(std::vector<std::int32_t>(reads.c(), reads.c() + 64 * 64), read.c, "C of what was read");
        check_equal(std::vector<std::int32_t>(writes.c(), writes.c() + 64 * 64), before.c, "C that is read");
    }

    Pages<char> memory;
    Operands before, behind;
    Weights weights;
    Gemm reads, writes;
};

}  // namespace

UNIT_CASE("memory", jobs_of_a_batch_read_what_those_before_them_wrote_and_nothing_of_those_behind) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    Chained chain(design);
    std::vector<Job> apart;
    for (int i = 0; i < 23; ++i) apart.emplace_back(design, Sizes{{"M", 1}, {"K", 32}, {"N", 32}});
    for (const bool far : {false, true}) {  // the second one in the next submission
        std::vector<Job> jobs{chain.writes.job(), chain.reads.job()};
        if (far) jobs.insert(jobs.begin() + 1, apart.begin(), apart.end());
        chain.place();
        Batch::of(design, jobs).run();
        chain.check(chain.behind);
        std::reverse(jobs.begin(), jobs.end());
        chain.place();
        Batch::of(design, jobs).run();
        chain.check(chain.before);
    }
}

UNIT_CASE("memory", what_overwrote_its_input_is_not_run_again) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(unit::scripted_device(script), design_path("small"));
    Chained chain(design);
    Batch forth(design, {&chain.writes, &chain.reads}), back(design, {&chain.reads, &chain.writes});
    script->failing_batches = 2;
    chain.place();
    forth.run();
    chain.check(chain.behind);
    check_contains(forth.note(), "commands 1 to 2 of 2 ran one by one");
    chain.place();
    check_equal(message_of<RunError>([&] { back.run(); }),
                "one of commands 1 to 2 of 2 failed, and those behind it did not run; they overwrite what they read, so "
                "place that again before the next run: the chain was lost",
                "a batch that cannot be run again");
    chain.place();
    back.run();
    chain.check(chain.before);
}

UNIT_CASE("memory", a_time_out_of_0_starts_nothing) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(unit::scripted_device(script), design_path("small"));
    const Operands given = operands(20, 40, 60);
    Gemm gemm(design, 20, design.pack(given.weights.data(), 40, 60));
    Batch batch(design, {&gemm});
    std::vector<std::int32_t> c(20 * 60);
    gemm.a()[0] = 99;
    for (const milliseconds none : {milliseconds{0}, milliseconds{-1}}) {
        check_contains(refused([&] { gemm.run(none); }), "would wait for ever");
        check_contains(refused([&] { gemm.run(given.a.data(), 0, c.data(), 0, none); }), "would wait for ever");
        check_contains(refused([&] { batch.run(none); }), "would wait for ever");
    }
    check_equal(script->starts, 0U, "starts");
    check_equal(static_cast<int>(gemm.a()[0]), 99, "A");
    gemm.run();
    batch.run();
    check_equal(script->starts, 3U, "the Gemm, then the batch and the Gemm in it");
}
