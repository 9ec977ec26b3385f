// The software device is strict: streams that do not fit are named, not computed.

#include "bdforge/manifest.hpp"
#include "bdforge/sequence_cache.hpp"
#include "devices.hpp"
#include "operands.hpp"
#include "unit.hpp"

using namespace bdforge;
using unit::check_contains;
using unit::message_of;

namespace {

constexpr std::size_t M = 64, K = 64, N = 128;

std::vector<std::uint32_t> stream(const Manifest& manifest) { return *SequenceCache(manifest.streams).get({M, K, N}); }

/// What running `words` on buffers of the right size, or of `a_bytes` for A, complains of.
std::string fault(std::vector<std::uint32_t> words, std::size_t a_bytes = M * K) {
    const Manifest manifest = load_manifest(unit::data_folder() + "/small/manifest.json");
    const auto context = unit::software_device().backend().load({"", false, manifest});
    words[3] = static_cast<std::uint32_t>(words.size() * 4);
    const auto b = context->allocate(1, K * N / 4);
    std::fill_n(static_cast<std::uint8_t*>(b->data()), b->bytes(), std::uint8_t{0x55});
    const auto command =
        context->command({context->instructions(words), ""},
                         {context->allocate(0, a_bytes), b, context->allocate(2, M * N * 4)});
    return message_of<RunError>([&] { command->start(); });
}

std::vector<std::uint32_t> good() { return stream(load_manifest(unit::data_folder() + "/small/manifest.json")); }

/// Index of the first operation with `opcode`, from tile row `row` of its address on.
std::size_t find(const std::vector<std::uint32_t>& words, std::uint32_t opcode, std::uint32_t row = 0) {
    for (std::size_t at = 4; at < words.size();) {
        if (words[at] == opcode && (row == 0 || (words[at + 2] >> 20 & 0x1F) >= row)) return at;
        const std::uint32_t op = words[at];
        at += op == 0 ? 6 : op == 1 ? words[at + 3] / 4 : op == 3 ? 7 : op == 0x80 ? 4 : 12;
    }
    throw unit::Failure("no such operation");
}

}  // namespace

UNIT_CASE("software", damaged_streams_are_named) {
    auto words = good();
    words[0] ^= 1;
    check_contains(fault(words), "is for another array");
    words = good();
    words[2] += 1;
    check_contains(fault(words), "another number of operations");
    words = good();
    words[4] = 77;
    check_contains(fault(words), "no operation that can be executed at word 4");
    words = good();
    words.resize(words.size() - 1);
    check_contains(fault(words), "no operation that can be executed");
    check_contains(fault({1, 2, 3, 4}), "is for another array");
}

UNIT_CASE("software", cores_that_are_not_started_alike_are_named) {
    auto words = good();
    const std::size_t first = find(words, 0, 2);
    words[first + 4] += 1;  // the first core's K / k
    check_contains(fault(words), "gives cores different parameters");
    words = good();
    words[first + 12 + 4] = 0;  // its go
    check_contains(fault(words), "does not start every core");
}

UNIT_CASE("software", transfers_that_do_not_fit_are_named) {
    check_contains(fault(good(), M * K - 4), "lies behind its buffer");
    auto words = good();
    words[find(words, 0x81) + 8] = 2;  // A's BD moves C
    check_contains(fault(words), "moves another argument than A");
    words = good();
    words[find(words, 1) + 2] = 0x40;  // no BD there
    check_contains(fault(words), "is no buffer descriptor");
    words = good();
    words[find(words, 1) + 4] /= 2;  // A's length
    check_contains(fault(words), "its tasks end before the cores do");
    words = good();
    words[find(words, 0x80) + 2] = 1;  // MM2S
    check_contains(fault(words), "awaits a token of a channel that issues none");
}

UNIT_CASE("software", a_token_that_nobody_issues_is_named) {
    auto words = good();
    const std::size_t at = find(words, 0x80);
    words.insert(words.end(), words.begin() + static_cast<std::ptrdiff_t>(at),
                 words.begin() + static_cast<std::ptrdiff_t>(at) + 4);
    words[2] += 1;
    check_contains(fault(words), "a token is awaited that no task issues");
}
