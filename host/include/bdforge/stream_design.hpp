// What an instruction stream for a built GEMM design needs: the numbers of its manifest, under the same names.
//
// `array`, `tile` and everything in `runtime`. Registers, limits and addresses come from there alone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace bdforge::generator {

/// A register field: word of its group, lowest bit.
struct Field {
    std::uint32_t word;
    std::uint32_t low;
};

/// Fields of a shim's buffer descriptor. Wraps count from 1, steps from 0 (stored minus 1).
struct BdFields {
    Field length, d0_wrap, d0_step, d1_wrap, d1_step, d2_step, iteration_wrap, iteration_step, next, use_next;
};

/// A number for each operand: element bits, argument index, queue address.
struct Operands {
    std::uint32_t a, b, c;
};

/// The shims' limits and registers (of column 0).
struct Shim {
    struct QueueFields {
        std::uint32_t token, repeat, bd;  // lowest bits of the queue word's fields
    };
    struct Token {
        std::uint32_t direction, channel;  // of C
    };

    std::uint32_t bds;
    std::array<std::uint32_t, 2> wraps;  // largest sizes of d0 (words) and d1
    std::uint32_t step_max;              // words
    std::uint32_t iteration_max;
    std::uint32_t repeat_max;
    std::uint32_t tasks_in_flight;
    std::uint32_t bd_address;
    std::uint32_t bd_stride_bytes;
    std::array<std::uint32_t, 8> bd_constant;  // what every BD holds beside its fields
    BdFields bd_fields;
    std::uint32_t patched_word;  // low half of the host address; the high half follows
    Operands queue_addresses;
    QueueFields queue_fields;
    Token token;
};

/// Where one core keeps its run-time parameters, and the lock that says they are there.
struct Core {
    std::uint32_t k_steps, output_tiles, go;
};

/// A core's tile m x k x n and the depth k_mt of a slab of A in a memtile.
struct Tile {
    std::int64_t m, k, n, k_mt;
};

/// Cores used: rows and columns of the array.
struct Array {
    std::uint32_t rows, columns;
};

/// A built GEMM design.
struct Design {
    Tile tile;
    Array array;
    std::array<std::uint32_t, 2> header;  // first words of every stream
    Operands element_bits;
    std::int64_t largest_size;
    std::int64_t depth_limit;  // largest K that cannot overflow
    Operands arguments;
    std::vector<std::uint32_t> a_columns;  // by core row: the column through which its A enters
    std::vector<Core> cores;
    std::uint32_t column_stride;  // from a register to the same one of the next column
    Shim shim;
};

}  // namespace bdforge::generator
