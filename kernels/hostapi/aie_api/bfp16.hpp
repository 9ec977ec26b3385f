// bfp16ebs8: blocks of 8 values with a shared exponent, their conversions and their streams (AIE2P).
//
// In memory a block is 9 bytes: the exponent E (biased by 127), then 8 mantissas as int8. A value is
// mantissa * 2^(E - 133). Of 8 floats, E is the largest biased exponent; mantissas are rounded to nearest even on the
// magnitude, and where one would be +128 all eight are made again with E + 1; at E = 254 they are clamped to -127..127.
// In the mode floor they are rounded down. How a core rounds them in other modes is not known, so these fault.
// Subnormal floats count as 0, a block of zeros has E = 0, and infinity and NaN fault.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "vector.hpp"

/// As with Peano, an empty tag of one byte: pointers to it do not step by elements. Streams do.
struct bfp16ebs8 {};
static_assert(sizeof(bfp16ebs8) == 1);

namespace hostapi {

inline constexpr unsigned block_elements = 8;
inline constexpr unsigned block_bytes = 9;
inline constexpr int mantissa_bias = 133;  // 127 of the exponent, and 6 bits after the mantissa's binary point

/// Mantissas and exponents as the register holds them.
template <unsigned N> struct Blocks {
    alignas(64) int8_t mantissas[N];
    alignas(8) uint8_t exponents[N / block_elements];
};

/// Mantissas of one block of floats at exponent `shared`, rounded down or to nearest even. Returns whether all fit.
inline bool round_block(const uint32_t *bits, int shared, bool down, int32_t *mantissas) {
    bool fits = true;
    for (unsigned i = 0; i < block_elements; ++i) {
        const auto exponent = static_cast<int32_t>((bits[i] >> 23) & 255);
        const uint32_t significand = exponent == 0 ? 0 : (bits[i] & 0x7fffff) | 0x800000;
        const auto shift = static_cast<uint32_t>(std::min(shared - exponent + 17, 30));
        const uint32_t nearest = (1u << (shift - 1)) - 1 + ((significand >> shift) & 1);
        const uint32_t away = bits[i] >> 31 ? (1u << shift) - 1 : 0;
        const uint32_t magnitude = (significand + (down ? away : nearest)) >> shift;
        mantissas[i] = bits[i] >> 31 ? -static_cast<int32_t>(magnitude) : static_cast<int32_t>(magnitude);
        fits &= mantissas[i] <= 127;
    }
    return fits;
}

/// One block, whatever its values: the meaning of the conversion.
[[gnu::noinline]] inline void encode_block(const char *call, const float *values, int8_t *mantissas,
                                           uint8_t *exponent) {
    uint32_t bits[block_elements];
    std::memcpy(bits, values, sizeof bits);
    uint32_t largest = 0;
    for (const uint32_t word : bits)
        largest = std::max(largest, (word >> 23) & 255);
    if (largest == 255)
        fail(call, "a value is infinite or NaN, which bfp16ebs8 cannot hold");
    auto shared = static_cast<int>(largest);
    const bool down = core_state.rounding == aie::rounding_mode::floor;
    int32_t rounded[block_elements];
    if (!round_block(bits, shared, down, rounded) && shared < 254)
        round_block(bits, ++shared, down, rounded);
    for (unsigned i = 0; i < block_elements; ++i)
        mantissas[i] = static_cast<int8_t>(std::clamp(rounded[i], shared < 254 ? -128 : -127, 127));
    *exponent = static_cast<uint8_t>(shared);
}

/// Exponents whose blocks a multiplication by 2^(133 - E) brings to mantissas: the scale is a normal float, subnormal
/// values come out as 0, and nothing is clamped. 0 is one of them, as then all values are to become 0.
inline bool usual_exponent(int32_t shared) { return shared == 0 || (shared >= 16 && shared < 254); }

/// To nearest even, whole registers of usual values at a time.
template <unsigned N> void encode_nearest(const char *call, const float *values, Blocks<N> &blocks) {
    typedef float Floats __attribute__((vector_size(32)));
    typedef int32_t Ints __attribute__((vector_size(32)));
    alignas(64) int32_t mantissas[N];
    bool usual = true;
    Ints excess{};
    for (unsigned block = 0; block < N / block_elements; ++block) {
        Ints bits;
        std::memcpy(&bits, values + block * block_elements, sizeof bits);
        Ints largest = bits & 0x7f800000;
        Ints other = __builtin_shufflevector(largest, largest, 4, 5, 6, 7, 0, 1, 2, 3);
        largest = largest > other ? largest : other;
        other = __builtin_shufflevector(largest, largest, 2, 3, 0, 1, 6, 7, 4, 5);
        largest = largest > other ? largest : other;
        other = __builtin_shufflevector(largest, largest, 1, 0, 3, 2, 5, 4, 7, 6);
        largest = largest > other ? largest : other;
        const int32_t shared = largest[0] >> 23;
        usual &= usual_exponent(shared);
        const float scale = std::bit_cast<float>(static_cast<uint32_t>(shared == 0 ? 127 : 260 - shared) << 23);
        // Adding 1.5 * 2^23 rounds to nearest even and leaves the integer in the low bits.
        const Floats sums = (Floats)bits * scale + 12582912.0f;
        const Ints rounded = (Ints)sums - 0x4b400000;
        excess |= rounded > 127;
        std::memcpy(mantissas + block * block_elements, &rounded, sizeof rounded);
        blocks.exponents[block] = static_cast<uint8_t>(shared);
    }
    for (unsigned i = 0; i < N; ++i)
        blocks.mantissas[i] = static_cast<int8_t>(mantissas[i]);
    for (unsigned i = 0; i < block_elements; ++i)
        usual &= excess[i] == 0;
    if (usual) [[likely]]
        return;
    for (unsigned block = 0; block < N / block_elements; ++block) {
        const unsigned first = block * block_elements;
        const int32_t highest = *std::max_element(mantissas + first, mantissas + first + block_elements);
        if (highest > 127 || !usual_exponent(blocks.exponents[block]))
            encode_block(call, values + first, blocks.mantissas + first, blocks.exponents + block);
    }
}

/// N floats as block floats, by the core's rounding mode.
template <unsigned N> HOSTAPI_INLINE void encode(const char *call, const float *values, Blocks<N> &blocks) {
    const aie::rounding_mode mode = core_state.rounding;
    if (mode == aie::rounding_mode::conv_even) [[likely]]
        return encode_nearest(call, values, blocks);
    if (mode != aie::rounding_mode::floor)
        fail(call, "the rounding mode is neither conv_even nor floor; how block floats are rounded in others is not "
                   "known, so call aie::set_rounding(aie::rounding_mode::conv_even) first");
    for (unsigned i = 0; i < N / block_elements; ++i)
        encode_block(call, values + i * block_elements, blocks.mantissas + i * block_elements, blocks.exponents + i);
}

/// Exact, but for magnitudes from 2^128 on, which become infinite.
template <unsigned N> HOSTAPI_INLINE void decode(const Blocks<N> &blocks, float *values) {
    for (unsigned block = 0; block < N / block_elements; ++block) {
        // Two factors, as 2^(E - 133) alone may be subnormal; the products are exact in either order.
        const float high = std::ldexp(1.0f, blocks.exponents[block] / 2 - 66);
        const float low = std::ldexp(1.0f, (blocks.exponents[block] + 1) / 2 - 67);
        for (unsigned i = block * block_elements; i < (block + 1) * block_elements; ++i)
            values[i] = static_cast<float>(blocks.mantissas[i]) * high * low;
    }
}

}  // namespace hostapi

