#include "controller.hpp"

#include <algorithm>
#include <string>

#include "bdforge/error.hpp"

namespace bdforge::software {
namespace {

// Operations of instruction streams, version 0.1 (mlir-aie, AIETargetNPU.cpp), with their sizes in words.
constexpr std::uint32_t op_write = 0x00, op_block_write = 0x01, op_mask_write = 0x03, op_load_pdi = 0x08, op_await = 0x80,
                        op_patch = 0x81;
constexpr std::size_t header_words = 4, write_words = 6, mask_write_words = 7, load_pdi_words = 4, await_words = 4, patch_words = 12,
                      block_header_words = 4;

[[noreturn]] void refuse(const std::string& what) {
    throw RunError("the instruction stream " + what + "; generate it again from this design's manifest");
}

std::string hex(std::uint32_t value) {
    std::string text = "0x";
    for (int shift = 28; shift >= 0; shift -= 4) text.push_back("0123456789abcdef"[value >> shift & 15]);
    return text;
}

/// Words of the operation at `op`, of which `left` words are there.
std::size_t words_of(const std::uint32_t* op, std::size_t left) {
    switch (op[0] & 0xFF) {
        case op_write: return write_words;
        case op_block_write: return left < block_header_words ? left + 1 : op[3] / sizeof(std::uint32_t);
        case op_mask_write: return mask_write_words;
        case op_load_pdi: return load_pdi_words;
        case op_await: return await_words;
        case op_patch: return patch_words;
        default: return 0;
    }
}

}  // namespace

Controller::Controller(const Facts& facts, const Operands& operands) : facts_(facts), bds_(facts.columns * facts.bds) {
    for (std::size_t operand = 0; operand < operand_count; ++operand) {
        for (std::size_t column = 0; column < facts.columns; ++column) {
            const std::string name = std::string("shim ") + std::to_string(column) + ", " + "ABC"[operand];
            channels_.emplace_back(name, operands[operand]);
        }
    }
}

Channel& Controller::channel(Operand operand, std::size_t column) {
    return channels_[static_cast<std::size_t>(operand) * facts_.columns + column];
}

void Controller::check_header(const std::uint32_t* words, std::size_t count) const {
    if (count < header_words) refuse("has no header");
    if (words[0] != facts_.header[0] || words[1] != facts_.header[1]) refuse("is for another array");
    if (words[3] != count * sizeof(std::uint32_t)) refuse("is not as long as its header says");
}

void Controller::execute(const std::uint32_t* words, std::size_t count) {
    check_header(words, count);
    std::size_t operations = 0;
    for (std::size_t at = header_words; at < count; ++operations) {
        const std::uint32_t* op = words + at;
        const std::size_t size = words_of(op, count - at);
        if (size == 0 || size > count - at)
            refuse("has no operation that can be executed at word " + std::to_string(at));
        switch (op[0] & 0xFF) {
            case op_write: write(op[2], op[4]); break;
            case op_block_write: block_write(op[2], op + block_header_words, size - block_header_words); break;
            case op_mask_write: break;  // of control registers, which tell where tokens go
            case op_load_pdi:  // a full ELF's streams begin so; this array needs no configuration
                if (at != header_words) refuse("loads a configuration in its middle");
                break;
            case op_await: await(op); break;
            default: patch(op[6], op[8], op[10] | std::uint64_t{op[11]} << 32); break;
        }
        at += size;
    }
    if (operations != words[2]) refuse("has another number of operations than its header says");
    collect_parameters();
}

void Controller::write(std::uint32_t address, std::uint32_t value) {
    for (std::size_t operand = 0; operand < operand_count; ++operand) {
        const std::uint32_t distance = address - facts_.queues[operand];
        if (distance % facts_.column_stride == 0 && distance / facts_.column_stride < facts_.columns) {
            push(static_cast<Operand>(operand), distance / facts_.column_stride, value);
            return;
        }
    }
    registers_[address] = value;
}

Controller::Bd& Controller::bd_at(std::uint32_t address) {
    const std::uint32_t column = address / facts_.column_stride;
    const std::uint32_t distance = address % facts_.column_stride - facts_.bd_address;
    const std::uint32_t bd = distance / facts_.bd_stride_bytes;
    if (column >= facts_.columns || bd >= facts_.bds || distance % facts_.bd_stride_bytes != 0) {
        refuse("writes " + hex(address) + ", which is no buffer descriptor");
    }
    return bds_[column * facts_.bds + bd];
}

void Controller::block_write(std::uint32_t address, const std::uint32_t* data, std::size_t count) {
    if (count != bd_words) refuse("writes a buffer descriptor of " + std::to_string(count) + " words");
    Bd& bd = bd_at(address);
    bd = Bd{};
    std::copy_n(data, count, bd.words.begin());
}

void Controller::patch(std::uint32_t address, std::uint32_t argument, std::uint64_t offset_bytes) {
    const auto distance = static_cast<std::uint32_t>(facts_.patched_word * sizeof(std::uint32_t));
    Bd& bd = bd_at(address - distance);
    bd.argument = argument;
    bd.offset_bytes = offset_bytes;
}

/// Words 2 and 3: direction, row, column; rows, columns, channel.
void Controller::await(const std::uint32_t* words) {
    const std::uint32_t direction = words[2] & 0xFF, first = words[2] >> 16 & 0xFF;
    const std::uint32_t columns = words[3] >> 16 & 0xFF, channel_index = words[3] >> 24;
    if (direction != facts_.token_direction || channel_index != facts_.token_channel ||
        first + columns > facts_.columns) {
        refuse("awaits a token of a channel that issues none");
    }
    for (std::uint32_t column = first; column < first + columns; ++column) channel(Operand::c, column).take_token();
}

/// A task: its chain of BDs, `repeat` + 1 times. BDs are latched here, as they may be written again later.
void Controller::push(Operand operand, std::size_t column, std::uint32_t entry) {
    for (std::uint32_t turn = 0; turn <= facts_.queue_repeat.of(&entry); ++turn) {
        std::uint32_t index = facts_.queue_bd.of(&entry);
        for (std::uint32_t links = 0;; ++links) {
            const Bd& bd = bds_[column * facts_.bds + index];
            run_bd(operand, column, bd, turn);
            if (facts_.use_next.of(bd.words.data()) == 0) break;
            if (links == facts_.bds) refuse("chains buffer descriptors in a circle");
            index = facts_.next.of(bd.words.data());
        }
    }
    if (facts_.queue_token.of(&entry) != 0) channel(operand, column).push_token();
}

void Controller::run_bd(Operand operand, std::size_t column, const Bd& bd, std::uint32_t turn) {
    const std::uint32_t* words = bd.words.data();
    if (bd.argument != facts_.arguments[static_cast<std::size_t>(operand)]) {
        refuse(std::string("moves another argument than ") + "ABC"[static_cast<std::size_t>(operand)] +
               " on its channel");
    }
    if (facts_.length.of(words) == 0) refuse("starts a buffer descriptor of length 0");
    const auto step = [&](const Field& field) { return std::uint64_t{field.of(words)} + 1; };
    const std::uint64_t iteration = turn % (facts_.iteration_wrap.of(words) + 1);
    const std::uint64_t moved_bytes = sizeof(std::uint32_t) * iteration * step(facts_.iteration_step);
    channel(operand, column)
        .push({bd.offset_bytes + moved_bytes,
               facts_.length.of(words),
               {facts_.d0_wrap.of(words), facts_.d1_wrap.of(words)},
               {step(facts_.d0_step), step(facts_.d1_step), step(facts_.d2_step)}});
}

/// Every core must have got the same two parameters, and been told to go.
void Controller::collect_parameters() {
    const auto value = [&](std::uint32_t address) {
        const auto found = registers_.find(address);
        return found == registers_.end() ? 0 : found->second;
    };
    for (const CoreAddresses& core : facts_.cores) {
        if (value(core.go) != 1) refuse("does not start every core");
        k_steps_ = value(core.k_steps);
        output_tiles_ = value(core.output_tiles);
        if (k_steps_ != value(facts_.cores[0].k_steps) || output_tiles_ != value(facts_.cores[0].output_tiles)) {
            refuse("gives cores different parameters");
        }
    }
}

}  // namespace bdforge::software
