#include "ways.hpp"

#include <optional>
#include <string>
#include <tuple>

#include "bdforge/error.hpp"
#include "state.hpp"

namespace bdforge {
namespace {

const generator::Operand& operand_of(const Design& design, const char* name) {
    return design.state()->program().operands[operand_index(*design.state(), name)];
}

std::size_t elements_turned(const Orders& order, const Seen& as) {
    const auto of = [](const Source& source, bool column) {
        return source.factor.turned == column ? std::size_t{0} : source.rows * source.columns;
    };
    return of(as.a, order.a) + of(as.b, order.b) + (order.c == as.c_turned ? 0 : as.a.rows * as.b.columns);
}

}  // namespace

Orders orders_of(const Design& design) {
    const Manifest& manifest = design.manifest();
    if (manifest.kind != "gemm") throw ArgumentError(manifest.design + " is " + manifest.kind + ", no gemm; load one of bf16");
    const auto &a = operand_of(design, "A"), &b = operand_of(design, "B"), &c = operand_of(design, "C");
    if (a.type != "bf16" || b.type != "bf16" || (c.type != "f32" && c.type != "bf16"))
        throw ArgumentError(manifest.design + " computes " + a.type + " x " + b.type + " -> " + c.type +
                            "; products of floats take a design of bf16 x bf16 -> f32 or bf16");
    return {a.column_major, b.column_major, c.column_major, c.type == "bf16"};
}

Seen seen(const FloatProduct& product, bool swapped) {
    const auto turn = [](Factor factor) { return factor.turned = !factor.turned, factor; };
    const auto [M, K, N] = std::tuple(product.M, product.K, product.N);
    if (swapped) return {{turn(product.b), N, K}, {turn(product.a), K, M}, true};
    return {{product.a, M, K}, {product.b, K, N}, false};
}

Way best_way(const std::vector<Design>& designs, const std::vector<Orders>& orders, const FloatProduct& product) {
    std::optional<Way> found;
    std::string why;
    for (std::size_t i = 0; i < designs.size(); ++i) {
        for (const bool swapped : {false, true}) {
            const Way way{i, swapped, elements_turned(orders[i], seen(product, swapped))};
            if (found && found->elements_turned <= way.elements_turned) continue;
            try {
                designs[i].check(swapped ? product.N : product.M, product.K, swapped ? product.M : product.N);
                found = way;
            } catch (const ArgumentError& error) {
                why = error.what();
            }
        }
    }
    if (!found) throw ArgumentError(why);
    return *found;
}

}  // namespace bdforge
