#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bdforge/backend.hpp"
#include "bdforge/manifest.hpp"
#include "bdforge/sequence_cache.hpp"

namespace bdforge {

/// The instruction stream of one problem, on the device.
struct Stream {
    Program program;
    std::size_t words;
};

/// Parameters that may be left out: leading dimensions, and those that nothing depends on.
std::vector<std::size_t> optional_parameters(const generator::Program& program);

/// A problem's sizes without leading dimensions, such as 256x2560x640.
std::string shape_of(const generator::Program& program, const generator::Parameters& parameters);

/// Every stream that a design was asked for, on its device. Any number of threads may ask.
class Streams {
public:
    /// ArgumentError for sequences that are to wait in a way that there is none of.
    explicit Streams(const Manifest& manifest);

    /// The stream for parameters; of a full ELF its name, as it brings its own.
    /// ArgumentError says why the design cannot compute the problem.
    std::shared_ptr<const Stream> get(Context& context, bool full_elf, const generator::Parameters& parameters);

    /// The values of a problem, of all parameters or of some; ArgumentError as `get`.
    template <class Parameters>
    generator::detail::Values values(const Parameters& parameters) const {
        return named([&] { return cache_.sequencer().values(parameters); });
    }

private:
    /// What `act` returns; its SequenceErrors name the design.
    template <class Act>
    auto named(Act act) const {
        try {
            return act();
        } catch (const generator::SequenceError& error) {
            refuse(error.what());
        }
    }
    [[noreturn]] void refuse(const std::string& why) const;
    std::string sequence(const generator::Parameters& parameters) const;

    const Manifest& manifest_;
    generator::SequenceCache cache_;
    std::mutex guard_;
    std::map<generator::Parameters, std::shared_ptr<const Stream>> known_;
};

}  // namespace bdforge
