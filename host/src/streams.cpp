#include "streams.hpp"

#include <algorithm>

#include "bdforge/error.hpp"

namespace bdforge {
namespace {

std::string text(const Sizes& sizes) {
    return std::to_string(sizes.M) + "x" + std::to_string(sizes.K) + "x" + std::to_string(sizes.N);
}

}  // namespace

// Words are made outside the lock: threads that ask for other sizes are not held up.
std::shared_ptr<const Stream> Streams::get(Context& context, bool full_elf, const Sizes& sizes) {
    const std::string name = full_elf ? sequence(sizes) : "";
    const Generated made = full_elf ? generator_.staged(sizes) : generator_.get(sizes);
    const std::lock_guard<std::mutex> lock(guard_);
    std::shared_ptr<const Stream>& known = known_[sizes];
    if (known) return known;
    const auto words = full_elf ? nullptr : context.instructions(*made.words);
    known = std::make_shared<const Stream>(Stream{
        {words, name}, full_elf ? 0 : made.words->size(), made.a, made.c, made.a_in_slabs});
    return known;
}

/// The ELF's sequence for a problem.
std::string Streams::sequence(const Sizes& sizes) const {
    const auto same = [&](const BuiltProblem& built) {
        return std::tuple(built.M, built.K, built.N) == std::tuple(static_cast<std::int64_t>(sizes.M),
                                                                   static_cast<std::int64_t>(sizes.K),
                                                                   static_cast<std::int64_t>(sizes.N));
    };
    const auto found = std::find_if(manifest_.problems.begin(), manifest_.problems.end(), same);
    if (found != manifest_.problems.end() && sizes.lda == 0 && sizes.ldc == 0) return found->sequence;
    throw ArgumentError(
        manifest_.design + ": its ELF holds no sequence for " + text(sizes) +
        " without strides; add the problem to the design's spec, or load the xclbin, which runs any size");
}

}  // namespace bdforge
