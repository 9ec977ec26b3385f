// Comparisons, masks and select.
#pragma once

#include <bitset>

#include "arithmetic.hpp"

namespace aie {

/// One bit per lane, bit i for lane i.
template <unsigned N> class mask {
  public:
    mask() = default;
    explicit mask(const std::bitset<N> &bits) : bits_(bits) {}

    static mask from_uint32(uint32_t bits) {
        static_assert(N <= 32, "aie::mask::from_uint32: more than 32 lanes");
        return mask(std::bitset<N>(bits));
    }
    static mask from_uint64(uint64_t bits) {
        static_assert(N <= 64, "aie::mask::from_uint64: more than 64 lanes");
        return mask(std::bitset<N>(bits));
    }

    static constexpr unsigned size() { return N; }
    unsigned count() const { return static_cast<unsigned>(bits_.count()); }
    bool test(unsigned lane) const { return bits_[lane]; }
    void set(unsigned lane) { bits_.set(lane); }
    void clear(unsigned lane) { bits_.reset(lane); }
    void set() { bits_.set(); }
    void clear() { bits_.reset(); }
    bool empty() const { return bits_.none(); }
    bool full() const { return bits_.all(); }
    uint32_t to_uint32(unsigned word = 0) const { return static_cast<uint32_t>(part(32 * word, 32)); }
    uint64_t to_uint64(unsigned word = 0) const { return part(64 * word, 64); }

    mask operator~() const { return mask(~bits_); }
    mask operator&(const mask &other) const { return mask(bits_ & other.bits_); }
    mask operator|(const mask &other) const { return mask(bits_ | other.bits_); }
    mask operator^(const mask &other) const { return mask(bits_ ^ other.bits_); }
    mask operator<<(unsigned n) const { return mask(bits_ << n); }
    mask operator>>(unsigned n) const { return mask(bits_ >> n); }

  private:
    uint64_t part(unsigned first, unsigned bits) const {
        uint64_t word = 0;
        for (unsigned i = 0; i < bits && first + i < N; ++i)
            word |= uint64_t{bits_[first + i]} << i;
        return word;
    }

    std::bitset<N> bits_;
};

}  // namespace aie

namespace hostapi {

template <class A, class B, class F> auto compared(const char *call, const A &a, const B &b, F f) {
    using V = joined_t<A, B>;
    const V left = operand<V>(a), right = operand<V>(b);
    left.read(call);
    right.read(call);
    aie::mask<V::size()> result;
    for (unsigned i = 0; i < V::size(); ++i)
        if (f(left.at(i), right.at(i)))
            result.set(i);
    return result;
}

}  // namespace hostapi

namespace aie {

template <class A, class B> auto lt(const A &a, const B &b) {
    return hostapi::compared("aie::lt", a, b, [](auto x, auto y) { return x < y; });
}
template <class A, class B> auto le(const A &a, const B &b) {
    return hostapi::compared("aie::le", a, b, [](auto x, auto y) { return x <= y; });
}
template <class A, class B> auto gt(const A &a, const B &b) {
    return hostapi::compared("aie::gt", a, b, [](auto x, auto y) { return x > y; });
}
template <class A, class B> auto ge(const A &a, const B &b) {
    return hostapi::compared("aie::ge", a, b, [](auto x, auto y) { return x >= y; });
}
template <class A, class B> auto eq(const A &a, const B &b) {
    return hostapi::compared("aie::eq", a, b, [](auto x, auto y) { return x == y; });
}
template <class A, class B> auto neq(const A &a, const B &b) {
    return hostapi::compared("aie::neq", a, b, [](auto x, auto y) { return x != y; });
}

/// Lane i of v1 where bit i of m is set, else of v0.
template <class A, class B, unsigned N> auto select(const A &v0, const B &v1, const mask<N> &m) {
    using V = hostapi::joined_t<A, B>;
    static_assert(V::size() == N, "aie::select: the mask must have one bit per lane");
    const V zeros = hostapi::operand<V>(v0), ones = hostapi::operand<V>(v1);
    zeros.read("aie::select");
    ones.read("aie::select");
    V result = zeros;
    for (unsigned i = 0; i < N; ++i)
        if (m.test(i))
            result.put(i, ones.at(i));
    return result;
}

}  // namespace aie
