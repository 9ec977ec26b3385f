#include <algorithm>
#include <thread>

#include "devices.hpp"
#include "operands.hpp"
#include "state.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;
using std::chrono::milliseconds;

namespace {

Weights packed(const Design& design, const Operands& given) {
    return design.pack(given.weights.data(), given.K, given.N);
}

void check_c(const Operands& expected, const std::int32_t* c, std::size_t stride, unit::Where at = unit::here()) {
    const auto& [M, K, N, a, weights, sums] = expected;
    std::vector<std::int32_t> got;
    for (std::size_t row = 0; row < M; ++row, c += stride) got.insert(got.end(), c, c + N);
    check_equal(got, sums, "C of " + std::to_string(M) + " x " + std::to_string(K) + " x " + std::to_string(N), at);
}

void fill(Gemm& gemm, const Operands& given) {
    for (std::size_t i = 0; i < given.a.size(); ++i) gemm.a()[i / given.K * gemm.lda() + i % given.K] = given.a[i];
}

}  // namespace

UNIT_CASE("gemm", every_kind_of_edge_gives_the_exact_product) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    constexpr std::size_t sizes[][3] = {{64, 64, 128}, {1, 1, 1},    {16, 32, 32}, {17, 36, 33}, {100, 75, 90},
                                        {32, 100, 64}, {5, 200, 31}, {70, 4, 200}, {33, 40, 70}};
    for (const auto& [M, K, N] : sizes) {
        const Operands given = operands(M, K, N);
        Gemm gemm(design, M, packed(design, given));
        std::vector<std::int32_t> c(M * N, -1);
        gemm.run(given.a.data(), 0, c.data(), 0);
        check_c(given, c.data(), N);
    }
}

UNIT_CASE("gemm", memory_that_cannot_be_shared_is_refused) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands given = operands(40, 64, 72);
    const Weights weights = packed(design, given);
    const auto a = pages<std::int8_t>(40 * 80);
    const auto c = pages<std::int32_t>(40 * 80);
    const auto refused = [&](const GemmOptions& options, std::size_t M = 40) {
        return message_of<ArgumentError>([&] { Gemm(design, M, weights, options); });
    };
    for (const std::size_t beyond : {4, 64, 2048})
        check_contains(refused({{a.get() + beyond, 0}, {}}), "A is not aligned to 4096 bytes");
    check_contains(refused({{}, {c.get() + 1, 0}}), "C is not aligned to 4096 bytes");
    check_contains(refused({{a.get(), 66}, {}}),
                   "A cannot be the caller's memory: it is smaller than a tile, or its lines");
    check_contains(refused({{a.get(), 0}, {}}, 3), "A cannot be the caller's memory");
    check_contains(refused({{nullptr, 80}, {}}), "A has a stride but no memory");
    check_contains(refused({{}, {nullptr, 73}}), "C has a stride but no memory");
    Gemm(design, 40, weights, {{nullptr, 64}, {nullptr, 72}});  // which is no gap
    check_contains(refused({{a.get(), 60}, {}}), "lda = 60 is below K = 64; lines would overlap");
}

UNIT_CASE("gemm", sizes_that_no_design_takes_are_refused) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Weights weights = packed(design, operands(1, 8, 8));
    const auto refused = [&](std::size_t M) { return message_of<ArgumentError>([&] { Gemm(design, M, weights); }); };
    check_contains(refused(0), "M = 0 is outside 1 to 1048576");
    check_contains(refused(SIZE_MAX), "M = 9223372036854775807 is outside 1 to 1048576");
}

UNIT_CASE("gemm", streams_are_made_once_for_each_size) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    const Weights weights = packed(design, operands(1, 64, 64));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (std::size_t M = 16; M <= 64; M += 16) Gemm(design, M, weights).stream_words();
        });
    }
    for (auto& thread : threads) thread.join();
    check_equal(script->loads, 1U, "loads");
    check_equal(script->streams.size(), 4U, "streams on the device");
    for (const auto& words : script->streams) check_equal(words[3], words.size() * 4, "header's size");
}

