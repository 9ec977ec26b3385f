#include "bdforge/error.hpp"
#include "bdforge/packing.hpp"
#include "unit.hpp"

using namespace bdforge;
using unit::check_contains;
using unit::check_equal;
using unit::message_of;

namespace {

constexpr PackedTile tile{8, 32, 8, 8};

std::vector<std::uint8_t> packed(const std::vector<std::int8_t>& weights, std::size_t K, std::size_t N) {
    const Places rows = padded_places(K, tile.k), columns = padded_places(N, tile.n);
    std::vector<std::uint8_t> out(packed_bytes(rows.size(), columns.size()));
    pack({weights.data(), K, N, N}, rows, columns, tile, out.data());
    return out;
}

}  // namespace

// Equality with Python's packing is tested from Python; here: the layout's definition, element by element.
UNIT_CASE("packing", every_weight_stands_where_the_layout_says) {
    const std::size_t K = 16, N = 64;
    std::vector<std::int8_t> weights(K * N);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::int8_t>((i * 7 + i / 11) % 3) - 1;
    const auto out = packed(weights, K, N);
    for (std::size_t row = 0; row < K; ++row) {
        for (std::size_t column = 0; column < N; ++column) {
            const std::size_t tiles_before = column / 32 * (K / 8) + row / 8;
            const std::uint8_t byte = out[tiles_before * 64 + row % 8 * 8 + column % 8];
            const int code = byte >> 2 * (column % 32 / 8) & 3;
            check_equal(code - 1, static_cast<int>(weights[row * N + column]), "weight");
        }
    }
}

UNIT_CASE("packing", places_without_a_weight_hold_zero) {
    const auto out = packed({1}, 1, 1);
    check_equal(out.size(), 64U, "bytes");
    check_equal(static_cast<int>(out[0]), 0x56, "weight 1, then zeros");
    for (std::size_t i = 1; i < out.size(); ++i) check_equal(static_cast<int>(out[i]), 0x55, "zeros");
}

// Column -1 is no weight; the ones behind it count on, so that they look side by side from there.
UNIT_CASE("packing", a_place_without_a_weight_before_the_first_column_is_no_column) {
    Places columns(32);
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<std::int32_t>(i) - 1;
    std::vector<std::int8_t> weights(8 * 31);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i % 2 ? 1 : -1;
    std::vector<std::uint8_t> out(64);
    pack({weights.data(), 8, 31, 31}, padded_places(8, 8), columns, tile, out.data());
    for (std::size_t row = 0; row < 8; ++row) {
        for (std::size_t column = 0; column < 32; ++column) {
            const int code = out[row * 8 + column % 8] >> 2 * (column / 8) & 3;
            const int expected = column == 0 ? 0 : weights[row * 31 + column - 1];
            check_equal(code - 1, expected, "packed column " + std::to_string(column));
        }
    }
}

UNIT_CASE("packing", values_that_are_not_ternary_are_named) {
    for (const int wrong : {2, -2, 127, -128}) {
        std::vector<std::int8_t> weights(3 * 40, 1);
        weights[2 * 40 + 33] = static_cast<std::int8_t>(wrong);
        const std::string fault = message_of<WeightError>([&] { packed(weights, 3, 40); });
        check_contains(fault, "the weight at row 2, column 33 is " + std::to_string(wrong) + ", expected -1, 0 or 1");
    }
}

UNIT_CASE("packing", places_that_are_no_multiple_are_refused) {
    const std::vector<std::int8_t> weights(8 * 32);
    std::vector<std::uint8_t> out(64);
    const auto fault = [&](const Places& rows, const Places& columns) {
        return message_of<ArgumentError>([&] { pack({weights.data(), 8, 32, 32}, rows, columns, tile, out.data()); });
    };
    check_contains(fault(padded_places(9, 9), padded_places(32, 32)), "K = 9 packed places, no multiple of k = 8");
    check_contains(fault(padded_places(8, 8), padded_places(31, 31)), "N = 31 packed places, no multiple of n = 32");
}