namespace aie {

/// N values in blocks of 8. Undefined until it is made from a stream or an accumulator.
template <class T, unsigned N> class block_vector {
    static_assert(arch::version >= (N == 0 ? 0 : 21), "aie::block_vector: AIE2 has no block floating point");
    static_assert(std::is_same_v<T, bfp16ebs8>, "aie::block_vector: the stand-in has bfp16ebs8 only");
    static_assert(N == 64 || N == 128, "aie::block_vector: 64 or 128 values");

  public:
    using value_type = T;

    static constexpr unsigned size() { return N; }
    static constexpr unsigned memory_bytes() { return N / hostapi::block_elements * hostapi::block_bytes; }

    block_vector() {}

    // The rest serves the other headers of the stand-in.
    HOSTAPI_INLINE hostapi::Blocks<N> &write() {
        defined_ = true;
        return blocks_;
    }
    HOSTAPI_INLINE const hostapi::Blocks<N> &read(const char *call) const {
        if (!defined_) [[unlikely]]
            hostapi::fail_undefined(call, "block vector", 0);
        return blocks_;
    }

  private:
    hostapi::Blocks<N> blocks_;
    bool defined_ = false;
};

template <class V> struct transposed_operand {
    const V &value;
};

/// Says that the operand is stored as its transpose: the only way to pass B of a block-float product.
template <class T, unsigned N> HOSTAPI_INLINE auto op_transpose(const block_vector<T, N> &v) {
    return transposed_operand<block_vector<T, N>>{v};
}

/// Reads blocks one after another from any byte address.
template <class T, unsigned N> class block_vector_input_buffer_stream {
  public:
    explicit block_vector_input_buffer_stream(const T *p) : p_(reinterpret_cast<const uint8_t *>(p)) {}

    HOSTAPI_INLINE block_vector<T, N> pop() {
        block_vector<T, N> v;
        hostapi::Blocks<N> &blocks = v.write();
        for (unsigned i = 0; i < N / hostapi::block_elements; ++i) {
            blocks.exponents[i] = p_[i * hostapi::block_bytes];
            std::memcpy(blocks.mantissas + i * hostapi::block_elements, p_ + i * hostapi::block_bytes + 1,
                        hostapi::block_elements);
        }
        seek(1);
        return v;
    }
    /// Reads one, advances by one, then moves `blocks` more.
    HOSTAPI_INLINE block_vector<T, N> pop_seek(int blocks) {
        const auto v = pop();
        seek(blocks);
        return v;
    }
    HOSTAPI_INLINE block_vector_input_buffer_stream &seek(int blocks) {
        p_ += blocks * static_cast<int>(block_vector<T, N>::memory_bytes());
        return *this;
    }
    HOSTAPI_INLINE block_vector_input_buffer_stream &operator>>(block_vector<T, N> &v) {
        v = pop();
        return *this;
    }

  private:
    const uint8_t *p_;
};

/// Writes blocks one after another to any byte address. The device has all of them in memory when the stream ends.
template <class T, unsigned N> class block_vector_output_buffer_stream {
  public:
    explicit block_vector_output_buffer_stream(T *p) : p_(reinterpret_cast<uint8_t *>(p)) {}

    HOSTAPI_INLINE void push(const block_vector<T, N> &v) {
        const hostapi::Blocks<N> &blocks = v.read("aie::block_vector_output_buffer_stream::push");
        for (unsigned i = 0; i < N / hostapi::block_elements; ++i) {
            p_[i * hostapi::block_bytes] = blocks.exponents[i];
            std::memcpy(p_ + i * hostapi::block_bytes + 1, blocks.mantissas + i * hostapi::block_elements,
                        hostapi::block_elements);
        }
        seek(1);
    }
    HOSTAPI_INLINE void push_seek(const block_vector<T, N> &v, int blocks) {
        push(v);
        seek(blocks);
    }
    HOSTAPI_INLINE block_vector_output_buffer_stream &seek(int blocks) {
        p_ += blocks * static_cast<int>(block_vector<T, N>::memory_bytes());
        return *this;
    }
    HOSTAPI_INLINE block_vector_output_buffer_stream &operator<<(const block_vector<T, N> &v) {
        push(v);
        return *this;
    }

  private:
    uint8_t *p_;
};

template <class T, unsigned N>
using block_vector_restrict_input_buffer_stream = block_vector_input_buffer_stream<T, N>;
template <class T, unsigned N>
using block_vector_restrict_output_buffer_stream = block_vector_output_buffer_stream<T, N>;

}  // namespace aie