UNIT_CASE("gemm", a_hang_is_reported_and_may_be_waited_for_again) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    const Operands given = operands(20, 40, 60);
    Gemm gemm(design, 20, packed(design, given));
    script->behaviour = Behaviour::hangs;
    const std::string fault = message_of<TimeoutError>([&] { gemm.run(milliseconds{5}); });
    check_contains(fault, "small 20x40x60 on NPU Strix Halo: no result after 5 ms");
    check_contains(message_of<StateError>([&] { gemm.run(); }), "is running; wait for it");
    check_contains(message_of<TimeoutError>([&] { gemm.wait(milliseconds{1}); }), "no result after 1 ms");
    script->behaviour = Behaviour::good;
    gemm.wait();
    fill(gemm, given);
    gemm.run();
    check_c(given, gemm.c(), gemm.ldc());
}

UNIT_CASE("gemm", waiting_at_the_wrong_moment_is_an_error) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    Gemm gemm(design, 20, packed(design, operands(1, 40, 60)));
    check_contains(message_of<StateError>([&] { gemm.wait(); }), "was not started; call run_async before wait");
    gemm.run_async();
    float out[20 * 60];
    check_contains(message_of<StateError>([&] { gemm.run_async(); }), "is running");
    check_contains(message_of<StateError>([&] { gemm.scaled(out, 0, {}); }), "is running");
    check_contains(message_of<ArgumentError>([&] { gemm.wait(milliseconds{0}); }), "would wait for ever");
    gemm.wait();
}

UNIT_CASE("gemm", scales_make_floats) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Operands given = operands(3, 20, 5);
    Gemm gemm(design, 3, packed(design, given));
    fill(gemm, given);
    gemm.run();
    const float rows[] = {0.5F, 2, -1}, columns[] = {1, 2, 4, 8, 16};
    std::vector<float> out(3 * 8, -1);
    gemm.scaled(out.data(), 8, {rows, columns, 0.25F});
    for (std::size_t i = 0; i < 15; ++i) {
        const float expected = static_cast<float>(given.c[i]) * rows[i / 5] * columns[i % 5] * 0.25F;
        check_equal(out[i / 5 * 8 + i % 5], expected, "element");  // powers of two: exact
    }
    check_equal(out[5], -1.0F, "memory between rows");
    gemm.scaled(out.data(), 0, {});
    check_equal(out[7], static_cast<float>(given.c[7]), "without scales");
    gemm.scaled(out.data(), 5, {rows, nullptr, 2});
    for (std::size_t i = 0; i < 15; ++i) check_equal(out[i], static_cast<float>(given.c[i]) * rows[i / 5] * 2, "of rows, in lines of 5");
    check_contains(message_of<ArgumentError>([&] { gemm.scaled(out.data(), 4, {}); }), "a stride of 4 is below the 5 elements");
    check_contains(message_of<ArgumentError>([&] { gemm.scaled(nullptr, 0, {}); }), "the floats' place is null");
    // the scales and the floats may touch
    std::vector<float> all{0.5F, 2, -1, 1, 2, 4, 8, 16};
    all.resize(8 + 8 + 5 + 5 + 3, 3);
    gemm.scaled(&all[3 + 5], 8, {all.data(), &all[3], 1});
    check_equal(all[8], static_cast<float>(given.c[0]) * 0.5F, "the first, behind its scales");
    std::fill_n(&all[3 + 8 + 8 + 5], 3, 3.0F);
    gemm.scaled(&all[3], 8, {&all[3 + 8 + 8 + 5], nullptr, 1});
    check_equal(all[3 + 8 + 8 + 4], static_cast<float>(given.c[14]) * 3, "the last, before its scales");
}

