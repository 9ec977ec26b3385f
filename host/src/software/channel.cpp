#include "channel.hpp"

#include <algorithm>
#include <cstring>

#include "bdforge/error.hpp"

namespace bdforge::software {
namespace {

constexpr std::size_t word_bytes = 4;
constexpr const char* faulty_stream = "; the instruction stream does not fit this problem";

}  // namespace

void Channel::take_token() {
    if (tokens_ == 0) throw RunError(name_ + ": a token is awaited that no task issues" + faulty_stream);
    --tokens_;
}

std::byte* Channel::next(std::size_t most, std::size_t& words) {
    if (current_ == runs_.size()) throw RunError(name_ + ": its tasks end before the cores do" + faulty_stream);
    const Run& run = runs_[current_];
    const std::uint32_t inner = run.wrap[0] == 0 ? run.length : run.wrap[0];
    const std::uint32_t row = done_ / inner, in_row = done_ % inner;
    const std::uint32_t plane = run.wrap[1] == 0 ? 0 : row / run.wrap[1];
    const std::uint32_t in_plane = run.wrap[1] == 0 ? row : row % run.wrap[1];
    const std::uint64_t at =
        run.offset_bytes + word_bytes * (in_row * run.step[0] + in_plane * run.step[1] + plane * run.step[2]);
    const std::uint32_t beside = run.step[0] == 1 ? inner - in_row : 1;
    words = std::min<std::size_t>({most, beside, run.length - done_});
    if (at + words * word_bytes > memory_.bytes) {
        throw RunError(name_ + ": byte " + std::to_string(at) + " lies behind its buffer of " +
                       std::to_string(memory_.bytes) + " bytes" + faulty_stream);
    }
    done_ += static_cast<std::uint32_t>(words);
    if (done_ == run.length) {
        ++current_;
        done_ = 0;
    }
    return memory_.data + at;
}

void Channel::read(void* out, std::size_t bytes) {
    auto* to = static_cast<std::byte*>(out);
    for (std::size_t words = 0, left = bytes / word_bytes; left > 0; left -= words) {
        const std::byte* from = next(left, words);
        std::memcpy(to, from, words * word_bytes);
        to += words * word_bytes;
    }
}

void Channel::write(const void* in, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(in);
    for (std::size_t words = 0, left = bytes / word_bytes; left > 0; left -= words) {
        std::byte* to = next(left, words);
        std::memcpy(to, from, words * word_bytes);
        from += words * word_bytes;
    }
}

void Channel::finish() const {
    if (current_ < runs_.size()) throw RunError(name_ + ": tasks are left when the cores have ended" + faulty_stream);
}

}  // namespace bdforge::software
