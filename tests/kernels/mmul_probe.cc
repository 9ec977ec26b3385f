// Every legal aie::mmul shape of an architecture, called by its place in the table.
#include <aie_api/aie.hpp>

#include <iterator>
#include <utility>

namespace {

#if __AIE_ARCH__ >= 21
constexpr auto &shapes = hostapi::mmul_shapes_aie2p;
#else
constexpr auto &shapes = hostapi::mmul_shapes_aie2;
#endif

template <unsigned Bits, bool Signed> auto element_of() {
    if constexpr (Bits == 4)
        return std::conditional_t<Signed, int4, uint4>{};
    else if constexpr (Bits == 8)
        return std::conditional_t<Signed, int8, uint8>{};
    else if constexpr (Bits == 16)
        return std::conditional_t<Signed, int16, uint16>{};
    else
        return std::conditional_t<Signed, int32, uint32>{};
}

template <hostapi::MmulShape S, bool SignedA>
void multiply_as(const void *a, const void *b, int32 *c, int64 *wide) {
    using TA = decltype(element_of<S.bits_a, SignedA>());
    using TB = decltype(element_of<S.bits_b, !SignedA>());
    using MMUL = aie::mmul<S.m, S.k, S.n, TA, TB>;
    const auto va = aie::load_v<MMUL::size_A>(static_cast<const TA *>(a));
    const auto vb = aie::load_v<MMUL::size_B>(static_cast<const TB *>(b));
    MMUL product;
    product.mac(va, vb);
    product.mac(va, vb);
    aie::store_v(c, product.template to_vector<int32>());
    for (unsigned i = 0; i < MMUL::size_C; ++i)
        wide[i] = product.to_accum().raw()[i];
}

template <unsigned I> void multiply(bool signed_a, const void *a, const void *b, int32 *c, int64 *wide) {
    if (signed_a)
        multiply_as<shapes[I], true>(a, b, c, wide);
    else
        multiply_as<shapes[I], false>(a, b, c, wide);
}

template <size_t... I>
void dispatch(unsigned index, bool signed_a, const void *a, const void *b, int32 *c, int64 *wide,
              std::index_sequence<I...>) {
    ((index == I ? multiply<I>(signed_a, a, b, c, wide) : void()), ...);
}

}  // namespace

extern "C" int shape_count() { return std::size(shapes); }

/// Six numbers: bits of A and B, m, k, n, bits of the accumulator.
extern "C" void shape(unsigned index, uint32 *out) {
    const auto &s = shapes[index];
    const uint32 numbers[] = {s.bits_a, s.bits_b, s.m, s.k, s.n, s.accumulator_bits};
    std::memcpy(out, numbers, sizeof numbers);
}

/// 2 * A * B, one operand signed and the other unsigned: as int32 after to_vector, and as the accumulator's lanes.
extern "C" void multiply(unsigned index, unsigned signed_a, const void *a, const void *b, int32 *c, int64 *wide) {
    dispatch(index, signed_a != 0, a, b, c, wide, std::make_index_sequence<std::size(shapes)>());
}
