// Instruction streams by problem size, each made once, for hosts with many threads.
#pragma once

#include <array>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bdforge/stream_design.hpp"
#include "bdforge/sequence.hpp"

namespace bdforge::generator {

/// The streams of one design. All members may be called from any thread; streams stay valid after the cache is gone.
class SequenceCache {
public:
    using Words = std::shared_ptr<const std::vector<std::uint32_t>>;

    explicit SequenceCache(Design design) : design_(std::move(design)) {}

    /// The stream for operands without gaps. SequenceError for sizes that the design cannot compute.
    Words get(std::int64_t M, std::int64_t K, std::int64_t N) { return get(Problem(M, K, N)); }

    /// The stream for a problem with leading dimensions. Threads that ask for a size in the making wait for it; other
    /// sizes are not held up.
    Words get(const Problem &problem) {
        std::promise<Words> promise;
        auto [words, first] = claim(problem, promise);
        if (first)
            make(problem, promise);
        return words.get();
    }

    /// Streams made so far, or in the making.
    std::size_t size() const {
        const std::lock_guard<std::mutex> guard(mutex_);
        return streams_.size();
    }

    const Design &design() const { return design_; }

private:
    using Key = std::array<std::int64_t, 6>;

    std::pair<std::shared_future<Words>, bool> claim(const Problem &p, std::promise<Words> &promise) {
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto [place, first] = streams_.try_emplace(Key{p.M, p.K, p.N, p.lda, p.ldb, p.ldc});
        if (first)
            place->second = promise.get_future().share();
        return {place->second, first};
    }

    void make(const Problem &problem, std::promise<Words> &promise) {
        try {
            promise.set_value(std::make_shared<const std::vector<std::uint32_t>>(sequence(design_, problem)));
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    }

    const Design design_;
    mutable std::mutex mutex_;
    std::map<Key, std::shared_future<Words>> streams_;
};

}  // namespace bdforge::generator

namespace bdforge {
using generator::SequenceCache;
}
