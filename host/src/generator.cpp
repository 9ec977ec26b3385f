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

generator::Arguments arguments(const JsonView& view) {
    return {word(view, "a"), word(view, "b"), word(view, "c"), word(view, "r"), word(view, "s")};
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

/// Columns of one wait: they must divide the design's, or a wait would be for a column that sends no token.
std::uint32_t wait_columns(const JsonView& view, std::int64_t columns) {
    const std::int64_t width = view.integer(1, columns);
    if (columns % width != 0) view.refuse("a divisor of " + std::to_string(columns) + ", the design's columns");
    return static_cast<std::uint32_t>(width);
}

generator::Shim shim(const JsonView& view, std::int64_t columns) {
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
            {word(token, "direction"), word(token, "channel"),
             wait_columns(token.at("columns"), columns), word(token, "control_address"),
             word(token, "control_value"), word(token, "control_mask")}};
}

/// Makes sequences wait as `options` say; docs/sequences.md tells why a wide wait is for one step.
void apply(const SequenceOptions& options, std::size_t queue_entries, std::uint32_t columns, generator::Shim& shim) {
    if (options.wait.empty()) return;
    const bool wide = options.wait == "wide";
    if (!wide && options.wait != "column")
        throw ArgumentError("sequence.wait = '" + options.wait + "' is unknown; choose column or wide");
    const std::size_t most = wide ? 1 : queue_entries;
    if (options.in_flight > most) {
        throw ArgumentError("sequence.in_flight = " + std::to_string(options.in_flight) + " is outside 0 to " +
                            std::to_string(most) + ", the steps that sequence.wait = " + options.wait +
                            " allows at a time; 0 takes the most");
    }
    shim.tasks_in_flight = static_cast<std::uint32_t>(options.in_flight == 0 ? most : options.in_flight);
    shim.token.columns = wide ? columns : 1;
}

std::vector<generator::Feed> a_feeds(const Manifest& manifest, const JsonView& view) {
    std::vector<generator::Feed> feeds;
    const std::int64_t panel = manifest.rows * manifest.tile.m;
    for (const JsonView& feed : view.elements()) {
        feeds.push_back({static_cast<std::uint32_t>(feed.at("column").integer(0, manifest.columns - 1)),
                         static_cast<std::uint32_t>(feed.at("row").integer(0, manifest.rows - 1)),
                         feed.at("offset").integer(0, manifest.tile.m - 1), feed.at("rows").integer(1, panel)});
    }
    if (feeds.empty()) view.refuse("at least one shim that reads A");
    return feeds;
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
    const JsonView granules = runtime.at("granules"), fed = runtime.at("fed_bytes");
    const auto columns = static_cast<std::uint32_t>(manifest.columns);
    generator::Shim shims = shim(runtime.at("shim"), manifest.columns);
    apply(manifest.sequence, word(runtime.at("shim"), "queue_entries"), columns, shims);
    const auto granule = [&](const char* name) { return granules.at(name).integer(1, tile.k_mt * tile.m * tile.n); };
    return {{tile.m, tile.k, tile.n, tile.k_mt},
            {static_cast<std::uint32_t>(manifest.rows), columns},
            words<2>(runtime.at("header")),
            {manifest.operands[0].storage, manifest.operands[1].storage, manifest.operands[2].storage},
            runtime.at("largest_size").integer(1, word_max),
            runtime.at("depth_limit").integer(1, word_max),
            arguments(runtime.at("arguments")),
            {fed.at("panel").integer(0, word_max), fed.at("tile").integer(0, word_max)},
            a_feeds(manifest, runtime.at("a_feeds")),
            runtime.at("least_rows").integer(1, word_max),
            {granule("m"), granule("k"), granule("n")},
            cores(runtime.at("cores")),
            word(runtime, "column_stride"),
            shims};
}

generator::Problem problem(const Sizes& sizes) {
    const auto size = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    return {size(sizes.M), size(sizes.K), size(sizes.N), size(sizes.lda), 0, size(sizes.ldc)};
}

StagedShape shape(const char* name, const generator::Storage& storage, const std::optional<generator::Buffer>& buffer,
                  const std::string& more = "") {
    if (!buffer) return {};
    const auto rows = static_cast<std::size_t>(buffer->rows), columns = static_cast<std::size_t>(buffer->columns);
    const std::string lines = storage.order == generator::column_major ? "columns" : "rows";
    return {rows, columns,
            std::string(name) +
                " is smaller than a tile, or its " + lines + " do not start at 4-byte words within a BD's reach" +
                more + ", so that the array walks a copy of " +
                std::to_string(rows) + " x " + std::to_string(columns)};
}

/// Calls `act` with an element of `bits`.
template <class Act>
void by_width(std::uint32_t bits, Act act) {
    if (bits == 8) return act(std::uint8_t{});
    if (bits == 16) return act(std::uint16_t{});
    act(std::uint32_t{});
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
        const generator::Design& design = cache_->streams.design();
        const generator::Staging staging = generator::staging(design, problem(sizes));
        const std::string slabs = staging.a_in_slabs ? ", or K is no whole number of slabs" : "";
        return {nullptr, shape("A", design.operands.a, staging.a, slabs), shape("C", design.operands.c, staging.c),
                staging.a_in_slabs};
    } catch (const generator::SequenceError& error) {
        throw ArgumentError(design_ + " cannot compute " + error.what() + "; split the problem");
    }
}

void Generator::stage_a(const Sizes& sizes, const void* a, void* buffer) const {
    const generator::Design& design = cache_->streams.design();
    const generator::Staging staging = generator::staging(design, problem(sizes));
    by_width(design.operands.a.bits, [&](auto element) {
        using Element = decltype(element);
        generator::stage_a(design, staging, problem(sizes), static_cast<const Element*>(a),
                           static_cast<Element*>(buffer));
    });
}

std::size_t Generator::b_bytes(std::size_t K, std::size_t N) const {
    return static_cast<std::size_t>(generator::b_bytes(cache_->streams.design(), problem({1, K, N, 0, 0})));
}

void Generator::copy_b(std::size_t K, std::size_t N, const void* b, std::size_t stride, void* out) const {
    const generator::Design& design = cache_->streams.design();
    generator::Problem given = problem({1, K, N, 0, 0});
    const generator::Walked sizes = generator::walked(design, given);
    generator::Staging staging;
    staging.b = generator::Buffer{sizes.K, sizes.N};
    given.ldb = static_cast<std::int64_t>(stride);
    by_width(design.operands.b.bits, [&](auto element) {
        using Element = decltype(element);
        generator::stage_b(design, staging, given, static_cast<const Element*>(b), static_cast<Element*>(out));
    });
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
