#include <algorithm>
#include <optional>

#include "bdforge/error.hpp"
#include "bdforge/floats.hpp"
#include "float_matrices.hpp"
#include "whole_matrices.hpp"
#include "devices.hpp"

using namespace bdforge;
using namespace unit;

namespace {

constexpr std::size_t M = 37, K = 41, N = 70;

Design loaded(const std::string& name) { return Design::load(unit::emulated_device(), design_path(name)); }

/// Two matrices, a result, and products of them in each of the four ways.
struct Matrices {
    std::vector<float> a = whole_numbers(M * K, 5), b = whole_numbers(K * N, 6), c = whole_numbers(M * N, 7),
                       bias = whole_numbers(N, 8);

    /// Small ones: sums that bf16 holds, too.
    void shrink() {
        for (auto* values : {&a, &b})
            for (float& value : *values) value = std::clamp(value, -1.0F, 1.0F);
    }

    FloatProduct product(bool a_turned, bool b_turned, bool add) {
        return {M, K, N, {a.data(), a_turned}, {b.data(), b_turned}, c.data(), add, add ? nullptr : bias.data()};
    }
};

std::string told(const FloatProduct& product) {
    return std::string("A") + (product.a.turned ? " turned" : "") + " x B" + (product.b.turned ? " turned" : "") +
           (product.add ? ", added" : "") + (product.bias == nullptr ? "" : ", with a bias");
}

}  // namespace

UNIT_CASE("floats", designs_of_all_layouts_and_the_processor_compute_every_product_of_a_step) {
    for (const char* name : {"rcr", "rrr", "crr", "cpc_bf16", ""}) {
        std::vector<Design> designs;
        if (*name != '\0') designs.push_back(loaded(name));
        std::optional<FloatProducts> products;
        if (!designs.empty()) products.emplace(designs);
        for (int how = 0; how < 4; ++how) {
            Matrices given;
            given.shrink();
            const bool a_turned = (how & 1) != 0, b_turned = (how & 2) != 0;
            const FloatProduct product = given.product(a_turned, b_turned, a_turned == b_turned);
            const std::vector<float> expected = by_definition(product);
            products ? products->run({product}) : compute_on_cpu(product);
            check_equal(given.c, expected, (*name == '\0' ? "the processor: " : std::string(name) + ": ") + told(product));
        }
    }
}

UNIT_CASE("floats", the_processor_computes_sizes_that_are_shared_by_threads) {
    const std::size_t size = 130;
    const std::vector<float> a = whole_numbers(size * size, 1), b = whole_numbers(size * size, 2);
    std::vector<float> c(size * size);
    for (const bool turned : {false, true}) {
        const FloatProduct product{size, size, size, {a.data(), !turned}, {b.data(), turned}, c.data()};
        compute_on_cpu(product);
        check_equal(c, by_definition(product), turned ? "B turned" : "A turned");
    }
}

UNIT_CASE("floats", the_processor_adds_what_is_there_and_a_bias) {
    for (int how = 0; how < 16; ++how) {
        const bool a_turned = (how & 1) != 0, b_turned = (how & 2) != 0, biased = (how & 8) != 0;
        Matrices given;
        FloatProduct product = given.product(a_turned, b_turned, (how & 4) != 0);
        product.bias = biased ? given.bias.data() : nullptr;
        const std::vector<float> expected = by_definition(product);
        compute_on_cpu(product);
        check_equal(given.c, expected, told(product));
    }
}

UNIT_CASE("floats", elements_are_turned_where_orders_differ) {
    Matrices given;
    const std::vector<OperandOrders> all = {{false, false, false, false}, {true, false, false, false}, {false, true, false, false}, {false, false, true, false}};
    const std::vector<Design> designs{loaded("rrr")};
    for (int how = 0; how < 4; ++how) {
        const FloatProduct product{8, 16, 32, {given.a.data(), (how & 1) != 0}, {given.b.data(), (how & 2) != 0}, given.c.data()};
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto& [a, b, c, narrow] = all[i];
            const std::size_t itself = (product.a.turned != a) * 8 * 16 + (product.b.turned != b) * 16 * 32 + c * 8 * 32,
                              swapped = (product.b.turned == a) * 16 * 32 + (product.a.turned == b) * 8 * 16 + !c * 8 * 32;
            const ProductPlan plan = plan_product(designs, {all[i]}, product);
            const std::string what = told(product) + " by a design of orders " + std::to_string(i);
            check_equal(plan.elements_turned, std::min(itself, swapped), what + ": elements turned");
            check_equal(plan.swapped, swapped < itself, what + ": swapped");
        }
    }
}

