// Buffer descriptors and the words of a version 0.1 instruction stream.
//
// BDs are those of mlir-aie's tasks, as `bdforge.devices.txn_format.bd_encoding.task_transfer` makes and checks them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bdforge/numbers.hpp"
#include "bdforge/program.hpp"

namespace bdforge::generator::detail {

// Operations of a version 0.1 stream, as mlir-aie numbers and pads them.
constexpr std::uint32_t op_write = 0, op_block_write = 1, op_mask_write = 3, op_tct = 0x80, op_patch = 0x81;
constexpr std::uint32_t write_bytes = 24, block_write_bytes = 16, mask_write_bytes = 28, tct_bytes = 16, patch_bytes = 48, word_bytes = 4;
constexpr std::size_t header_words = 4;
constexpr std::size_t stream_words = std::size_t{1} << 14;  // room to start with
constexpr std::size_t stream_words_max = std::size_t{1} << 26;  // 256 MiB, so that a program cannot ask for more
constexpr std::int64_t word_max = 0xFFFFFFFF;

[[noreturn]] inline void no_words(const char *what, std::int64_t elements, std::uint32_t bits) {
    throw SequenceError(std::string(what) + " is " + std::to_string(elements) + " elements of " + std::to_string(bits) +
                        " bits; it must be a multiple of 4 bytes");
}

/// Elements of `bits` bits as 32-bit words.
inline std::int64_t in_words(const char *what, std::int64_t elements, std::uint32_t bits) {
    const std::int64_t all = product(what, elements, bits);
    return all % granule_bits != 0 ? no_words(what, elements, bits), 0 : all / granule_bits;
}

struct Dim {
    std::int64_t size, stride;
};

/// A transfer: d0 to d2 and the iteration, innermost first, in elements of `bits` bits from element `offset` on.
struct Transfer {
    std::array<Dim, 4> dims{{{1, 1}, {1, 0}, {1, 0}, {1, 0}}};
    std::int64_t offset = 0;
    std::uint32_t bits = granule_bits;
};

/// What a transfer puts into a BD, but for its number and the next one's.
struct BdWords {
    std::array<std::uint32_t, 8> words;
    std::uint64_t offset_bytes;
};

/// Checks transfers against a shim's limits and makes their words.
class Encoder {
public:
    explicit Encoder(const Target &target) : target_(target) {}

    BdWords words(Transfer transfer) const {
        ranged("bits of an element", transfer.bits, 1, granule_bits);
        // As mlir-aie decides it for tasks: then the registers hold no dimensions, and d0's stride is lost.
        const bool linear = transfer.dims[1].size == 1 && transfer.dims[2].size == 1;
        check_elements(transfer, linear);
        to_words(transfer);
        check_words(transfer, linear);
        const std::int64_t length = length_of(transfer.dims);
        return {registers(transfer.dims, length, linear, offset_bytes(transfer)), offset_bytes(transfer)};
    }

private:
    static constexpr std::array<const char *, 4> sizes{"size of dimension 0", "size of dimension 1",
                                                       "size of dimension 2", "size of dimension 3"};
    static constexpr std::array<const char *, 4> strides{"stride of dimension 0", "stride of dimension 1",
                                                         "stride of dimension 2", "stride of dimension 3"};
    static constexpr std::int64_t most = INT64_MAX;

    static void check_elements(Transfer &transfer, bool linear) {
        Dim &inner = transfer.dims[0];
        if (linear && inner.stride != 1) {
            ranged(strides[0], inner.stride, inner.size > 1 ? 1 : 0, most);
            in_words(strides[0], inner.stride, transfer.bits);
            inner.stride = 1;
        }
        for (std::size_t i = 0; i < transfer.dims.size(); ++i) {
            const auto &[size, stride] = transfer.dims[i];
            ranged(sizes[i], size, 1, most);
            ranged(strides[i], stride, size > 1 && i < 3 ? 1 : 0, most);
        }
        if (transfer.bits != granule_bits && inner.size != 1)  // a DMA cannot step over part of a word
            ranged(strides[0], inner.stride, 1, 1);
    }

    static void to_words(Transfer &transfer) {
        for (std::size_t i = 1; i < transfer.dims.size(); ++i)
            transfer.dims[i].stride = in_words(strides[i], transfer.dims[i].stride, transfer.bits);
        Dim &inner = transfer.dims[0];
        inner.size = in_words(sizes[0], inner.size, transfer.bits);
        inner.stride = transfer.bits == granule_bits ? inner.stride : 1;
    }

    void check_words(const Transfer &transfer, bool linear) const {
        const auto &dims = transfer.dims;
        ranged(sizes[3], dims[3].size, 1, target_.iteration_max);
        for (std::size_t i = 0; i < dims.size(); ++i)
            if (dims[i].size > 1 || i == 0)  // whose step the registers hold whatever its size
                ranged(strides[i], dims[i].stride, 0, target_.step_max);
        for (std::size_t i = 0; i < target_.wraps.size() && !linear; ++i)
            ranged(sizes[i], dims[i].size, 1, target_.wraps[i]);
    }

    std::int64_t length_of(const std::array<Dim, 4> &dims) const {
        const std::int64_t length = product("a length", product("a length", dims[0].size, dims[1].size), dims[2].size);
        return ranged("a length in words", length, 1, target_.length_max);
    }

    static std::uint64_t offset_bytes(const Transfer &transfer) {
        ranged("an offset", transfer.offset, 0, most);
        return static_cast<std::uint64_t>(in_words("an offset", transfer.offset, transfer.bits)) * word_bytes;
    }

