// The steps of a chain in their order, with what constants allow: results that are written where they would be forwarded to,
// and products that are made as they are accumulated, so that neither lies in a buffer between.
#pragma once

#include <algorithm>

#include "pipeline.hpp"

namespace engine {

using Chain = std::vector<const State*>;

struct ChainStep {
    Event event;
    int cycle, bundle;  // of the chain; the bundle's is below 0 if it came before
    int phase;
    bool left_out = false;
    const Event* product = nullptr;  // that it makes itself
    bool taken = false;              // that product's operands
};

class ChainSteps {
  public:
    std::vector<ChainStep> steps;

    // `may_end` says of each cycle whether the chain may end behind it.
    ChainSteps(const Chain& chain, const std::vector<bool>& may_end) : may_end_(may_end) {
        for (int n = 0; n < int(chain.size()); ++n)
            for (int phase = kLand, i = 0; phase < kPhases; ++phase)
                for (; i < chain[n]->ends[phase]; ++i) {
                    const Call& call = chain[n]->calls[i];
                    steps.push_back({call.event, n, n - call.age, phase});
                }
        for (std::size_t at = 0; at < steps.size(); ++at)
            if (steps[at].event.function == multiply::accumulated) make_product(at);
        for (std::size_t at = 0; at < steps.size(); ++at)
            if (is_forward(steps[at])) forward_at_once(at);
    }

  private:
    struct Range {
        int first, bytes;
        bool operator==(const Range&) const = default;
        bool meets(const Range& other) const { return first < other.first + other.bytes && other.first < first + bytes; }
    };

    std::vector<bool> may_end_;

    static bool is_forward(const ChainStep& step) {
        const Function f = step.event.function;
        return f == forward<> || f == forward<64> || f == forward<256>;
    }

    static bool is_land_forwarded(const ChainStep& step) {
        const Function f = step.event.function;
        return f == land_forwarded<> || f == land_forwarded<64> || f == land_forwarded<256>;
    }

    static bool is_land(const ChainStep& step) {
        const Function f = step.event.function;
        return f == land<> || f == land<64> || f == land<256> || is_land_forwarded(step);
    }

    static bool is_of(const ChainStep& one, const ChainStep& other) {
        return one.bundle == other.bundle && one.event.offset == other.event.offset;
    }

    static bool is_vector(Function f) {
        return f == lanes::vadd || f == lanes::vbitwise<true> || f == lanes::vbitwise<false>;
    }

    static bool is_scalar(Function f) {
        return std::any_of(std::begin(scalar::kTable), std::end(scalar::kTable), [&](const Named& n) { return n.function == f; });
    }

    // Where a step writes what may be forwarded, of those that may write there at once; -1 of others.
    static int result_of(const ChainStep& step) {
        const Function f = step.event.function;
        if (f == load_fixed<64> || f == load_fixed<32>) return 1;
        if (f == multiply::accumulated) return step.event.o[1] + 1;
        return is_vector(f) ? 2 : -1;
    }

    static int result_bytes(const ChainStep& step) {
        const Function f = step.event.function;
        return f == multiply::accumulated ? 256 : f == load_fixed<32> ? 32 : 64;
    }

