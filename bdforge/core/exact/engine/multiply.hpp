// The multiplier, of integers.
#pragma once

#include "bytes.hpp"


namespace engine::multiply {

using I = std::int64_t;

struct Shape {
    std::int32_t amode, bmode, variant, rows, depth, columns, bits1, bits2, lane, sparse;
};

// Those of AIE2P and of AIE2, then of their sparse products, handed over by Python.
using Shapes = std::array<std::vector<Shape>, 4>;
inline Shapes kShapes;
constexpr int kSparse = 2;  // tables from here on are of sparse products

inline const Shape* find(int table, std::uint32_t conf) {
    const std::int32_t amode = conf >> 1 & 3, bmode = conf >> 3 & 3, variant = conf >> 5 & 7;
    for (const Shape& s : kShapes[table])
        if (s.amode == amode && s.bmode == bmode && s.variant == variant) return &s;
    return nullptr;
}

inline const Shape* shape_of(Core& core, int table, std::uint32_t conf) {
    const Shape* shape = find(table, conf);
    if (!shape)
        core.fail(kOpen, "amode %d, bmode %d, variant %d of a multiplication are open", conf >> 1 & 3, conf >> 3 & 3,
                  conf >> 5 & 7);
    else if (conf >> 16)
        core.fail(kOpen, "sub_mask %#x of a multiplication is open", conf >> 16);
    return core.fault ? nullptr : shape;
}

// A matrix of bytes or halves of which two of each four elements of a column are stored, as the mask behind says which.
inline void expand(const Shape& s, const std::uint8_t* stored, std::uint8_t* to) {
    const int groups = s.depth / 4, bytes = s.bits2 / 8;
    const std::uint8_t* const mask = stored + 64;
    std::memset(to, 0, std::size_t(s.depth) * s.columns * bytes);
    for (int column = 0; column < s.columns; ++column)
        for (int r = 0; r < groups; ++r) {
            const int number = r + groups * column, bits = mask[number / 2] >> (number % 2 * 4) & 15;
            const int count = __builtin_popcount(unsigned(bits));
            for (int row = 0, slot = 0; row < 4 && count <= 2; ++row) {
                if (!(bits >> row & 1)) continue;
                const int from = count == 2 ? slot++ : row / 2;
                std::memcpy(to + ((4 * r + row) * s.columns + column) * bytes,
                            stored + ((2 * r + from) * s.columns + column) * bytes, bytes);
            }
        }
}

template <class L>
void product(const Shape& s, const std::uint8_t* s1, const std::uint8_t* s2, bool sign1, bool sign2, L* p) {
    using width::lane_of;
    if (!s.depth) {
        for (int i = 0; i < s.rows; ++i) p[i] = L(lane_of(s1, s.bits1, i, sign1) * lane_of(s2, s.bits2, i, sign2));
        return;
    }
    std::uint8_t dense[256];  // at most 16 x 8 elements of two bytes
    if (s.sparse) {
        expand(s, s2, dense);
        s2 = dense;
    }
    for (int i = 0; i < s.rows; ++i)
        for (int j = 0; j < s.columns; ++j) {
            I sum = 0;
            for (int k = 0; k < s.depth; ++k)
                sum += lane_of(s1, s.bits1, i * s.depth + k, sign1) * lane_of(s2, s.bits2, k * s.columns + j, sign2);
            p[i * s.columns + j] = L(sum);
        }
}

constexpr int kProduct = 64;  // where a product lies behind its conf

// Rows of products of int8 matrices, of depth 8 and 8 columns, by table; 0 where a conf chooses another product.
BDFORGE_OFTEN int usual_rows(int table, std::uint32_t conf) {
    constexpr int kRows[] = {8, 4};
    return table < kSparse && (conf & ~0x3F01u) == 0x8 ? kRows[table] : 0;
}

BDFORGE_SELDOM void unusual(int table, std::uint32_t conf, const std::uint8_t* s1, const std::uint8_t* s2, std::uint8_t* to) {
    const bool sign1 = conf >> 9 & 1, sign2 = conf >> 8 & 1;
    const Shape* shape = find(table, conf);
    if (!shape) return;
    if (shape->lane == 32) product(*shape, s1, s2, sign1, sign2, reinterpret_cast<std::uint32_t*>(to));
    else product(*shape, s1, s2, sign1, sign2, reinterpret_cast<std::uint64_t*>(to));
}

// a: s1, s2, conf, product; o: number of the shapes. A conf that is open is left to `accumulated`, in its cycle.
BDFORGE_OFTEN void multiply(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t conf = word(core, event, buffer, 2);
    const std::uint8_t* s1 = core.at(event.a[0], buffer);
    const std::uint8_t* s2 = core.at(event.a[1], buffer);
    std::uint8_t* to = buffer + ~event.a[3];
    save(to, conf);
    if (const int rows = usual_rows(event.o[0], conf))
        return bytes::product(rows, s1, s2, conf >> 9 & 1, conf >> 8 & 1, reinterpret_cast<std::int32_t*>(to + kProduct));
    unusual(event.o[0], conf, s1, s2, to + kProduct);
}

template <class L>
void add(L* __restrict total, const std::uint8_t* accumulator, int count, int shift, bool minus) {
    const L* from = reinterpret_cast<const L*>(accumulator);
    if (minus)
        for (int i = 0; i < count; ++i) total[i] -= from[i] << shift;
    else if (shift)
        for (int i = 0; i < count; ++i) total[i] += from[i] << shift;
    else
        for (int i = 0; i < count; ++i) total[i] += from[i];
}

constexpr std::uint32_t kOdd = 0x3C00;  // bits of conf: anything but a product and sums of it and accumulators

constexpr int kLanes = 64;  // of usual products of AIE2P

BDFORGE_OFTEN void add_up(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* total) {
    using Wide [[gnu::vector_size(64), gnu::aligned(1), gnu::may_alias]] = std::uint32_t;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kLanes * sizeof(std::uint32_t) / sizeof(Wide); ++i)
        reinterpret_cast<Wide*>(total)[i] = reinterpret_cast<const Wide*>(a)[i] + reinterpret_cast<const Wide*>(b)[i];
}

