#include "bdforge_llmc.h"

#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bdforge/floats.hpp"
#include "c_api.hpp"
#include "float_matrices.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

/// A product with the name of what it is for, such as "matmul_backward, dweight".
struct Named {
    const char* name;
    FloatProduct product;
};

/// Where linear layers run: on designs, and on the processor where these cannot.
class LayerProducts {
public:
    LayerProducts() = default;
    LayerProducts(std::vector<Design> designs, bool keep_weights, std::chrono::milliseconds timeout)
        : products_(std::in_place, std::move(designs)), keep_weights_(keep_weights), timeout_(timeout) {}

    bool keep_weights() const { return keep_weights_; }

    void run(const std::vector<Named>& all) {
        if (run_together(all)) return;
        for (const Named& one : all) run_together({one});
    }

    void updated() {
        if (products_) products_->renew();
    }

    bdforge_llmc_counts counts() const {
        const FloatCounts done = products_ ? products_->counts() : FloatCounts{};
        return {done.products, on_cpu_, done.submissions, done.kept_copies, done.copied_bytes, done.turned_bytes};
    }

private:
    /// Whether all of them were computed. Those that the device does not take together may be taken one by one: one
    /// alone is then the processor's. After a failure of the device everything is.
    bool run_together(const std::vector<Named>& all) {
        try {
            if (!products_ || !broken_.empty()) throw StateError(broken_.empty() ? no_design : broken_);
            std::vector<FloatProduct> products;
            for (const Named& one : all) products.push_back(one.product);
            products_->run(products, timeout_);
            return true;
        } catch (const ArgumentError& error) {
            if (all.size() > 1) return false;
            compute(all, error.what());
        } catch (const StateError& error) {
            compute(all, error.what());
        } catch (const std::exception& error) {
            broken_ = std::string("the device failed before: ") + error.what();
            compute(all, error.what());
        }
        return true;
    }

    void compute(const std::vector<Named>& all, const std::string& why) {
        for (const auto& [name, product] : all) {
            const std::string text =
                concat(name, " ", product.M, " x ", product.K, " x ", product.N, " on the processor: ", why);
            if (told_.insert(text).second) std::fprintf(stderr, "bdforge: %s\n", text.c_str());
            compute_on_cpu(product);
            ++on_cpu_;
        }
    }

    static constexpr const char* no_design = "no design was given; call bdforge_llmc_start with one";

    std::optional<FloatProducts> products_;
    bool keep_weights_ = false;
    std::chrono::milliseconds timeout_ = default_timeout;
    std::string broken_;
    std::set<std::string> told_;
    std::size_t on_cpu_ = 0;
};

/// For the whole process, which llm.c's functions leave no other place for. Never destroyed: the program may end while
/// a run is still going.
/// Whoever has it is alone with it: llm.c's functions may be called from any thread.
class Held {
public:
    Held() : lock_(guard()) {}
    LayerProducts* operator->() const { return layers(); }
    LayerProducts& operator*() const { return *layers(); }

private:
    static std::mutex& guard() {
        static auto* const made = new std::mutex;
        return *made;
    }
    static LayerProducts* layers() {
        static auto* const made = new LayerProducts;
        return made;
    }
    const std::lock_guard<std::mutex> lock_;
};

std::size_t positive(const char* name, int size) {
    if (size >= 1) return static_cast<std::size_t>(size);
    std::fprintf(stderr, "bdforge: %s is %d; nothing was computed\n", name, size);
    return 0;
}

struct Sizes3 {
    std::size_t rows, in, out;
    Sizes3(int B, int T, int C, int OC)
        : rows(positive("B", B) * positive("T", T)), in(positive("C", C)), out(positive("OC", OC)) {}
    bool empty() const { return rows * in * out == 0; }
};

}  // namespace
}  // namespace bdforge

using bdforge::Held;

bdforge_status bdforge_llmc_start(bdforge_design* const* designs, size_t count, const bdforge_llmc_options* options) {
    return bdforge::c_api::guarded([&] {
        std::vector<bdforge::Design> loaded;
        for (const bdforge_design* design : bdforge::c_api::listed("designs", designs, count))
            loaded.push_back(bdforge::c_api::given(design, "a design")->design);
        const bdforge_llmc_options chosen = options == nullptr ? bdforge_llmc_options{0, 0} : *options;
        const auto timeout =
            chosen.timeout_ms == 0 ? bdforge::default_timeout : std::chrono::milliseconds{chosen.timeout_ms};
        *Held() = bdforge::LayerProducts(std::move(loaded), chosen.keep_weights != 0, timeout);
    });
}

void bdforge_llmc_updated(void) { Held()->updated(); }

void bdforge_llmc_stop(void) { *Held() = bdforge::LayerProducts(); }

bdforge_llmc_counts bdforge_llmc_counted(void) { return Held()->counts(); }

void matmul_forward(float* out, const float* inp, const float* weight, const float* bias, int B, int T, int C, int OC) {
    const bdforge::Sizes3 sizes(B, T, C, OC);
    if (sizes.empty()) return;
    const Held layers;
    const bool keep = layers->keep_weights();
    layers->run({{"matmul_forward", {sizes.rows, sizes.in, sizes.out, {inp}, {weight, true, keep}, out, false, bias}}});
}

void matmul_backward(float* dinp, float* dweight, float* dbias, const float* dout, const float* inp,
                     const float* weight, int B, int T, int C, int OC) {
    const bdforge::Sizes3 sizes(B, T, C, OC);
    if (sizes.empty()) return;
    const Held layers;
    const bool keep = layers->keep_weights();
    layers->run({
        {"matmul_backward, dinp", {sizes.rows, sizes.out, sizes.in, {dout}, {weight, false, keep}, dinp, true}},
        {"matmul_backward, dweight", {sizes.out, sizes.rows, sizes.in, {dout, true}, {inp}, dweight, true}},
    });
    for (std::size_t row = 0; dbias != nullptr && row < sizes.rows; ++row)
        for (std::size_t column = 0; column < sizes.out; ++column) dbias[column] += dout[row * sizes.out + column];
}