UNIT_CASE("gemm", scales_are_those_of_rows_whatever_cs_order) {
    const Design design = Design::load(unit::memory_device(), design_path("columns"));
    constexpr std::size_t M = 3, K = 20, N = 5;
    Gemm gemm(design, M, packed(design, operands(M, K, N)));
    auto* const c = const_cast<std::int32_t*>(gemm.c());
    for (std::size_t row = 0; row < M; ++row)
        for (std::size_t column = 0; column < N; ++column)
            c[column * gemm.ldc() + row] = static_cast<std::int32_t>(10 * row + column);
    const float rows[] = {1, 2, 4}, columns[] = {1, -1, 2, -2, 8};
    std::vector<float> out(M * N), expected(M * N);
    for (std::size_t i = 0; i < out.size(); ++i)
        expected[i] = static_cast<float>(10 * (i / N) + i % N) * rows[i / N] * columns[i % N] * 0.5F;
    gemm.scaled(out.data(), 0, {rows, columns, 0.5F});
    check_equal(out, expected, "floats, row by row");
}

UNIT_CASE("gemm", lines_of_block_floats_are_copied_block_by_block) {
    const Design design = Design::load(unit::memory_device(), design_path("blocks"));
    constexpr std::size_t M = 16, K = 32, N = 16, tile = 72;
    Gemm gemm(design, M, Weights(Resident(design, "B", {{"K", K}, {"N", N}})));
    for (const auto& [stride, tiles] : {std::pair(std::size_t{0}, K / 8), std::pair(K, K / 8), std::pair(K + 1, K / 8 + 1), std::pair(K + 8, K / 8 + 1)}) {
        std::vector<std::uint8_t> a(M / 8 * tiles * tile), found, expected;
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(i * 7 % 251);
        std::vector<std::uint8_t> c(M / 8 * N / 8 * tile);
        gemm.run(a.data(), stride, c.data(), 0);
        for (std::size_t line = 0; line < M / 8; ++line) {
            const auto from = a.begin() + static_cast<std::ptrdiff_t>(line * tiles * tile);
            expected.insert(expected.end(), from, from + K / 8 * tile);
            const auto* const held = static_cast<const std::uint8_t*>(gemm.a_memory()) + line * gemm.lda() / 8 * tile;
            found.insert(found.end(), held, held + K / 8 * tile);
        }
        check_equal(found, expected, "A in lines of " + std::to_string(stride));
        check_contains(message_of<ArgumentError>([&, stride = stride] { gemm.run(nullptr, stride, c.data(), 0); }), "A or C is null");
        check_contains(message_of<ArgumentError>([&, stride = stride] { gemm.run(a.data(), stride, nullptr, 0); }), "A or C is null");
    }
}

UNIT_CASE("gemm", block_floats_of_ragged_sizes_are_staged_tile_by_tile) {
    const Design design = Design::load(unit::memory_device(), design_path("blocks"));
    constexpr std::size_t M = 24, K = 40, N = 8, tile = 72;
    const auto tiles = [](const std::uint8_t* bytes, std::size_t count) {
        std::vector<std::string> found;
        for (std::size_t i = 0; i < count; ++i, bytes += tile)
            if (bytes[0] != 0) found.emplace_back(bytes, bytes + tile);
        std::sort(found.begin(), found.end());
        return found;
    };
    Gemm gemm(design, M, Weights(Resident(design, "B", {{"K", K}, {"N", N}})));
    std::vector<std::uint8_t> a(M / 8 * K / 8 * tile), c(M / 8 * N / 8 * tile, 7);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(1 + i / tile);
    gemm.run(a.data(), 0, c.data(), 0);
    const Job job = gemm.job();
    Buffer& buffer = *job.state()->memory[0]->buffer;
    check_equal(tiles(static_cast<const std::uint8_t*>(buffer.data()), buffer.bytes() / tile) == tiles(a.data(), a.size() / tile), true,
                "every tile of A once in its buffer");
    check_equal(c, std::vector<std::uint8_t>(c.size()), "C, of a device that writes nothing");
}

