#pragma once
// Instruction streams for problems of any size, made where the call happens.
//
//     const Sequencer sequencer(source);
//     const std::vector<std::uint32_t> words = sequencer.words({M, K, N});
//
// Word for word those of `bdforge.design.sequences`; docs/sequences.md explains them.

#include <cstdint>
#include <utility>
#include <vector>

#include "evaluation.hpp"

namespace bdforge::sequence {

constexpr std::size_t stream_words_max = std::size_t{1} << 26;  // 256 MiB, so that a program cannot ask for more

/// Makes the streams of one design. Any number of threads may use one; it is neither copied nor moved.
class Sequencer {
public:
    /// SequenceError where the program is malformed.
    explicit Sequencer(Source source) : source_(std::move(source)), order_(source_) {}
    Sequencer(const Sequencer&) = delete;
    Sequencer& operator=(const Sequencer&) = delete;

    const Source& source() const { return source_; }

    /// The stream of a problem. SequenceError says which requirement does not hold, what no register holds, or that there are
    /// more words than `most`.
    std::vector<std::uint32_t> words(const Parameters& parameters, std::size_t most = stream_words_max) const;

    /// The values of a problem that depend on no loop, of all parameters or of some, of which a Layout is made. SequenceError
    /// where a requirement does not hold.
    template <class AllOrSome>
    Values values(const AllOrSome& parameters) const {
        return {source_.program, order_, parameters};
    }

private:
    const Source source_;
    const EvaluationOrder order_;
};

}  // namespace bdforge::sequence
