#include "generator.hpp"

#include "bdforge/error.hpp"
#include "bdforge/sequence_cache.hpp"

namespace bdforge {
namespace {

constexpr std::int64_t word_max = 0xFFFFFFFF;

std::uint32_t word(const JsonView& view) { return static_cast<std::uint32_t>(view.integer(0, word_max)); }

std::uint32_t word(const JsonView& view, const char* key) { return word(view.at(key)); }

template <std::size_t count>
std::array<std::uint32_t, count> words(const JsonView& view) {
    const std::vector<JsonView> elements = view.elements();
    if (elements.size() != count) view.refuse("a list of " + std::to_string(count) + " numbers");
    std::array<std::uint32_t, count> values{};
    for (std::size_t i = 0; i < count; ++i) values[i] = word(elements[i]);
    return values;
}

generator::Operands operands(const JsonView& view) { return {word(view, "a"), word(view, "b"), word(view, "c")}; }

generator::BdFields bd_fields(const JsonView& view) {
    const auto field = [&](const char* name) {
        const auto [index, low] = words<2>(view.at(name));
        if (index >= 8 || low >= 32) view.at(name).refuse("a word below 8 and a bit below 32");
        return generator::Field{index, low};
    };
    return {field("length"),  field("d0_wrap"),        field("d0_step"),        field("d1_wrap"), field("d1_step"),
            field("d2_step"), field("iteration_wrap"), field("iteration_step"), field("next"),    field("use_next")};
}

generator::Shim shim(const JsonView& view) {
    const JsonView queue = view.at("queue_fields"), token = view.at("token");
    for (const auto& [name, low] : queue.members()) low.integer(0, 31);
    view.at("bds").integer(1, 64);
    view.at("patched_word").integer(0, 6);
    return {word(view, "bds"),
            words<2>(view.at("wraps")),
            word(view, "step_max"),
            word(view, "iteration_max"),
            static_cast<std::uint32_t>(view.at("repeat_max").integer(1, word_max)),
            static_cast<std::uint32_t>(view.at("tasks_in_flight").integer(1, 64)),
            word(view, "bd_address"),
            word(view, "bd_stride_bytes"),
            words<8>(view.at("bd_constant")),
            bd_fields(view.at("bd_fields")),
            word(view, "patched_word"),
            operands(view.at("queue_addresses")),
            {word(queue, "token"), word(queue, "repeat"), word(queue, "bd")},
            {word(token, "direction"), word(token, "channel")}};
}

std::vector<std::uint32_t> a_columns(const Manifest& manifest, const JsonView& view) {
    std::vector<std::uint32_t> columns;
    for (const JsonView& column : view.elements()) {
        columns.push_back(static_cast<std::uint32_t>(column.integer(0, manifest.columns - 1)));
    }
    if (columns.size() != static_cast<std::size_t>(manifest.rows)) view.refuse("a column for each row of cores");
    return columns;
}

std::vector<generator::Core> cores(const JsonView& view) {
    std::vector<generator::Core> all;
    for (const JsonView& core : view.elements()) {
        all.push_back({word(core, "k_steps"), word(core, "output_tiles"), word(core, "go")});
    }
    return all;
}

generator::Design design(const Manifest& manifest) {
    const JsonView runtime = manifest.view().at("runtime");
    const TileSizes& tile = manifest.tile;
    const auto element_bits = operands(runtime.at("element_bits"));
    return {{tile.m, tile.k, tile.n, tile.k_mt},
            {static_cast<std::uint32_t>(manifest.rows), static_cast<std::uint32_t>(manifest.columns)},
            words<2>(runtime.at("header")),
            element_bits,
            runtime.at("largest_size").integer(1, word_max),
            runtime.at("depth_limit").integer(1, word_max),
            operands(runtime.at("arguments")),
            a_columns(manifest, runtime.at("a_columns")),
            cores(runtime.at("cores")),
            word(runtime, "column_stride"),
            shim(runtime.at("shim"))};
}

generator::Problem problem(const Sizes& sizes) {
    const auto size = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    return {size(sizes.M), size(sizes.K), size(sizes.N), size(sizes.lda), size(sizes.ldc)};
}

StagedShape shape(const char* name, const std::optional<generator::Buffer>& buffer) {
    if (!buffer) return {};
    const auto rows = static_cast<std::size_t>(buffer->rows), columns = static_cast<std::size_t>(buffer->columns);
    return {rows, columns,
            std::string(name) +
                " is smaller than a tile, or its rows do not start at 4-byte words within a BD's reach, so "
                "that the array walks a copy of " +
                std::to_string(rows) + " x " + std::to_string(columns)};
}

}  // namespace

class Generator::Cache {
public:
    explicit Cache(const Manifest& manifest) : streams(design(manifest)) {}
    generator::SequenceCache streams;
};

Generator::Generator(const Manifest& manifest) : design_(manifest.design), cache_(std::make_unique<Cache>(manifest)) {}

Generator::~Generator() = default;

Generated Generator::staged(const Sizes& sizes) const {
    try {
        const generator::Staging staging = generator::staging(cache_->streams.design(), problem(sizes));
        return {nullptr, shape("A", staging.a), shape("C", staging.c)};
    } catch (const generator::SequenceError& error) {
        throw ArgumentError(design_ + " cannot compute " + error.what() + "; split the problem");
    }
}

Generated Generator::get(const Sizes& sizes) const {
    Generated made = staged(sizes);
    try {
        made.words = cache_->streams.get(problem(sizes));
    } catch (const generator::SequenceError& error) {
        throw ArgumentError(design_ + " cannot compute " + error.what() + "; split the problem");
    }
    return made;
}

}  // namespace bdforge