UNIT_CASE("gemm", a_manifest_whose_operands_have_other_sizes_is_refused) {
    const struct {
        const char *name, *told;
    } cases[] = {
        {"a_of_1_row", "operand A has 1 x 8 elements for 16 x 8"},
        {"c_of_1_row", "operand C has 1 x 24 elements for 16 x 24"},
        {"c_of_1_column", "operand C has 16 x 1 elements for 16 x 24"},
    };
    for (const auto& [name, told] : cases) {
        const Design design = Design::load(unit::memory_device(), unit::data_folder() + "/" + name + "/small.xclbin");
        const Weights weights = packed(design, operands(1, 8, 24));
        check_contains(message_of<ManifestError>([&] { Gemm(design, 16, weights); }), std::string(told) + "; build the design again");
    }
}

UNIT_CASE("gemm", batches_run_all_their_members) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    const Operands first = operands(20, 40, 60), second = operands(33, 64, 32);
    Gemm one(design, 20, packed(design, first)), two(design, 33, packed(design, second));
    fill(one, first);
    fill(two, second);
    Batch batch(design, {&one, &two});
    check_contains(message_of<StateError>([&] { batch.wait(); }), "was not started");
    batch.run_async();
    check_contains(message_of<StateError>([&] { one.run(); }), "runs in a batch");
    batch.wait();
    check_c(first, one.c(), one.ldc());
    check_c(second, two.c(), two.ldc());
    check_equal(script->batches.size(), 1U, "submissions");
    check_equal(batch.note(), "", "note");
    one.run();
}

namespace {

/// GEMMs of 1 x 32 x 32, each with another A.
struct Many {
    Many(const Design& design, std::size_t count) : weights(packed(design, operands(1, 32, 32))) {
        for (std::size_t i = 0; i < count; ++i) {
            gemms.emplace_back(design, 1, weights);
            std::fill_n(gemms.back().a(), 32, static_cast<std::int8_t>(i));
        }
        for (Gemm& gemm : gemms) members.push_back(&gemm);
    }

    /// C of each must be A's value times that of A = 1.
    void check() const {
        for (std::size_t i = 0; i < gemms.size(); ++i) {
            for (std::size_t j = 0; j < 32; ++j)
                check_equal(gemms[i].c()[j], static_cast<std::int32_t>(i) * gemms[1].c()[j], "GEMM " + std::to_string(i));
        }
    }

    Weights weights;
    std::vector<Gemm> gemms;
    std::vector<Gemm*> members;
};

}  // namespace

UNIT_CASE("gemm", batches_are_submitted_24_at_a_time) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    Many many(design, 70);
    for (const std::size_t count : {1, 23, 24, 25, 48, 49, 70}) {
        script->batches.clear();
        Batch batch(design, {many.members.begin(), many.members.begin() + static_cast<std::ptrdiff_t>(count)});
        std::string found, expected;
        for (const std::size_t commands : script->batches) found += std::to_string(commands) + " ";
        for (std::size_t left = count; left > 0; left -= std::min<std::size_t>(left, 24))
            expected += std::to_string(std::min<std::size_t>(left, 24)) + " ";
        check_equal(found, expected, "commands of each submission of " + std::to_string(count));
        if (count < 70) continue;
        for (int run = 0; run < 2; ++run) batch.run();
        many.check();
        check_equal(batch.note(), "", "note");
    }
}

UNIT_CASE("gemm", commands_of_a_chain_that_fails_run_one_by_one) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    Many many(design, 40);
    Batch batch(design, many.members);
    script->failing_batches = 1;
    batch.run();
    many.check();
    check_equal(batch.note(), "commands 1 to 24 of 40 ran one by one, since their chain failed: the chain was lost",
                "note");
    script->failing_batches = 2;
    batch.run();
    check_contains(batch.note(), "; commands 25 to 40 of 40 ran one by one");
    batch.run();
    many.check();
    check_equal(batch.note(), "", "note");
}

