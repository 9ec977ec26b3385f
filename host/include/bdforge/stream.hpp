// Buffer descriptors, tasks, and the words of a version 0.1 instruction stream that configure and start them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "bdforge/stream_design.hpp"

namespace bdforge::generator {
namespace detail {

// Operations of a version 0.1 stream, as mlir-aie numbers and pads them.
constexpr std::uint32_t op_write = 0, op_block_write = 1, op_mask_write = 3, op_tct = 0x80, op_patch = 0x81;
constexpr std::uint32_t write_bytes = 24, block_write_bytes = 16, mask_write_bytes = 28, tct_bytes = 16, patch_bytes = 48, word_bytes = 4;
constexpr std::size_t header_words = 4;

enum Operand : std::uint32_t { A, B, C };

/// Which argument holds a BD's data.
enum Source : std::uint32_t { from_a, from_b, from_c, from_r, from_s };

inline std::uint32_t of(const Operands &values, Operand operand) {
    return operand == A ? values.a : operand == B ? values.b : values.c;
}

/// One dimension of a transfer, in words.
struct Dim {
    std::int64_t size, stride;
};

/// One transfer: three dimensions, innermost first. Each run of the task moves it on by `iteration`'s stride.
struct Bd {
    Source source;
    std::int64_t offset_bytes;
    std::array<Dim, 3> dims;
    Dim iteration = {1, 0};

    std::int64_t length() const { return dims[0].size * dims[1].size * dims[2].size; }
    /// As mlir-aie decides it for tasks: then the registers hold no dimensions.
    bool linear() const { return dims[1].size == 1 && dims[2].size == 1; }
};

/// One task of one shim channel: a chain, run `runs` times.
struct Task {
    Operand operand;
    std::uint32_t column;
    std::int64_t runs;
    std::vector<Bd> bds;
};

/// Writes the operations of a stream.
class Writer {
public:
    explicit Writer(const Design &design) : design_(design), words_(header_words) {
        std::copy(design.header.begin(), design.header.end(), words_.begin());
    }

    void write(std::uint32_t address, std::uint32_t value) { add({op_write, 0, address, 0, value, write_bytes}); }

    /// Lets every core begin: its parameters, then the lock that says that they are there.
    void release(std::uint32_t k_steps, std::uint32_t output_tiles) {
        for (const Core &core : design_.cores) {
            write(core.k_steps, k_steps);
            write(core.output_tiles, output_tiles);
            write(core.go, 1);
        }
    }

    /// A token from each column.
    void wait_for_c() {
        const Shim::Token &token = design_.shim.token;
        for (std::uint32_t column = 0; column < design_.array.columns; column += token.columns)
            add({op_tct, tct_bytes, token.direction | column << 16,
                 1u << 8 | token.columns << 16 | token.channel << 24});
    }

    /// A BD's registers, then the argument and offset that its address comes from.
    void configure(const Task &task, const Bd &bd, std::uint32_t id, const std::uint32_t *next) {
        const Shim &shim = design_.shim;
        const std::uint32_t at =
            task.column * design_.column_stride + shim.bd_address + id * shim.bd_stride_bytes;
        const std::array<std::uint32_t, 8> bd_words = registers(bd, next);
        add({op_block_write, 0, at, block_write_bytes + word_bytes * static_cast<std::uint32_t>(bd_words.size())});
        words_.insert(words_.end(), bd_words.begin(), bd_words.end());
        const auto offset = static_cast<std::uint64_t>(bd.offset_bytes);
        add({op_patch, patch_bytes, 0, 0, 0, 0, at + word_bytes * shim.patched_word, 0,
             argument(bd.source), 0, low(offset), high(offset)});
    }

    void push(const Task &task, std::uint32_t first_bd) {
        const Shim &shim = design_.shim;
        const std::uint32_t token = task.operand == C ? 1u << shim.queue_fields.token : 0;
        if (token)
            add({op_mask_write, 0, task.column * design_.column_stride + shim.token.control_address, 0,
                 shim.token.control_value, shim.token.control_mask, mask_write_bytes});
        const auto repeat = static_cast<std::uint32_t>(task.runs - 1) << shim.queue_fields.repeat;
        write(task.column * design_.column_stride + of(shim.queue_addresses, task.operand),
              token | repeat | first_bd << shim.queue_fields.bd);
    }

    std::vector<std::uint32_t> finish() {
        words_[2] = operations_;
        words_[3] = word_bytes * static_cast<std::uint32_t>(words_.size());
        return std::move(words_);
    }

private:
    static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
    static std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

    std::uint32_t argument(Source source) const {
        const Arguments &all = design_.arguments;
        return std::array<std::uint32_t, 5>{all.a, all.b, all.c, all.r, all.s}[source];
    }

    void add(std::initializer_list<std::uint32_t> words) {
        words_.insert(words_.end(), words);
        ++operations_;
    }

    std::array<std::uint32_t, 8> registers(const Bd &bd, const std::uint32_t *next) const {
        const BdFields &fields = design_.shim.bd_fields;
        std::array<std::uint32_t, 8> words = design_.shim.bd_constant;
        const auto set = [&](Field field, std::int64_t value) {
            words[field.word] |= static_cast<std::uint32_t>(value) << field.low;
        };
        const auto step = [](Dim dim) { return dim.size == 1 ? 0 : std::max<std::int64_t>(dim.stride - 1, 0); };
        set(fields.length, bd.length());
        if (!bd.linear()) {
            set(fields.d0_wrap, bd.dims[0].size), set(fields.d0_step, step(bd.dims[0]));
            set(fields.d1_wrap, bd.dims[1].size), set(fields.d1_step, step(bd.dims[1]));
            set(fields.d2_step, step(bd.dims[2]));
        }
        if (bd.iteration.size > 1)
            set(fields.iteration_wrap, bd.iteration.size - 1), set(fields.iteration_step, bd.iteration.stride - 1);
        if (next)
            set(fields.next, *next), set(fields.use_next, 1);
        const auto offset = static_cast<std::uint64_t>(bd.offset_bytes);
        words[design_.shim.patched_word] |= low(offset);  // as mlir-aie does; the patch replaces it
        words[design_.shim.patched_word + 1] |= high(offset);
        return words;
    }

    const Design &design_;
    std::vector<std::uint32_t> words_;
    std::uint32_t operations_ = 0;
};

}  // namespace detail
}  // namespace bdforge::generator