    // Registers that a step reads or writes; all, of those that are not known here.
    static std::vector<Range> touched(const ChainStep& step) {
        const Event& e = step.event;
        const Function f = e.function;
        std::vector<Range> found;
        if (step.left_out) return found;
        if (f == land_word) return {{e.a[1], 4}};
        if (is_forward(step)) return {{e.a[1] + kRegisters, e.o[0]}};
        if (is_land_forwarded(step)) return {{e.a[1], e.o[0]}, {e.a[1] + kRegisters, e.o[0]}};
        if (is_land(step)) return {{e.a[1], e.o[0]}, {e.a[1] + kRegisters, e.o[0]}};
        const auto add = [&](const Event& event, int places, int bytes) {
            for (int i = 0; i < places; ++i)
                if (event.a[i] >= 0) found.push_back({event.a[i], bytes});
        };
        if (f == walk_post || f == walk_index) add(e, 2, 4);
        else if (f == walk_2d || f == walk_3d) add(e, 3, 16);
        else if (f == multiply::multiply && e.o[0] < multiply::kSparse) add(e, 3, 64);
        else if (f == load_memory) return {};
        else if (f == load_fixed<64> || f == load_fixed<32>) add(e, 2, 64);
        else if (is_vector(f)) add(e, 3, 64);
        else if (f == store_memory) add(e, 1, e.o[0]);
        else if (f == copy<4> || f == copy<32> || f == copy<64> || f == copy<256>) add(e, 2, f == copy<256> ? 256 : 64);
        else if (f == multiply::accumulated) {
            add(e, e.o[1] + 2, 256);
            if (step.product && !step.taken) add(*step.product, 3, 64);
        } else if (f == branch || is_scalar(f)) add(e, 8, 8);
        else if (f == places::vbroadcast<false, false>) add(e, 2, 64);
        else return {{0, 2 * kRegisters}};
        return found;
    }

    static bool touches(const ChainStep& step, const Range& range) {
        const auto all = touched(step);
        return std::any_of(all.begin(), all.end(), [&](const Range& one) { return one.meets(range); });
    }

    static bool writes(const ChainStep& step, const Range& range) {
        return (step.phase <= kForward || touched(step) == whole()) && touches(step, range);
    }

    bool may_end_between(int first, int last) const {
        for (int n = first; n < last; ++n)
            if (may_end_[n]) return true;
        return false;
    }

    // The product that a sum takes, of operands that stay in their registers until then, or are taken from them.
    void make_product(std::size_t at) {
        ChainStep& sum = steps[at];
        if (sum.event.o[2] || sum.event.o[3]) return;
        for (std::size_t from = at; from--;) {
            ChainStep& product = steps[from];
            if (product.event.function != multiply::multiply || !is_of(product, sum)) continue;
            if (product.event.o[0] || may_end_between(product.cycle, sum.cycle)) return;
            sum.product = &product.event;
            sum.taken = product.taken = !stay(from, at);
            product.left_out = !product.taken;
            return;
        }
    }

    // Whether a product's operands are the same until a sum.
    bool stay(std::size_t product, std::size_t sum) const {
        for (int i = 0; i < 3; ++i) {
            const Range range{steps[product].event.a[i], i < 2 ? 64 : 4};
            if (range.first < 0) return false;
            for (std::size_t between = product + 1; between < sum; ++between)
                if (writes(steps[between], range)) return false;
        }
        return true;
    }

    void forward_at_once(std::size_t at) {
        ChainStep& forward = steps[at];
        const Range from{~forward.event.a[0], forward.event.o[0]}, to{forward.event.a[1] + kRegisters, forward.event.o[0]};
        std::size_t maker = at;
        bool lands = false;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const ChainStep& step = steps[i];
            if (i == at || !is_of(step, forward)) continue;
            const int result = result_of(step);
            if (i < at && result >= 0 && step.event.a[result] == forward.event.a[0] && result_bytes(step) == from.bytes) maker = i;
            else if (is_land_forwarded(step) && step.event.a[0] == forward.event.a[0] && step.event.a[1] == forward.event.a[1]) lands = true;
            else if (reads_buffer(step, from)) return;
        }
        if (maker == at || !lands || may_end_between(steps[maker].cycle, forward.cycle)) return;
        for (const Range& range : touched(steps[maker]))
            if (range.meets(to) && range.first != to.first) return;
        for (std::size_t i = maker + 1; i < at; ++i)
            if (touches(steps[i], to)) return;
        steps[maker].event.a[result_of(steps[maker])] = to.first;
        forward.left_out = true;
    }

    static bool reads_buffer(const ChainStep& step, const Range& range) {
        for (int place : step.event.a)
            if (place < 0 && range.meets({~place, 1})) return true;
        return false;
    }

    static std::vector<Range> whole() { return {{0, 2 * kRegisters}}; }
};

}  // namespace engine