// U is unsigned: lanes wrap. The result may lie where an accumulator does.
template <class U>
void sum(Core& core, const Event& event, std::uint8_t* buffer, int count, std::uint32_t conf) {
    const int accumulators = event.o[1];
    const bool minus = (event.o[2] != 0) != ((conf >> 11 & 1) != 0);
    const U* product = reinterpret_cast<const U*>(buffer + ~event.a[accumulators] + kProduct);
    U total[64];
    for (int i = 0; i < count; ++i) total[i] = minus ? U(0) - product[i] : product[i];
    if (accumulators > 0 && !(conf & 1))
        add(total, core.at(event.a[0], buffer), count, conf >> 10 & 1 ? 16 : 0, conf >> 12 & 1);
    if (accumulators > 1) add(total, core.at(event.a[1], buffer), count, 0, (conf >> 13 & 1) != std::uint32_t(event.o[3]));
    std::memcpy(core.at(event.a[accumulators + 1], buffer), total, sizeof(U) * count);
}

BDFORGE_SELDOM void accumulated_any(Core& core, const Event& event, std::uint8_t* buffer, std::uint32_t conf) {
    const Shape* shape = shape_of(core, event.o[0], conf);
    if (!shape) return;
    const int count = shape->rows * shape->columns;
    core.macs[event.place] += count * std::max(shape->depth, 1) >> shape->sparse;
    if (shape->lane == 32) sum<std::uint32_t>(core, event, buffer, count, conf);
    else sum<std::uint64_t>(core, event, buffer, count, conf);
}