    std::array<std::uint32_t, 8> registers(const std::array<Dim, 4> &dims, std::int64_t length, bool linear,
                                           std::uint64_t offset) const {
        const BdFields &fields = target_.bd_fields;
        std::array<std::uint32_t, 8> words = target_.bd_constant;
        const auto set = [&](Field field, std::int64_t value) {
            words[field.word] |= static_cast<std::uint32_t>(value) << field.low;
        };
        const auto step = [](Dim dim) { return dim.size == 1 ? 0 : dim.stride - 1; };
        set(fields.length, length);
        if (!linear) {
            set(fields.d0_wrap, dims[0].size), set(fields.d0_step, std::max<std::int64_t>(dims[0].stride - 1, 0));
            set(fields.d1_wrap, dims[1].size), set(fields.d1_step, step(dims[1]));
            set(fields.d2_step, step(dims[2]));
        }
        if (dims[3].size > 1 && dims[3].stride > 0)
            set(fields.iteration_wrap, dims[3].size - 1), set(fields.iteration_step, dims[3].stride - 1);
        words[target_.patched_word] |= static_cast<std::uint32_t>(offset);  // as mlir-aie does; the patch replaces it
        words[target_.patched_word + 1] |= static_cast<std::uint32_t>(offset >> 32);
        return words;
    }

    const Target &target_;
};

/// Writes the operations of a stream of at most so many words.
class Writer {
public:
    explicit Writer(const Target &target, std::size_t most = stream_words_max) : target_(target), most_(most) {
        std::copy(target.header.begin(), target.header.end(), next(header_words));
    }

    void write(std::uint32_t address, std::uint32_t value) { add({op_write, 0, address, 0, value, write_bytes}); }

    /// Registers that follow each other: one, or several by a block write.
    void write(std::uint32_t address, const std::uint32_t *values, std::size_t count) {
        if (count == 1)
            return write(address, *values);
        add({op_block_write, 0, address, block_write_bytes + word_bytes * static_cast<std::uint32_t>(count)});
        std::copy_n(values, count, next(count));
    }

    /// Tokens of a channel from each of `columns` shims.
    void await(Direction direction, std::uint32_t channel, std::uint32_t column, std::uint32_t columns) {
        const auto way = static_cast<std::uint32_t>(direction);
        add({op_tct, tct_bytes, way | column << 16, 1u << 8 | columns << 16 | channel << 24});
    }

    /// A BD's registers, then the argument and offset that its address comes from.
    void configure(std::uint32_t column, std::uint32_t id, const std::uint32_t *next, const BdWords &bd,
                   std::uint32_t argument) {
        const std::uint32_t at = at_column(target_.bd_address + id * target_.bd_stride_bytes, column);
        const BdFields &fields = target_.bd_fields;
        add({op_block_write, 0, at, block_write_bytes + word_bytes * static_cast<std::uint32_t>(bd.words.size())});
        std::uint32_t *const words = this->next(bd.words.size());
        std::copy(bd.words.begin(), bd.words.end(), words);
        if (next) {
            words[fields.next.word] |= *next << fields.next.low;
            words[fields.use_next.word] |= 1u << fields.use_next.low;
        }
        add({op_patch, patch_bytes, 0, 0, 0, 0, at + word_bytes * target_.patched_word, 0, argument, 0,
             static_cast<std::uint32_t>(bd.offset_bytes), static_cast<std::uint32_t>(bd.offset_bytes >> 32)});
    }

    void push(const Task &task, std::uint32_t column, std::uint32_t runs, std::uint32_t first_bd) {
        const auto way = static_cast<std::size_t>(task.direction);
        const QueueFields &fields = target_.queue_fields;
        if (task.token)
            add({op_mask_write, 0, at_column(target_.controls[way][task.channel], column), 0, target_.control_value,
                 target_.control_mask, mask_write_bytes});
        write(at_column(target_.queues[way][task.channel], column),
              std::uint32_t{task.token} << fields.token | (runs - 1) << fields.repeat | first_bd << fields.bd);
    }

    /// The stream, no longer than it must be.
    std::vector<std::uint32_t> finish() {
        words_[2] = operations_;
        words_[3] = word_bytes * static_cast<std::uint32_t>(count_);
        return {words_.get(), words_.get() + count_};
    }

private:
    std::uint32_t at_column(std::uint32_t address, std::uint32_t column) const {
        return address + column * target_.column_stride;
    }

    template <std::size_t count>
    void add(const std::uint32_t (&words)[count]) {
        std::copy_n(words, count, next(count));
        ++operations_;
    }

    /// Room for the next words.
    std::uint32_t *next(std::size_t count) {
        if (count_ + count > room_)
            grow(count);
        count_ += count;
        return words_.get() + count_ - count;
    }

    void grow(std::size_t count) {
        if (count_ + count > most_)
            throw SequenceError("the stream is longer than " + std::to_string(most_) +
                                " words; split the problem");
        room_ = std::min(std::max({2 * room_, stream_words, count_ + count}), most_);
        std::unique_ptr<std::uint32_t[]> more(new std::uint32_t[room_]);  // not filled: next() is written to at once
        std::copy_n(words_.get(), count_, more.get());
        words_ = std::move(more);
    }

    const Target &target_;
    const std::size_t most_;
    std::unique_ptr<std::uint32_t[]> words_;
    std::size_t count_ = 0, room_ = 0;
    std::uint32_t operations_ = 0;
};

}  // namespace bdforge::generator::detail
