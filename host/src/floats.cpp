#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bdforge/error.hpp"
#include "bdforge/floats.hpp"
#include "float_matrices.hpp"
#include "state.hpp"

namespace bdforge {
namespace {

const sequence::Operand& operand_of(const Design& design, const char* name) { return design.state()->operand(name); }

std::size_t elements_turned(const OperandOrders& order, const ProductOperands& as) {
    const auto of = [](const MatrixSource& source, bool column) {
        return source.factor.turned == column ? std::size_t{0} : source.rows * source.columns;
    };
    return of(as.a, order.a) + of(as.b, order.b) + (order.c == as.c_turned ? 0 : as.a.rows * as.b.columns);
}

}  // namespace

OperandOrders orders_of(const Design& design) {
    const Manifest& manifest = design.manifest();
    if (manifest.kind != "gemm")
        throw ArgumentError(manifest.design + " is " + manifest.kind + ", no gemm; load one of bf16");
    const auto &a = operand_of(design, "A"), &b = operand_of(design, "B"), &c = operand_of(design, "C");
    if (a.type != "bf16" || b.type != "bf16" || (c.type != "f32" && c.type != "bf16"))
        throw ArgumentError(manifest.design + " computes " + a.type + " x " + b.type + " -> " + c.type +
                            "; products of floats take a design of bf16 x bf16 -> f32 or bf16");
    return {a.column_major, b.column_major, c.column_major, c.type == "bf16"};
}

ProductOperands operands_of(const FloatProduct& product, bool swapped) {
    const auto turn = [](Factor factor) { return factor.turned = !factor.turned, factor; };
    const auto [M, K, N] = std::tuple(product.M, product.K, product.N);
    if (swapped) return {{turn(product.b), N, K}, {turn(product.a), K, M}, true};
    return {{product.a, M, K}, {product.b, K, N}, false};
}

ProductPlan plan_product(const std::vector<Design>& designs, const std::vector<OperandOrders>& orders,
                         const FloatProduct& product) {
    std::optional<ProductPlan> found;
    std::string why;
    for (std::size_t i = 0; i < designs.size(); ++i) {
        for (const bool swapped : {false, true}) {
            const ProductPlan plan{i, swapped, elements_turned(orders[i], operands_of(product, swapped))};
            if (found && found->elements_turned <= plan.elements_turned) continue;
            try {
                designs[i].check(swapped ? product.N : product.M, product.K, swapped ? product.M : product.N);
                found = plan;
            } catch (const ArgumentError& error) {
                why = error.what();
            }
        }
    }
    if (!found) throw ArgumentError(why);
    return *found;
}

class FloatProductsState {
public:
    /// Which kept factors, sizes and design make a job; `twin` tells those apart that run at once.
    struct Key {
        std::size_t design, M, K, N;
        const float *a, *b;  // kept, else null
        bool a_turned, b_turned;
        std::size_t twin;

        auto operator<=>(const Key&) const = default;
    };

    /// A factor on the device.
    struct Kept {
        Resident resident;
        bool current = false;
    };

    using KeptKey = std::tuple<std::size_t, std::string, std::uintptr_t, std::size_t, std::size_t, bool>;

    explicit FloatProductsState(std::vector<Design> loaded) : designs(std::move(loaded)) {
        if (designs.empty()) throw ArgumentError("products of floats need a design; load one of bf16 x bf16 -> f32");
        for (const Design& design : designs) orders.push_back(orders_of(design));
    }

    /// A product on its plan through the device.
    struct Step {
        const FloatProduct& product;
        ProductPlan plan;
        ProductOperands as;
        Key key;
        Job* job;
    };

    std::vector<Step> steps(const std::vector<FloatProduct>& products) {
        std::vector<Step> made;
        for (const FloatProduct& product : products) {
            check(product);
            const ProductPlan plan = plan_product(designs, orders, product);
            Step step{product, plan, operands_of(product, plan.swapped), {}, nullptr};
            step.key = key(step, made);
            made.push_back(step);
        }
        for (Step& step : made) step.job = &job(step);
        return made;
    }

    void place(const Step& step) {
        const OperandOrders& order = orders[step.plan.design];
        place(step, "A", step.as.a, order.a);
        place(step, "B", step.as.b, order.b);
    }

    void take(const Step& step) {
        const OperandOrders& order = orders[step.plan.design];
        const FloatProduct& product = step.product;
        const bool turned = order.c != step.as.c_turned;
        const std::size_t rows = turned ? product.N : product.M, columns = turned ? product.M : product.N;
        const void* const memory = std::as_const(*step.job).memory("C");
        const std::size_t stride = step.job->stride("C");
        const Grid<float> to{product.c, product.M, product.N, product.N};
        const Results results{product.add, product.bias};
        if (order.narrow)
            copy_out(Grid<const Bf16>{static_cast<const Bf16*>(memory), rows, columns, stride}, to, turned, results);
        else
            copy_out(Grid<const float>{static_cast<const float*>(memory), rows, columns, stride}, to, turned, results);
        count_copy(product.M * product.N, turned);
    }

