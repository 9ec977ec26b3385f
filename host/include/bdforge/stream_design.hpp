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

/// A number for each operand, such as its queue's address.
struct Operands {
    std::uint32_t a, b, c;
};

/// Index of each argument; R and S hold the numbers that feed an epilogue, by row panel and by n-tile.
struct Arguments {
    std::uint32_t a, b, c, r, s;
};

/// Bytes of R for each row panel and of S for each n-tile that follow an n-tile of packed B; 0 where nothing is fed.
struct FedBytes {
    std::int64_t panel, tile;
};

// Orders of operands in host memory; packed: B tile by tile in the order in which the cores eat it.
constexpr std::uint32_t row_major = 0, column_major = 1, packed = 2;

/// How an operand lies in host memory: elements of `bits` bits, line after line. A line of row-major memory holds
/// `block` rows, `run` elements for each of their columns; both are 1 but for block floats.
struct Storage {
    std::uint32_t bits, order, block, run;
};

/// How A, B and C lie in host memory.
struct Storages {
    Storage a, b, c;
};

/// What one shim brings of A for each panel: `rows` rows, from `offset` in core row `row`'s tile on.
struct Feed {
    std::uint32_t column, row;
    std::int64_t offset, rows;
};

/// What M, K and N must be multiples of, so that every tile starts at a whole word.
struct Granules {
    std::int64_t m, k, n;
};

/// The shims' limits and registers (of column 0).
struct Shim {
    struct QueueFields {
        std::uint32_t token, repeat, bd;  // lowest bits of the queue word's fields
    };
    struct Token {
        std::uint32_t direction, channel;  // of C
        std::uint32_t columns;             // whose tokens one wait is for; waits for all columns follow one another
        std::uint32_t control_address, control_value, control_mask;  // what carries tokens to the controller
    };

    std::uint32_t bds;
    std::array<std::uint32_t, 2> wraps;  // largest sizes of d0 (words) and d1
    std::uint32_t step_max;              // words
    std::uint32_t iteration_max;
    std::uint32_t repeat_max;
    std::uint32_t tasks_in_flight;  // of a channel, as many as steps; so are tokens of a column on their way
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

/// A core's tile m x k x n and the depth k_mt of a memtile's slab.
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
    Storages operands;
    std::int64_t largest_size;
    std::int64_t depth_limit;  // largest K that cannot overflow
    Arguments arguments;
    FedBytes fed_bytes;
    std::vector<Feed> a_feeds;  // by column
    std::int64_t least_rows;    // smallest M that the shims can walk
    Granules granules;
    std::vector<Core> cores;
    std::uint32_t column_stride;  // from a register to the same one of the next column
    Shim shim;
};

}  // namespace bdforge::generator
