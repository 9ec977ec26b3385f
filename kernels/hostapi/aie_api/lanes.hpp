// Which lanes of a vector or accumulator hold a value. Whole registers fold to constants in optimised kernels.
#pragma once

#include "config.hpp"

#include <array>
#include <cstdint>

namespace hostapi {

template <unsigned N> class Lanes {
  public:
    static HOSTAPI_INLINE Lanes all() {
        Lanes lanes;
        lanes.set_all();
        return lanes;
    }

    HOSTAPI_INLINE void set_all() { words_.fill(full); }
    HOSTAPI_INLINE void set(unsigned lane) { words_[lane / 64] |= uint64_t{1} << (lane % 64); }
    HOSTAPI_INLINE bool has(unsigned lane) const { return (words_[lane / 64] >> (lane % 64)) & 1; }
    HOSTAPI_INLINE bool complete() const {
        for (const uint64_t word : words_)
            if (word != full)
                return false;
        return true;
    }

    /// Lane `first + i` becomes lane `i` of `part`.
    template <unsigned M> HOSTAPI_INLINE void assign(unsigned first, const Lanes<M> &part) {
        for (unsigned i = 0; i < M; ++i)
            put(first + i, part.has(i));
    }

    template <unsigned M> HOSTAPI_INLINE Lanes<M> part(unsigned first) const {
        Lanes<M> lanes;
        for (unsigned i = 0; i < M; ++i)
            if (has(first + i))
                lanes.set(i);
        return lanes;
    }

    unsigned first_missing() const {
        unsigned lane = 0;
        while (lane < N && has(lane))
            ++lane;
        return lane;
    }

  private:
    static constexpr uint64_t full = N >= 64 ? ~uint64_t{0} : (uint64_t{1} << (N % 64)) - 1;

    void put(unsigned lane, bool defined) {
        const uint64_t bit = uint64_t{1} << (lane % 64);
        words_[lane / 64] = defined ? words_[lane / 64] | bit : words_[lane / 64] & ~bit;
    }

    std::array<uint64_t, (N + 63) / 64> words_{};
};

}  // namespace hostapi