    Batch& batch(const std::vector<Step>& together) {
        std::vector<Key> keys;
        std::vector<Job> members;
        for (const Step& step : together) keys.push_back(step.key), members.push_back(*step.job);
        const auto found = batches.find(keys);
        if (found != batches.end()) return found->second;
        return batches.emplace(keys, Batch::of(designs[together.front().plan.design], members)).first->second;
    }

    std::mutex guard;
    const std::vector<Design> designs;
    FloatCounts counts;
    std::map<KeptKey, Kept> kept;

private:
    static void check(const FloatProduct& product) {
        if (product.a.data == nullptr || product.b.data == nullptr || product.c == nullptr)
            throw ArgumentError("a product of floats lacks a matrix: a, b or c is null");
    }

    static Key key(const Step& step, const std::vector<Step>& before) {
        const MatrixSource &a = step.as.a, &b = step.as.b;
        const auto stays = [](const Factor& factor) { return factor.kept ? factor.data : nullptr; };
        Key made{step.plan.design,
                 a.rows,
                 a.columns,
                 b.columns,
                 stays(a.factor),
                 stays(b.factor),
                 a.factor.kept && a.factor.turned,
                 b.factor.kept && b.factor.turned,
                 0};
        const auto taken = [&](const Step& other) { return other.key == made; };
        while (std::any_of(before.begin(), before.end(), taken)) ++made.twin;
        return made;
    }

    Job& job(const Step& step) {
        const auto found = jobs.find(step.key);
        if (found != jobs.end()) return found->second;
        const Key& key = step.key;
        JobOptions options;
        for (const auto& [name, source] : {std::pair("A", &step.as.a), std::pair("B", &step.as.b)})
            if (source->factor.kept) options.residents.push_back(keep(key.design, name, *source).resident);
        Job made(designs[key.design], {{"M", key.M}, {"K", key.K}, {"N", key.N}}, options);
        return jobs.emplace(key, std::move(made)).first->second;
    }

    Kept& keep(std::size_t design, const std::string& name, const MatrixSource& source) {
        const KeptKey key{design,      name,           reinterpret_cast<std::uintptr_t>(source.factor.data),
                          source.rows, source.columns, source.factor.turned};
        const auto found = kept.find(key);
        if (found != kept.end()) return found->second;
        const Sizes sizes = name == "A" ? Sizes{{"M", source.rows}, {"K", source.columns}}
                                        : Sizes{{"K", source.rows}, {"N", source.columns}};
        return kept.emplace(key, Kept{Resident(designs[design], name, sizes)}).first->second;
    }

    /// Copies a factor to where the job reads it.
    void place(const Step& step, const char* name, const MatrixSource& source, bool column) {
        const Factor& factor = source.factor;
        const std::size_t lines = column ? source.columns : source.rows, line = column ? source.rows : source.columns;
        const bool turned = factor.turned != column;
        const Grid<const float> from{factor.data, turned ? line : lines, turned ? lines : line, turned ? lines : line};
        if (!factor.kept) {
            copy_in(from, {static_cast<Bf16*>(step.job->memory(name)), lines, line, step.job->stride(name)}, turned);
            return count_copy(lines * line, turned);
        }
        Kept& held = keep(step.plan.design, name, source);
        if (held.current) return;
        buffer.resize(lines * line);
        copy_in(from, {buffer.data(), lines, line, line}, turned);
        held.resident.place(name, {buffer.data(), buffer.size() * sizeof(Bf16)});
        held.current = true;
        ++counts.kept_copies;
        count_copy(lines * line, turned);
    }

    void count_copy(std::size_t elements, bool turned) {
        counts.copied_bytes += elements * sizeof(float);
        counts.turned_bytes += turned ? elements * sizeof(float) : 0;
    }

    std::vector<OperandOrders> orders;
    std::map<Key, Job> jobs;
    std::map<std::vector<Key>, Batch> batches;
    std::vector<Bf16> buffer;
};

FloatProducts::FloatProducts(std::vector<Design> designs)
    : state_(std::make_shared<FloatProductsState>(std::move(designs))) {}

void FloatProducts::run(const std::vector<FloatProduct>& products, std::chrono::milliseconds timeout) {
    if (products.empty()) return;
    const std::lock_guard<std::mutex> lock(state_->guard);
    auto steps = state_->steps(products);
    for (const auto& step : steps) state_->place(step);
    const auto alike = [&](const auto& step) { return step.plan.design == steps.front().plan.design; };
    const bool together = steps.size() > 1 && std::all_of(steps.begin(), steps.end(), alike);
    if (together) state_->batch(steps).run(timeout);
    for (auto step = steps.begin(); !together && step != steps.end(); ++step) step->job->run(timeout);
    for (const auto& step : steps) state_->take(step);
    state_->counts.products += steps.size();
    state_->counts.submissions += together ? 1 : steps.size();
}

void FloatProducts::renew() {
    const std::lock_guard<std::mutex> lock(state_->guard);
    for (auto& [key, held] : state_->kept) held.current = false;
}

FloatCounts FloatProducts::counts() const {
    const std::lock_guard<std::mutex> lock(state_->guard);
    return state_->counts;
}

}  // namespace bdforge
