#include "facts.hpp"

#include "bdforge/error.hpp"

namespace bdforge::software {
namespace {

constexpr std::int64_t word_max = 0xFFFFFFFF;

std::uint32_t word(const JsonView& view, const std::string& key, std::int64_t lowest = 0) {
    return static_cast<std::uint32_t>(view.at(key).integer(lowest, word_max));
}

std::array<std::uint32_t, operand_count> by_operand(const JsonView& view) {
    return {word(view, "a"), word(view, "b"), word(view, "c")};
}

/// `places` holds [word, lowest bit] of each field.
Field bd_field(const JsonView& places, const char* name, std::int64_t largest) {
    const std::vector<JsonView> place = places.at(name).elements();
    if (place.size() != 2) places.at(name).refuse("a word and a bit");
    return {static_cast<std::size_t>(place[0].integer(0, 7)), static_cast<unsigned>(place[1].integer(0, 31)),
            static_cast<std::uint32_t>(largest)};
}

Field queue_field(const JsonView& lows, const char* name, std::int64_t largest) {
    return {0, static_cast<unsigned>(lows.at(name).integer(0, 31)), static_cast<std::uint32_t>(largest)};
}

/// Fields hold sizes as they are, steps and counts minus 1, so a limit is a field's largest value or one more.
void read_fields(const JsonView& shim, Facts& facts) {
    const JsonView places = shim.at("bd_fields");
    const std::vector<JsonView> wraps = shim.at("wraps").elements();
    if (wraps.size() < 2) shim.at("wraps").refuse("two numbers");
    const std::int64_t step = shim.at("step_max").integer(1, word_max) - 1;
    const std::int64_t iterations = shim.at("iteration_max").integer(1, word_max) - 1;
    const std::int64_t bd = static_cast<std::int64_t>(facts.bds) - 1;
    facts.length = bd_field(places, "length", word_max);
    facts.d0_wrap = bd_field(places, "d0_wrap", wraps[0].integer(1, word_max));
    facts.d1_wrap = bd_field(places, "d1_wrap", wraps[1].integer(1, word_max));
    facts.d0_step = bd_field(places, "d0_step", step);
    facts.d1_step = bd_field(places, "d1_step", step);
    facts.d2_step = bd_field(places, "d2_step", step);
    facts.iteration_wrap = bd_field(places, "iteration_wrap", iterations);
    facts.iteration_step = bd_field(places, "iteration_step", step);
    facts.next = bd_field(places, "next", bd);
    facts.use_next = bd_field(places, "use_next", 1);
    const JsonView lows = shim.at("queue_fields");
    facts.queue_bd = queue_field(lows, "bd", bd);
    facts.queue_repeat = queue_field(lows, "repeat", shim.at("repeat_max").integer(1, word_max) - 1);
    facts.queue_token = queue_field(lows, "token", 1);
}

void read_shim(const JsonView& shim, Facts& facts) {
    facts.bds = word(shim, "bds", 1);
    facts.bd_address = word(shim, "bd_address");
    facts.bd_stride_bytes = word(shim, "bd_stride_bytes", 1);
    facts.patched_word = word(shim, "patched_word");
    facts.queues = by_operand(shim.at("queue_addresses"));
    facts.token_direction = word(shim.at("token"), "direction");
    facts.token_channel = word(shim.at("token"), "channel");
    read_fields(shim, facts);
}

void read_operands(const Manifest& manifest, Facts& facts) {
    const auto& [a, b, c] = manifest.operands;
    const bool known = a.type == "int8" && (b.type == "int2" || b.type == "int8") && c.type == "int32";
    if (!known || !manifest.plain_sums) {
        throw DeviceError(manifest.design + " computes " + a.type + " x " + b.type + " to " + c.type +
                          (manifest.plain_sums ? "" : " with an epilogue") +
                          "; the software device knows int8 x int8 and int8 x int2 to int32 only, "
                          "run it with bdforge run");
    }
    facts.storages = {a.storage, b.storage, c.storage};
    facts.ternary = b.type == "int2";
    const std::int64_t rows = manifest.rows * manifest.tile.m;
    for (const JsonView& feed : manifest.view().at("runtime").at("a_feeds").elements()) {
        const auto column = static_cast<std::uint32_t>(feed.at("column").integer(0, manifest.columns - 1));
        const auto row = static_cast<std::uint32_t>(feed.at("row").integer(0, manifest.rows - 1));
        const std::int64_t offset = feed.at("offset").integer(0, manifest.tile.m - 1);
        const std::int64_t most = rows - row * manifest.tile.m - offset;
        facts.a_feeds.push_back({column, row, offset, feed.at("rows").integer(1, most)});
    }
}

}  // namespace

Facts read_facts(const Manifest& manifest) {
    const JsonView runtime = manifest.view().at("runtime");
    const std::vector<JsonView> header = runtime.at("header").elements();
    if (header.size() != 2) runtime.at("header").refuse("two words");
    Facts facts{};
    facts.tile = manifest.tile;
    facts.rows = static_cast<std::size_t>(manifest.rows);
    facts.columns = static_cast<std::size_t>(manifest.columns);
    for (std::size_t i = 0; i < header.size(); ++i) {
        facts.header[i] = static_cast<std::uint32_t>(header[i].integer(0, word_max));
    }
    facts.arguments = by_operand(runtime.at("arguments"));
    read_operands(manifest, facts);
    for (const JsonView& core : runtime.at("cores").elements()) {
        facts.cores.push_back({word(core, "k_steps"), word(core, "output_tiles"), word(core, "go")});
    }
    facts.column_stride = word(runtime, "column_stride", 1);
    read_shim(runtime.at("shim"), facts);
    return facts;
}

}  // namespace bdforge::software
