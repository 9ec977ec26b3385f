#include "generator.hpp"

#include <cstdint>

#include "bdforge/error.hpp"
#include "bdforge/sequence_cache.hpp"

namespace bdforge {
namespace {

/// Makes sequences wait as `options` say; docs/sequences.md tells why a wide wait is for one step.
void apply(const SequenceOptions& options, generator::Design& design) {
    if (options.wait.empty()) return;
    design.wide = options.wait == "wide";
    if (!design.wide && options.wait != "column")
        throw ArgumentError("sequence.wait = '" + options.wait + "' is unknown; choose column or wide");
    const std::size_t most = design.wide ? 1 : design.target.queue_entries;
    if (options.in_flight > most) {
        throw ArgumentError("sequence.in_flight = " + std::to_string(options.in_flight) + " is outside 0 to " +
                            std::to_string(most) + ", the steps that sequence.wait = " + options.wait +
                            " allows at a time; 0 takes the most");
    }
    design.program.in_flight = static_cast<std::uint32_t>(options.in_flight == 0 ? most : options.in_flight);
}

generator::Design streams(const Manifest& manifest) {
    generator::Design design = manifest.streams;
    apply(manifest.sequence, design);
    return design;
}

generator::Layouts layouts(const Manifest& manifest) {
    const TileSizes& tile = manifest.tile;
    const auto& operands = manifest.operands;
    const bool shared = manifest.rows > manifest.columns;  // one shim feeds several core rows
    return {{operands[0].storage, operands[1].storage, operands[2].storage},
            shared ? manifest.rows * tile.m : tile.m, tile.k_mt, tile.n, manifest.streams.target.step_max};
}

/// A size; what no program takes where the number is too large.
std::int64_t number(std::size_t value) {
    return value > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(value);
}

generator::Parameters parameters(const Sizes& sizes) {
    return {number(sizes.M), number(sizes.K), number(sizes.N), number(sizes.lda), 0, number(sizes.ldc)};
}

generator::Problem problem(const Sizes& sizes) {
    return {number(sizes.M), number(sizes.K), number(sizes.N), number(sizes.lda), 0, number(sizes.ldc)};
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
    explicit Cache(const Manifest& manifest) : streams(bdforge::streams(manifest)) {}
    generator::SequenceCache streams;
};

Generator::Generator(const Manifest& manifest)
    : design_(manifest.design), layouts_(bdforge::layouts(manifest)), cache_(std::make_unique<Cache>(manifest)) {}

Generator::~Generator() = default;

template <class Act>
auto Generator::named(Act act) const {
    try {
        return act(cache_->streams);
    } catch (const generator::SequenceError& error) {
        throw ArgumentError(design_ + ": " + error.what() + "; split the problem, or leave it to the processor");
    }
}

std::vector<std::int64_t> Generator::argument_bytes(const Sizes& sizes) const {
    return named([&](auto& streams) { return streams.sequencer().argument_bytes(parameters(sizes)); });
}

void Generator::check(const Sizes& sizes) const { argument_bytes(sizes); }

Generated Generator::staged(const Sizes& sizes) const {
    check(sizes);
    const generator::Staging staging = generator::staging(layouts_, problem(sizes));
    const std::string slabs = staging.a_in_slabs ? ", or K is no whole number of slabs" : "";
    return {nullptr, shape("A", layouts_.operands.a, staging.a, slabs), shape("C", layouts_.operands.c, staging.c),
            staging.a_in_slabs};
}

void Generator::stage_a(const Sizes& sizes, const void* a, void* buffer) const {
    const generator::Staging staging = generator::staging(layouts_, problem(sizes));
    by_width(layouts_.operands.a.bits, [&](auto element) {
        using Element = decltype(element);
        generator::stage_a(layouts_, staging, problem(sizes), static_cast<const Element*>(a),
                           static_cast<Element*>(buffer));
    });
}

std::size_t Generator::b_bytes(std::size_t K, std::size_t N) const {
    return static_cast<std::size_t>(argument_bytes({1, K, N, 0, 0})[1]);
}

void Generator::copy_b(std::size_t K, std::size_t N, const void* b, std::size_t stride, void* out) const {
    generator::Problem given = problem({1, K, N, 0, 0});
    const generator::detail::Request request(layouts_, given);
    generator::Staging staging;
    staging.b = generator::Buffer{request.k.walked(), request.n.walked()};
    given.ldb = number(stride);
    by_width(layouts_.operands.b.bits, [&](auto element) {
        using Element = decltype(element);
        generator::stage_b(layouts_, staging, given, static_cast<const Element*>(b), static_cast<Element*>(out));
    });
}

Generated Generator::get(const Sizes& sizes) const {
    Generated made = staged(sizes);
    made.words = named([&](auto& streams) { return streams.get(parameters(sizes)); });
    return made;
}

}  // namespace bdforge
