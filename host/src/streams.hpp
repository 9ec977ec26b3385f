#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "bdforge/backend.hpp"
#include "generator.hpp"

namespace bdforge {

/// The instruction stream of one problem, on the device.
struct Stream {
    Program program;
    std::size_t words;
    StagedShape a, c;
    bool a_in_slabs;
};

/// Every stream that a design was asked for, on its device. Any number of threads may ask.
class Streams {
public:
    explicit Streams(const Manifest& manifest) : manifest_(manifest), generator_(manifest) {}

    /// The stream for `sizes`; of a full ELF its name, as it brings its own.
    /// ArgumentError says why the design cannot compute the problem.
    std::shared_ptr<const Stream> get(Context& context, bool full_elf, const Sizes& sizes);

    const Generator& generator() const { return generator_; }

private:
    std::string sequence(const Sizes& sizes) const;

    const Manifest& manifest_;
    Generator generator_;
    std::mutex guard_;
    std::map<Sizes, std::shared_ptr<const Stream>> known_;
};

}  // namespace bdforge
