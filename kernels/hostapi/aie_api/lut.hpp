// Lookup tables of a kernel's own data: aie::lut and aie::parallel_lookup.
//
// Four lookups at a time read four copies of the table: `ab` and `cd` are alike, and in each of them every row of a
// bank (16 bytes on AIE2, 32 on AIE2P) stands twice, one after the other. A lookup faults where the copies differ.
#pragma once

#include "native.hpp"

namespace hostapi {

inline constexpr unsigned bank_row_bytes = aie::arch::version >= 21 ? 32 : 16;

}  // namespace hostapi

namespace aie {

enum class lut_oor_policy { saturate, truncate };

template <unsigned ParallelAccesses, class OffsetType, class SlopeType = OffsetType> class lut {
    static_assert(ParallelAccesses == 4, "aie::lut: the stand-in has four accesses in parallel; how tables for fewer "
                                         "lie in memory is not known");

  public:
    using offset_type = OffsetType;

    lut(unsigned elements, const void *ab, const void *cd)
        : elements_(elements), tables_{static_cast<const uint8_t *>(ab), static_cast<const uint8_t *>(cd)} {}

    // The rest serves parallel_lookup.
    unsigned elements() const { return elements_; }
    OffsetType value(unsigned i) const {
        const unsigned byte = i * sizeof(OffsetType), row = byte / hostapi::bank_row_bytes;
        const uint8_t *first = tables_[0] + byte + row * hostapi::bank_row_bytes;
        const uint8_t *third = tables_[1] + (first - tables_[0]);
        for (const uint8_t *copy : {first + hostapi::bank_row_bytes, third, third + hostapi::bank_row_bytes})
            if (std::memcmp(first, copy, sizeof(OffsetType)) != 0)
                hostapi::fail("aie::lut", "the copies of element " + std::to_string(i)
                                              + " differ; ab and cd must be alike, with every "
                                              + std::to_string(hostapi::bank_row_bytes) + " bytes twice");
        OffsetType x;
        std::memcpy(&x, first, sizeof x);
        return x;
    }

  private:
    unsigned elements_;
    const uint8_t *tables_[2];
};

/// Element (x >> step_bits) + bias of a table for each lane x; beyond the table its end, or, truncated, around it.
template <class T, class Lut, lut_oor_policy Policy = lut_oor_policy::saturate> class parallel_lookup {
  public:
    parallel_lookup(const Lut &table, unsigned step_bits, int bias = 0)
        : table_(table), step_bits_(step_bits), bias_(bias) {}

    template <unsigned N> auto fetch(const vector<T, N> &v) const {
        vector<typename Lut::offset_type, N> found;
        for (unsigned i = 0; i < N; ++i)
            found.set(table_.value(place(int64_t{v.get(i)})), i);
        return found;
    }

  private:
    unsigned place(int64_t x) const {
        const int64_t at = (x >> step_bits_) + bias_, elements = table_.elements();
        if (Policy == lut_oor_policy::truncate)
            return static_cast<unsigned>((at % elements + elements) % elements);
        return static_cast<unsigned>(at < 0 ? 0 : at < elements ? at : elements - 1);
    }

    Lut table_;
    unsigned step_bits_;
    int bias_;
};

}  // namespace aie
