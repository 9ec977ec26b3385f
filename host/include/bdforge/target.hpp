// Limits and registers of an array's shims, with which a sequence becomes words.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace bdforge::generator {

/// A register field: word of its group, lowest bit.
struct Field {
    std::uint32_t word, low;
};

/// Fields of a shim's buffer descriptor. Wraps count from 1, steps from 0 (stored minus 1).
struct BdFields {
    Field length, d0_wrap, d0_step, d1_wrap, d1_step, d2_step, iteration_wrap, iteration_step, next, use_next;
};

/// Lowest bits of a task queue's fields.
struct QueueFields {
    std::uint32_t token, repeat, bd;
};

/// The manifest's `sequence.target`; registers are those of column 0.
struct Target {
    std::array<std::uint32_t, 2> header;  // first words of every stream
    std::uint32_t columns;
    std::uint32_t column_stride;  // from a register to the same one of the next column
    std::uint32_t bds;
    std::array<std::uint32_t, 2> wraps;  // largest sizes of d0 (words) and d1
    std::uint32_t step_max;              // words
    std::uint32_t iteration_max, length_max, repeat_max, queue_entries;
    std::uint32_t bd_address, bd_stride_bytes;
    std::array<std::uint32_t, 8> bd_constant;  // what every BD holds beside its fields
    BdFields bd_fields;
    std::uint32_t patched_word;                       // low half of the host address; the high half follows
    std::array<std::vector<std::uint32_t>, 2> queues;  // by direction and channel
    QueueFields queue_fields;
    std::array<std::vector<std::uint32_t>, 2> controls;
    std::uint32_t control_value, control_mask;  // what carries tokens to the controller
};

}  // namespace bdforge::generator
