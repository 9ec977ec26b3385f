#include "placing.hpp"

#include <algorithm>
#include <string>

#include "bdforge/error.hpp"

namespace bdforge {
namespace {

std::size_t up(std::size_t size, std::size_t multiple) { return (size + multiple - 1) / multiple * multiple; }

/// Positions 0 to `walked` - 1 in tiles, the last one moved back; those from `size` on hold no weight.
Places moved_back(std::size_t size, std::size_t walked, std::size_t tile) {
    Places places(up(walked, tile));
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t start = std::min(i / tile * tile, walked - tile);
        const std::size_t place = start + i % tile;
        places[i] = place < size ? static_cast<std::int32_t>(place) : zero_weight;
    }
    return places;
}

}  // namespace

Placing placing(const generator::Layouts& layouts, std::size_t K, std::size_t N) {
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    const generator::detail::Request request(layouts, {1, static_cast<std::int64_t>(K), static_cast<std::int64_t>(N)});
    const std::size_t slab = size(layouts.k_mt), depth = size(request.k.walked());
    Placing placed{moved_back(K, depth, slab), moved_back(N, size(request.n.walked()), size(layouts.n))};
    const std::size_t last = placed.rows.size() - slab, covered = placed.rows.size() - depth;
    std::fill_n(placed.rows.begin() + static_cast<std::ptrdiff_t>(last), covered, zero_weight);
    return placed;
}

PackedTile packed_tile(const Manifest& manifest) {
    const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    const TileSizes& tile = manifest.tile;
    return {size(tile.k), size(tile.n), size(tile.s), size(tile.t)};
}

void write_b(const Manifest& manifest, const Generator& generator, const BMatrix& b, void* out) {
    const auto& [type, storage] = manifest.operands[1];
    if (storage.order != generator::packed) return generator.copy_b(b.K, b.N, b.data, b.stride, out);
    const Placing placed = placing(generator.layouts(), b.K, b.N);
    const PackedTile tile = packed_tile(manifest);
    if (type == "int2")
        return pack({static_cast<const std::int8_t*>(b.data), b.K, b.N, b.stride}, placed.rows, placed.columns, tile,
                    static_cast<std::uint8_t*>(out));
    if (type == "int4")
        return pack_int4({static_cast<const std::int8_t*>(b.data), b.K, b.N, b.stride}, placed.rows, placed.columns,
                         tile, static_cast<std::uint8_t*>(out));
    if (type == "int8")
        return pack_tiles<std::uint8_t>({static_cast<const std::uint8_t*>(b.data), b.K, b.N, b.stride}, placed.rows,
                                        placed.columns, tile, static_cast<std::uint8_t*>(out));
    if (type == "bf16")
        return pack_tiles<std::uint16_t>({static_cast<const std::uint16_t*>(b.data), b.K, b.N, b.stride}, placed.rows,
                                         placed.columns, tile, static_cast<std::uint16_t*>(out));
    throw ArgumentError(manifest.design + ": this library does not pack B of type " + type +
                        "; make it with Python's bdforge.runtime.b_operand and pass its bytes to Design::packed");
}

}  // namespace bdforge
