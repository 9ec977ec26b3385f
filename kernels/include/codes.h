// int8 numbers in bfloat16's lanes: 128 + |c| is a float by its bits, of which 128 is taken again.
#pragma once

#include "arch.h"

template <unsigned N> struct Codes {
    using Lanes = aie::vector<bfloat16, N>;
    aie::vector<int16, N> codes;

    explicit Codes(const aie::vector<int8, N> &found) : codes(found.unpack()) {}

    /// 128 + max(|c|, 1): no sum below is zero, whose sign the core does not tell.
    Lanes above() const {
        const auto size = aie::max(aie::abs(codes), aie::broadcast<int16, N>(1));
        return aie::add(size, aie::broadcast<int16, N>(0x4300)).template cast_to<bfloat16>();
    }
    /// `size`, that of a number, with the signs of codes; 0 where they are 0.
    Lanes with_signs(const Lanes &size) const {
        const auto signs = aie::bit_and(codes, aie::broadcast<int16, N>(-0x8000));
        const auto found = aie::bit_or(size.template cast_to<int16>(), signs);
        return aie::select(found, aie::zeros<int16, N>(), aie::eq(codes, static_cast<int16>(0)))
            .template cast_to<bfloat16>();
    }
};