UNIT_CASE("floats", designs_of_the_three_layouts_of_a_step_turn_nothing) {
    Matrices given;
    const FloatProduct step[] = {given.product(false, true, false), given.product(false, false, true), given.product(true, false, true)};
    Matrices twin;
    FloatProducts all({loaded("rcr"), loaded("rrr"), loaded("crr")}), one({loaded("rcr")});
    for (const FloatProduct& product : step) {
        all.run({product});
        one.run({product});
    }
    check_equal(all.counts().turned_bytes, std::size_t{0}, "turned by three");
    check_equal(all.counts().copied_bytes, 3 * (M * K + K * N + M * N) * sizeof(float), "copied");
    check_equal(one.counts().submissions, std::size_t{3}, "submissions, one by one");
    check_equal(one.counts().turned_bytes, (K * N + M * K + K * N) * sizeof(float), "turned by one: B; A and B");
    all.run({step[0], {M, K, N, {given.a.data()}, {given.b.data()}, twin.c.data()}});
    check_equal(all.counts().submissions, std::size_t{5}, "submissions, two products by two designs");
    check_equal(all.counts().products, std::size_t{5}, "products");
}

UNIT_CASE("floats", of_ways_that_turn_as_much_the_first_design_is_taken_and_the_product_itself) {
    Matrices given;
    const std::vector<Design> twins{loaded("rrr"), loaded("rrr")};
    const std::vector<OperandOrders> orders{orders_of(twins[0]), orders_of(twins[1])};
    // B is K x N = 16 x 16 turned; as its transpose A, M x K = 8 x 16, and C, M x N = 8 x 16
    const FloatProduct product{8, 16, 16, {given.a.data()}, {given.b.data(), true}, given.c.data()};
    const ProductPlan plan = plan_product(twins, orders, product);
    check_equal(plan.elements_turned, std::size_t{256}, "elements turned");
    check_equal(plan.design, std::size_t{0}, "design, of two alike");
    check_equal(plan.swapped, false, "swapped, of two ways that turn 256 elements");
}

UNIT_CASE("floats", kept_factors_are_copied_once_until_they_are_renewed) {
    Matrices given;
    FloatProducts products({loaded("rcr")});
    FloatProduct product = given.product(false, true, false);
    product.b.kept = true;
    const std::vector<float> before = by_definition(product);
    products.run({product});
    check_equal(given.c, before, "first");
    for (float& value : given.b) value += 1;
    products.run({product});
    check_equal(given.c, before, "as kept");
    products.renew();
    const std::vector<float> after = by_definition(product);
    products.run({product});
    check_equal(given.c, after, "renewed");
    check_equal(products.counts().kept_copies, std::size_t{2}, "copies");
    product.b.turned = false;  // the same memory in the other order is another factor
    const std::vector<float> other = by_definition(product);
    products.run({product});
    check_equal(given.c, other, "turned");
    for (const bool turned : {false, true}) {
        FloatProduct of_a = given.product(turned, true, false);
        of_a.a.kept = true;
        const std::vector<float> expected = by_definition(of_a);
        products.run({of_a});
        check_equal(given.c, expected, turned ? "A kept, turned" : "A kept");
    }
}

UNIT_CASE("floats", products_that_come_together_are_one_submission) {
    Matrices given, twin;
    const FloatProduct first = given.product(false, false, true), second = twin.product(false, false, true);
    const std::vector<float> expected = by_definition(first);
    FloatProducts products({loaded("rrr")});
    products.run({first, second});
    check_equal(given.c, expected, "first");
    check_equal(twin.c, expected, "second of the same size");
    check_equal(products.counts().products, std::size_t{2}, "products");
    check_equal(products.counts().submissions, std::size_t{1}, "submissions");
}

UNIT_CASE("floats", what_cannot_be_computed_is_refused_and_nothing_is_written) {
    check_contains(message_of<ArgumentError>([] { FloatProducts({}); }), "need a design");
    check_contains(message_of<ArgumentError>([] { FloatProducts({loaded("small")}); }), "computes int8 x int2 -> int32");
    Matrices given;
    FloatProducts products({loaded("rcr")});
    FloatProduct product = given.product(false, false, false);
    const std::vector<float> before = given.c;
    product.K = std::size_t{1} << 40;
    check_contains(message_of<ArgumentError>([&] { products.run({given.product(true, true, true), product}); }), "K");
    check_equal(given.c, before, "c");
    product.K = K, product.a.data = nullptr;
    check_contains(message_of<ArgumentError>([&] { products.run({product}); }), "is null");
}