UNIT_CASE("gemm", a_single_run_after_a_lost_chain_may_time_out_and_be_awaited_again) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    Many many(design, 3);
    Batch batch(design, many.members);
    script->failing_batches = 1;
    script->hanging_waits = 1;
    check_contains(message_of<TimeoutError>([&] { batch.run(milliseconds{1}); }), "the batch of 3: no result after 1 ms");
    batch.wait();
    many.check();
    check_equal(script->starts, 1U + 3 + 3, "the chain with its commands, then each of them once");
}

UNIT_CASE("gemm", a_single_run_that_fails_is_named) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    Many many(design, 3);
    Batch batch(design, many.members);
    script->failing_batches = 1;
    script->behaviour = Behaviour::fails;
    const std::string message = message_of<RunError>([&] { batch.run(); });
    check_contains(message, "command 1 of 3: the device ended the run with ERROR (commands 1 to 3 of 3 ran one by one");
}

UNIT_CASE("gemm", batches_of_wrong_members_are_refused) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Design other = Design::load(unit::emulated_device(), design_path("small"));
    const Weights weights = packed(design, operands(1, 40, 60));
    Gemm gemm(design, 20, weights);
    check_contains(message_of<ArgumentError>([&] { Batch(design, std::vector<Gemm*>{}); }), "at least one");
    check_contains(message_of<ArgumentError>([&] { Batch(design, {&gemm, &gemm}); }), "stands twice");
    check_contains(message_of<ArgumentError>([&] { Batch(other, {&gemm}); }), "small is not loaded on the array of small; load designs of one");
    check_contains(message_of<ArgumentError>([&] { Gemm(other, 20, weights); }), "packed for another design");
    Batch batch(design, {&gemm}), again(design, {&gemm});
    const auto refused = [&] { check_contains(message_of<StateError>([&] { batch.run(); }), "is running; wait for it before the batch"); };
    gemm.run_async();
    refused();
    gemm.wait();
    again.run_async();
    refused();
    again.wait();
    batch.run();
}

UNIT_CASE("gemm", a_batch_that_hangs_can_be_dropped) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    Gemm gemm(design, 20, packed(design, operands(1, 40, 60)));
    {
        Batch batch(design, {&gemm});
        script->behaviour = Behaviour::hangs;
        check_contains(message_of<TimeoutError>([&] { batch.run(milliseconds{1}); }),
                       "the batch of 1: no result after 1 ms");
    }
    check_contains(message_of<StateError>([&] { gemm.run(); }), "runs in a batch");
}

UNIT_CASE("gemm", a_batch_that_failed_can_be_dropped_and_followed) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), design_path("small"));
    const Operands given = operands(20, 40, 60);
    Gemm gemm(design, 20, packed(design, given));
    script->behaviour = Behaviour::fails;
    check_contains(message_of<RunError>([&] { Batch(design, {&gemm}).run(); }), "the device ended the run with ERROR");
    script->behaviour = Behaviour::good;
    fill(gemm, given);
    gemm.run();
    check_c(given, gemm.c(), gemm.ldc());
}

UNIT_CASE("gemm", an_elf_runs_the_problems_it_was_built_with) {
    const auto script = std::make_shared<Script>();
    const Design design = Design::load(scripted_device(script), unit::data_folder() + "/small/small.elf");
    const Weights weights = packed(design, operands(1, 40, 70));
    Gemm gemm(design, 33, weights);
    gemm.run();
    check_equal(script->sequences.at(0), "gemm_33x40x70", "sequence");
    check_equal(gemm.stream_words(), 0U, "words of ours");
    check_contains(message_of<ArgumentError>([&] { Gemm(design, 34, weights); }),
                   "its ELF holds no sequence for 34x40x70");
}
