// Instruction streams by problem, each made once, for hosts with many threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bdforge/sequence.hpp"

namespace bdforge::generator {

/// The streams of one design. All members may be called from any thread; streams stay valid after the cache is gone.
class SequenceCache {
public:
    using Words = std::shared_ptr<const std::vector<std::uint32_t>>;

    /// SequenceError where the program is malformed.
    explicit SequenceCache(Design design) : sequencer_(std::move(design)) {}

    /// The stream for a problem's parameters, in the program's order; those left out are 0. SequenceError for those that
    /// the design cannot compute. Threads that ask for a problem in the making wait for it; others are not held up.
    Words get(Parameters parameters) {
        parameters.resize(std::max(parameters.size(), sequencer_.design().program.parameters.size()));
        std::promise<Words> promise;
        auto [words, first] = claim(parameters, promise);
        if (first)
            make(parameters, promise);
        return words.get();
    }

    /// Streams made so far, or in the making.
    std::size_t size() const {
        const std::lock_guard<std::mutex> guard(mutex_);
        return streams_.size();
    }

    const Sequencer &sequencer() const { return sequencer_; }

private:
    std::pair<std::shared_future<Words>, bool> claim(const Parameters &parameters, std::promise<Words> &promise) {
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto [place, first] = streams_.try_emplace(parameters);
        if (first)
            place->second = promise.get_future().share();
        return {place->second, first};
    }

    void make(const Parameters &parameters, std::promise<Words> &promise) {
        try {
            promise.set_value(std::make_shared<const std::vector<std::uint32_t>>(sequencer_.words(parameters)));
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    }

    const Sequencer sequencer_;
    mutable std::mutex mutex_;
    std::map<Parameters, std::shared_future<Words>> streams_;
};

}  // namespace bdforge::generator

namespace bdforge {
using generator::SequenceCache;
}
