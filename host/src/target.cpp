#include "target.hpp"

#include <string>

namespace bdforge {
namespace {

constexpr std::int64_t word_max = 0xFFFFFFFF;
constexpr std::int64_t columns_max = 64, channels_max = 16;  // far above any NPU

std::uint32_t word(const JsonView& view, std::int64_t lowest = 0, std::int64_t highest = word_max) {
    return static_cast<std::uint32_t>(view.integer(lowest, highest));
}

template <std::size_t count>
std::array<std::uint32_t, count> words(const JsonView& view, std::int64_t lowest = 0) {
    const std::vector<JsonView> elements = view.elements();
    if (elements.size() != count) view.refuse("a list of " + std::to_string(count) + " numbers");
    std::array<std::uint32_t, count> values{};
    for (std::size_t i = 0; i < count; ++i) values[i] = word(elements[i], lowest);
    return values;
}

generator::BdFields bd_fields(const JsonView& view) {
    const auto field = [&](const char* name) {
        const auto [index, low] = words<2>(view.at(name));
        if (index >= 8 || low >= 32) view.at(name).refuse("a word below 8 and a bit below 32");
        return generator::Field{index, low};
    };
    return {field("length"),  field("d0_wrap"),        field("d0_step"),        field("d1_wrap"), field("d1_step"),
            field("d2_step"), field("iteration_wrap"), field("iteration_step"), field("next"),    field("use_next")};
}

/// A register of each channel, by direction.
std::array<std::vector<std::uint32_t>, 2> registers(const JsonView& view) {
    std::array<std::vector<std::uint32_t>, 2> found;
    constexpr const char* directions[] = {"S2MM", "MM2S"};
    for (std::size_t i = 0; i < found.size(); ++i) {
        const JsonView channels = view.at(directions[i]);
        for (const JsonView& channel : channels.elements()) found[i].push_back(word(channel));
        if (found[i].empty() || found[i].size() > channels_max)
            channels.refuse("1 to " + std::to_string(channels_max) + " channels");
    }
    return found;
}

}  // namespace

generator::Target read_target(const JsonView& target) {
    const JsonView queue = target.at("queue_fields");
    const auto number = [&](const char* name) { return word(target.at(name)); };
    const auto size = [&](const char* name) { return word(target.at(name), 1); };
    return {words<2>(target.at("header")),
            word(target.at("columns"), 1, columns_max),
            size("column_stride"),
            word(target.at("bds"), 1, 64),
            words<2>(target.at("wraps"), 1),
            size("step_max"),
            size("iteration_max"),
            size("length_max"),
            size("repeat_max"),
            size("queue_entries"),
            number("bd_address"),
            size("bd_stride_bytes"),
            words<8>(target.at("bd_constant")),
            bd_fields(target.at("bd_fields")),
            word(target.at("patched_word"), 0, 6),
            registers(target.at("queues")),
            {word(queue.at("token"), 0, 31), word(queue.at("repeat"), 0, 31), word(queue.at("bd"), 0, 31)},
            registers(target.at("controls")),
            number("control_value"),
            number("control_mask")};
}

}  // namespace bdforge
