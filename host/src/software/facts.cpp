#include "facts.hpp"

#include <algorithm>
#include <string>

#include "bdforge/error.hpp"

namespace bdforge::software {
namespace {

using generator::Operation;
using generator::Program;
using generator::Target;

/// Fields hold sizes as they are, steps and counts minus 1, so a limit is a field's largest value or one more.
void read_fields(const Target& target, Facts& facts) {
    const generator::BdFields& fields = target.bd_fields;
    const auto field = [](generator::Field place, std::uint32_t largest) {
        return Field{place.word, place.low, largest};
    };
    const std::uint32_t step = target.step_max - 1, bd = target.bds - 1;
    facts.length = field(fields.length, target.length_max);
    facts.d0_wrap = field(fields.d0_wrap, target.wraps[0]);
    facts.d1_wrap = field(fields.d1_wrap, target.wraps[1]);
    facts.d0_step = field(fields.d0_step, step);
    facts.d1_step = field(fields.d1_step, step);
    facts.d2_step = field(fields.d2_step, step);
    facts.iteration_wrap = field(fields.iteration_wrap, target.iteration_max - 1);
    facts.iteration_step = field(fields.iteration_step, step);
    facts.next = field(fields.next, bd);
    facts.use_next = field(fields.use_next, 1);
    facts.queue_bd = field({0, target.queue_fields.bd}, bd);
    facts.queue_repeat = field({0, target.queue_fields.repeat}, target.repeat_max - 1);
    facts.queue_token = field({0, target.queue_fields.token}, 1);
}

[[noreturn]] void unlike_gemm(const Manifest& manifest, const std::string& what) {
    throw DeviceError(manifest.design + "'s sequence program " + what +
                      "; the software device knows GEMMs only, run it with bdforge run");
}

/// The queue of the channel that moves an operand.
std::uint32_t queue(const Manifest& manifest, std::uint32_t argument) {
    const Program& program = manifest.streams.program;
    for (const generator::Task& task : program.tasks)
        if (program.bds[task.bds.first].argument == argument)
            return manifest.streams.target.queues[static_cast<std::size_t>(task.direction)][task.channel];
    unlike_gemm(manifest, std::string("has no task for ") + "ABC"[argument]);
}

/// The registers that the program writes: each core's two parameters and its lock.
std::vector<CoreAddresses> cores(const Manifest& manifest) {
    const Program& program = manifest.streams.program;
    std::vector<std::uint32_t> addresses;
    for (const generator::Write& write : program.writes) {
        const generator::Value& value = program.values[write.address];
        if (value.operation != Operation::constant) unlike_gemm(manifest, "computes addresses of registers");
        addresses.push_back(static_cast<std::uint32_t>(value.number));
    }
    if (addresses.empty() || addresses.size() % 3 != 0) unlike_gemm(manifest, "does not write three registers a core");
    std::vector<CoreAddresses> found;
    for (std::size_t i = 0; i < addresses.size(); i += 3)
        found.push_back({addresses[i], addresses[i + 1], addresses[i + 2]});
    return found;
}

void read_shim(const Manifest& manifest, Facts& facts) {
    const auto& [program, target, wide] = manifest.streams;
    facts.header = target.header;
    facts.column_stride = target.column_stride;
    facts.bds = target.bds;
    facts.bd_address = target.bd_address;
    facts.bd_stride_bytes = target.bd_stride_bytes;
    facts.patched_word = target.patched_word;
    for (std::uint32_t i = 0; i < operand_count; ++i) facts.queues[i] = queue(manifest, i);
    if (program.tokens.empty()) unlike_gemm(manifest, "awaits no token");
    facts.token_direction = static_cast<std::uint32_t>(program.tokens[0].direction);
    facts.token_channel = program.tokens[0].channel;
    read_fields(target, facts);
}

/// Core rows are spread over the columns; two shims share a core row's tile, or one feeds the core rows of a column.
std::vector<Feed> feeds(const Manifest& manifest, const Facts& facts) {
    const JsonView shims = manifest.view().at("spec").at("buffers").at("a_shims");
    const auto all_rows = static_cast<std::int64_t>(facts.rows), columns = static_cast<std::int64_t>(facts.columns);
    const std::int64_t parts = shims.integer(1, std::min(columns, facts.tile.m));
    std::vector<Feed> found;
    for (std::int64_t row = 0; row < all_rows; ++row) {
        const std::int64_t column = row * columns / all_rows, rows = facts.tile.m / parts;
        if (column + parts > columns) shims.refuse("as many as there are columns for each core row");
        if (parts == 1 && !found.empty() && found.back().column == column) {
            found.back().rows += rows;
            continue;
        }
        for (std::int64_t part = 0; part < parts; ++part)
            found.push_back({static_cast<std::uint32_t>(column + part), static_cast<std::uint32_t>(row), part * rows, rows});
    }
    return found;
}

TileSizes read_tile(const JsonView& tile) {
    const auto size = [&](const char* name) { return tile.at(name).integer(1, 1 << 20); };
    const TileSizes sizes{size("m"), size("k"), size("n"), size("k_mt"), size("r"), size("s"), size("t")};
    if (sizes.k_mt % sizes.k != 0) tile.at("k_mt").refuse("a multiple of k = " + std::to_string(sizes.k));
    if (sizes.k % sizes.s != 0) tile.at("k").refuse("a multiple of s = " + std::to_string(sizes.s));
    if (sizes.n % sizes.t != 0) tile.at("n").refuse("a multiple of t = " + std::to_string(sizes.t));
    return sizes;
}

/// Whether C is A B as it is.
bool plain(const JsonView& spec) {
    if (!spec.has("epilogue")) return true;
    const JsonView epilogue = spec.at("epilogue");
    for (const char* name : {"scale", "bias", "relu"})
        if (epilogue.at(name).boolean()) return false;
    return epilogue.at("shift").integer(0, 31) == 0;
}

void read_operands(const Manifest& manifest, Facts& facts) {
    const JsonView types = manifest.view().at("spec").at("types"), layouts = manifest.view().at("spec").at("layouts");
    const std::string a = types.at("a").text(), b = types.at("b").text(), c = types.at("c").text();
    const bool sums = plain(manifest.view().at("spec"));
    if (a != "int8" || (b != "int2" && b != "int8") || c != "int32" || !sums) {
        throw DeviceError(manifest.design + " computes " + a + " x " + b + " to " + c +
                          (sums ? "" : " with an epilogue") +
                          "; the software device knows int8 x int8 and int8 x int2 to int32 only, "
                          "run it with bdforge run");
    }
    constexpr const char* names[] = {"a", "b", "c"};
    for (std::size_t i = 0; i < facts.orders.size(); ++i) {
        const std::string order = layouts.at(names[i]).text();
        facts.orders[i] = order == "packed" ? Order::packed : order == "column" ? Order::column : Order::row;
    }
    facts.ternary = b == "int2";
    facts.a_feeds = feeds(manifest, facts);
}

}  // namespace

Facts read_facts(const Manifest& manifest) {
    Facts facts{};
    const auto size = [&](const char* name) {
        return static_cast<std::size_t>(manifest.view().at("array").at(name).integer(1, 64));
    };
    if (manifest.kind != "gemm") unlike_gemm(manifest, "is none of a gemm");
    facts.tile = read_tile(manifest.view().at("tile"));
    facts.rows = size("rows");
    facts.columns = size("columns");
    facts.arguments = {0, 1, 2};
    read_operands(manifest, facts);
    read_shim(manifest, facts);
    facts.cores = cores(manifest);
    return facts;
}

}  // namespace bdforge::software
