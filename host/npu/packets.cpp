#include "context.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace npu {
namespace {

using bdforge::emulated::Form;

constexpr std::size_t chain_header_words = 6;  // count, submit and error index, 3 reserved
constexpr std::uint32_t load_pdi = 8;                             // operation of an instruction stream
constexpr std::size_t stream_header_words = 4, load_words = 4;

/// Words of memory that the program may write at any time; EINVAL beyond them.
class Words {
public:
    Words(const std::byte* data, std::uint64_t count) : data_(data), count_(count) {}

    std::uint32_t at(std::uint64_t i) const {
        if (i >= count_) throw Refused{EINVAL};
        std::uint32_t word;
        std::memcpy(&word, data_ + i * sizeof word, sizeof word);
        return word;
    }
    std::uint64_t wide(std::uint64_t i) const { return at(i) | std::uint64_t{at(i + 1)} << 32; }
    std::uint64_t count() const { return count_; }

private:
    const std::byte* data_;
    std::uint64_t count_;
};

/// A packet's words, the first included, as many as it counts.
Words words_of(const Object& packet) {
    const Words all(packet.host, packet.bytes / sizeof(std::uint32_t));
    return {packet.host, std::min<std::uint64_t>(all.count(), 1 + (all.at(0) >> 12 & 0x7FF))};
}

Opcode opcode_of(const Words& words) { return static_cast<Opcode>(words.at(0) >> 23 & 0x1F); }

/// The kernel's registers as in kernels.json: opcode 0, instructions 8, their count 0x10, operands from 0x14.
Job unit_job(const Objects& objects, const ObjectPointer& packet, const Words& words, std::uint64_t first) {
    Job job{packet, {Form::stream, words.wide(first + 2), std::uint64_t{words.at(first + 4)} * sizeof(std::uint32_t), {}}, {}};
    job.uses.push_back(objects.at(job.run.address));
    for (std::uint64_t i = first + 5; i + 2 <= words.count() && words.wide(i) != 0; i += 2) {
        job.run.arguments.push_back(words.wide(i));
        job.uses.push_back(objects.at(words.wide(i)));
    }
    return job;
}

Job control_job(const Objects& objects, const ObjectPointer& packet, const Words& words, bool preemptible) {
    constexpr std::uint64_t first = 2;  // behind the mask; preemptible: addresses to save and restore follow
    const std::uint64_t bytes = words.at(preemptible ? first + 6 : first + 2);
    Job job{packet, {Form::control_code, words.wide(first), bytes, {}}, {}};
    job.uses.push_back(objects.at(job.run.address));
    return job;
}

}  // namespace

Wanted read_packet(const Objects& objects, const ObjectPointer& packet, const std::vector<ObjectPointer>& handles) {
    const Words words = words_of(*packet);
    Wanted wanted{{packet, {}}};
    const Opcode opcode = opcode_of(words);
    if (opcode == Opcode::chain) {
        if (words.at(1) == 0) throw Refused{EINVAL};  // of too many, the packet has no words
        for (std::uint32_t i = 0; i < words.at(1); ++i) {
            const auto handle = static_cast<std::uint32_t>(words.wide(1 + chain_header_words + 2 * std::uint64_t{i}));
            const ObjectPointer part = objects.find(handle);
            if (opcode_of(words_of(*part)) == Opcode::chain) throw Refused{EINVAL};
            const Wanted one = read_packet(objects, part, handles);
            wanted.command.jobs.push_back(one.command.jobs.at(0));
            wanted.unit = one.unit;
        }
        return wanted;
    }
    const std::uint64_t masks = 1 + (words.at(0) >> 10 & 3);
    while (wanted.unit < 32 && words.at(1) != 0 && (words.at(1) >> wanted.unit & 1) == 0) ++wanted.unit;
    if (opcode == Opcode::start_unit) {
        wanted.command.jobs.push_back(unit_job(objects, packet, words, 1 + masks));
        return wanted;
    }
    if (opcode != Opcode::start_npu && opcode != Opcode::start_npu_preempt && opcode != Opcode::start_npu_elf)
        throw Refused{EINVAL};
    wanted.command.jobs.push_back(control_job(objects, packet, words, opcode != Opcode::start_npu));
    auto& uses = wanted.command.jobs[0].uses;
    uses.insert(uses.end(), handles.begin(), handles.end());
    return wanted;
}

Configuration loaded_by(const Objects& objects, const Job& job) {
    const ObjectPointer code = objects.at(job.run.address);
    const std::uint64_t inside = job.run.address - code->address;
    const Words words(code->host + inside, std::min(job.run.bytes, code->bytes - inside) / sizeof(std::uint32_t));
    if (words.count() < stream_header_words + load_words || (words.at(stream_header_words) & 0xFF) != load_pdi) return {};
    const std::uint64_t bytes = words.at(stream_header_words + 1), address = words.wide(stream_header_words + 2);
    const ObjectPointer pdi = objects.at(address);
    if (bytes > pdi->bytes - (address - pdi->address) || bytes > configuration_bytes_most) throw Refused{EINVAL};
    const std::byte* start = pdi->host + (address - pdi->address);
    return {start, start + bytes};
}

}  // namespace npu
