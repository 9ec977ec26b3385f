#include <limits>

#include "float_matrices.hpp"
#include "whole_matrices.hpp"

using namespace bdforge;
using namespace unit;

namespace {

constexpr std::size_t large = 380;  // squared, in floats: more than one thread's worth

std::string shape(std::size_t rows, std::size_t columns, bool turned) {
    return std::to_string(rows) + " x " + std::to_string(columns) + (turned ? ", turned" : "");
}

}  // namespace

UNIT_CASE("copies", floats_are_rounded_to_the_nearest_bf16_ties_to_even) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    const std::pair<float, std::uint32_t> values[] = {
        {1.0F, 0x3F80},           {-0.0F, 0x8000},          {1.00390625F, 0x3F80}, {1.01171875F, 0x3F82},
        {1.0039064F, 0x3F81},     {inf, 0x7F80},            {-inf, 0xFF80},        {3.4028235e38F, 0x7F80},
        {1e-45F, 0x0000},         {9.2e-41F, 0x0001},
    };
    for (const auto& [value, expected] : values) {
        Bf16 made = 0;
        copy_in({&value, 1, 1, 1}, {&made, 1, 1, 1}, false);
        check_equal(std::uint32_t{made}, expected, std::to_string(value));
    }
    // NaN: of the upper half alone the first is infinity; rounded, the others are 0.
    const std::pair<std::uint32_t, std::uint32_t> nans[] = {
        {0x7F800001, 0x7FC0}, {0xFF80FFFF, 0xFFC0}, {0x7FFFFFFF, 0x7FFF}, {0xFFFFFFFF, 0xFFFF}, {0x7FC00000, 0x7FC0}};
    for (const auto& [bits, expected] : nans) {
        const float nan = std::bit_cast<float>(bits);
        Bf16 made = 0;
        copy_in({&nan, 1, 1, 1}, {&made, 1, 1, 1}, true);
        check_equal(std::uint32_t{made}, expected, "NaN " + std::to_string(bits));
    }
}

UNIT_CASE("copies", parts_cover_everything_once) {
    for (const std::size_t count : {0, 1, 2, 3, 7, 1000}) {
        for (const std::size_t bytes : {0, 1, 256 << 10, 512 << 10, 1 << 30}) {
            std::vector<int> done(count), once(count, 1);
            in_parts(count, bytes, [&](std::size_t first, std::size_t last) {
                for (std::size_t i = first; i < last; ++i) ++done[i];
            });
            check_equal(done, once, std::to_string(count) + " for " + std::to_string(bytes) + " bytes");
        }
    }
}

UNIT_CASE("copies", matrices_of_all_sizes_come_in_as_they_stand_and_turned) {
    constexpr std::size_t sizes[][2] = {{1, 1}, {3, 70}, {70, 3}, {64, 64}, {65, 129}, {large, large + 1}};
    for (const auto& [rows, columns] : sizes) {
        for (const bool turned : {false, true}) {
            const std::vector<float> from = whole_numbers(rows * columns, 1);
            const std::size_t stride = columns + 5;
            std::vector<Bf16> to(rows * stride, 7);
            copy_in({from.data(), turned ? columns : rows, turned ? rows : columns, turned ? rows : columns},
                    {to.data(), rows, columns, stride}, turned);
            std::vector<float> got(to.size()), expected(to.size(), widened(7));  // gaps stay as they are
            for (std::size_t i = 0; i < to.size(); ++i) {
                const std::size_t row = i / stride, column = i % stride;
                got[i] = widened(to[i]);
                if (column < columns) expected[i] = from[turned ? column * rows + row : row * columns + column];
            }
            check_equal(got, expected, shape(rows, columns, turned));
        }
    }
}

UNIT_CASE("copies", results_of_both_types_are_assigned_or_added_with_a_bias) {
    constexpr std::size_t sizes[][2] = {{5, 67}, {130, 33}, {large, large}};
    for (const auto& [rows, columns] : sizes) {
        const std::vector<float> from = whole_numbers(rows * columns, 2), before = whole_numbers(rows * columns, 3),
                                 bias = whole_numbers(columns, 4);
        std::vector<Bf16> narrow(from.size());
        copy_in({from.data(), 1, from.size(), from.size()}, {narrow.data(), 1, from.size(), from.size()}, false);
        for (int bits = 0; bits < 8; ++bits) {
            const bool turned = (bits & 1) != 0, add = (bits & 2) != 0, biased = (bits & 4) != 0;
            const std::string how = shape(rows, columns, turned) + (add ? ", added" : "") + (biased ? ", with a bias" : "");
            std::vector<float> expected(from.size()), to = before, again = before;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const std::size_t row = i / columns, column = i % columns;
                expected[i] = from[turned ? column * rows + row : i] + (add ? before[i] : 0) + (biased ? bias[column] : 0);
            }
            const Results results{add, biased ? bias.data() : nullptr};
            const std::size_t lines = turned ? columns : rows, line = turned ? rows : columns;
            copy_out(Grid<const float>{from.data(), lines, line, line}, {to.data(), rows, columns, columns}, turned, results);
            check_equal(to, expected, "f32, " + how);
            copy_out(Grid<const Bf16>{narrow.data(), lines, line, line}, {again.data(), rows, columns, columns}, turned, results);
            check_equal(again, expected, "bf16, " + how);
        }
    }
}