// a: accumulators, product, dst; o: number of the shapes, accumulators, minus the product, minus the second accumulator.
BDFORGE_OFTEN void accumulated(Core& core, const Event& event, std::uint8_t* buffer) {
    const int accumulators = event.o[1];
    const auto conf = load<std::uint32_t>(buffer + ~event.a[accumulators]);
    if (usual_rows(event.o[0], conf) != 8 || event.o[2] || event.o[3] || conf & kOdd)
        return accumulated_any(core, event, buffer, conf);
    core.macs[event.place] += kLanes * 8;
    const std::uint8_t* product = buffer + ~event.a[accumulators] + kProduct;
    std::uint8_t* total = core.at(event.a[accumulators + 1], buffer);
    if (!accumulators || conf & 1) move<kLanes * sizeof(std::uint32_t)>(product, total);
    else add_up(core.at(event.a[0], buffer), product, total);
    if (accumulators > 1) add_up(core.at(event.a[1], buffer), total, total);
}

// Whether a product waits for its sum, which makes it then: one of signed bytes.
BDFORGE_OFTEN bool can_wait(const Event& product, std::uint32_t conf) {
    constexpr std::uint32_t kSigned = 0x300;
    return usual_rows(product.o[0], conf) == 8 && (conf & (kOdd | kSigned)) == kSigned;
}

// As `multiply`, of a product that `multiply_accumulated` makes: only its operands are taken, where it would lie.
BDFORGE_OFTEN void take(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint32_t conf = word(core, event, buffer, 2);
    if (!can_wait(event, conf)) return multiply(core, event, buffer);
    std::uint8_t* const to = buffer + ~event.a[3];
    save(to, conf);
    move<64>(core.at(event.a[0], buffer), to + kProduct);
    move<64>(core.at(event.a[1], buffer), to + kProduct + 64);
}

BDFORGE_SELDOM void one_behind_the_other(Core& core, const Event& product, const Event& sum, std::uint8_t* buffer) {
    multiply(core, product, buffer);
    accumulated(core, sum, buffer);
}

// A product and the sum that takes it, in one; its operands were taken, or have stayed in their registers.
template <bool Taken>
BDFORGE_OFTEN void multiply_accumulated(Core& core, const Event& product, const Event& sum, std::uint8_t* buffer) {
    std::uint8_t* const taken = buffer + ~product.a[3];
    const std::uint32_t conf = Taken ? load<std::uint32_t>(taken) : word(core, product, buffer, 2);
    if (!can_wait(product, conf)) return Taken ? accumulated(core, sum, buffer) : one_behind_the_other(core, product, sum, buffer);
    const int accumulators = sum.o[1];
    bytes::Sums sums;
    if (accumulators) sums = {core.at(sum.a[0], buffer), nullptr, std::uint16_t((conf & 1) - 1)};
    if (accumulators > 1) sums.second = core.at(sum.a[1], buffer);
    bytes::add_product<8>(Taken ? taken + kProduct : core.at(product.a[0], buffer), Taken ? taken + kProduct + 64 : core.at(product.a[1], buffer),
                          sums, core.at(sum.a[accumulators + 1], buffer));
    core.macs[sum.place] += kLanes * 8;
}

// a: accumulators, conf, dst; o: bits, minus acc1, minus acc2, accumulators.
inline void accumulate(Core& core, const Event& event, std::uint8_t* buffer) {
    const int n = event.o[3];
    const std::uint32_t conf = word(core, event, buffer, n), amode = conf >> 1 & 3;
    if (amode > 1) return core.fail(kOpen, "amode %u of an addition of accumulators is open", amode);
    if (conf & 0x3C01 || conf >> 16) return core.fail(kOpen, "conf %#x of an addition of accumulators is open", conf);
    const auto run = [&](auto zero) {
        using U = decltype(zero);
        U total[64] = {};
        const int count = event.o[0] / (8 * int(sizeof(U)));
        for (int i = 0; i < n; ++i) add(total, core.at(event.a[i], buffer), count, 0, event.o[1 + i] != 0);
        std::memcpy(core.at(event.a[n + 1], buffer), total, sizeof(U) * count);
    };
    if (amode) run(std::uint64_t{});
    else run(std::uint32_t{});
}

inline constexpr Named kTable[] = {{"multiply", multiply}, {"accumulated", accumulated}, {"accumulate", accumulate}};

}  // namespace engine::multiply
