// Operations on vectors of integer lanes in 64 bytes.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core.hpp"

namespace engine::lanes {

constexpr int kBytes = 64;

template <class T>
struct Lanes {
    static constexpr int count = kBytes / int(sizeof(T));
    T lane[count];
};

template <class F>
BDFORGE_OFTEN void of_width(int bits, F f) {
    switch (bits) {
        case 8: return f(std::uint8_t{}, std::int8_t{});
        case 16: return f(std::uint16_t{}, std::int16_t{});
        case 32: return f(std::uint32_t{}, std::int32_t{});
        case 64: return f(std::uint64_t{}, std::int64_t{});
    }
}

template <class T>
BDFORGE_OFTEN Lanes<T> read(Core& core, const Event& event, std::uint8_t* buffer, int i) {
    return load<Lanes<T>>(core.at(event.a[i], buffer));
}

template <class T>
BDFORGE_OFTEN void write(Core& core, const Event& event, std::uint8_t* buffer, int i, const Lanes<T>& value) {
    save(core.at(event.a[i], buffer), value);
}

// Lanes in vectors of this machine.
template <class T>
using Wide [[gnu::vector_size(kBytes), gnu::aligned(1), gnu::may_alias]] = T;

template <class T>
BDFORGE_OFTEN Wide<T> wide(Core& core, const Event& event, std::uint8_t* buffer, int i) {
    return *reinterpret_cast<const Wide<T>*>(core.at(event.a[i], buffer));
}

// a: s1, s2, d; o: bits, subtract.
BDFORGE_OFTEN void vadd(Core& core, const Event& event, std::uint8_t* buffer) {
    of_width(event.o[0], [&](auto u, auto) BDFORGE_INLINED {
        using T = decltype(u);
        const Wide<T> x = wide<T>(core, event, buffer, 0), y = wide<T>(core, event, buffer, 1);
        *reinterpret_cast<Wide<T>*>(core.at(event.a[2], buffer)) = event.o[1] ? x - y : x + y;
    });
}

// The mask of a lane-wise operation: lanes of 8 bits have 64 of them.
inline std::uint64_t mask_at(Core& core, const Event& event, std::uint8_t* buffer, int i) {
    return event.o[0] == 8 ? load<std::uint64_t>(core.at(event.a[i], buffer)) : word(core, event, buffer, i);
}

// a: s1, s2, mask, d; o: bits.
inline void vadd_or_subtract(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint64_t mask = mask_at(core, event, buffer, 2);
    of_width(event.o[0], [&](auto u, auto) {
        using T = decltype(u);
        auto x = read<T>(core, event, buffer, 0), y = read<T>(core, event, buffer, 1);
        for (int i = 0; i < x.count; ++i) x.lane[i] = T(mask >> i & 1 ? x.lane[i] - y.lane[i] : x.lane[i] + y.lane[i]);
        write(core, event, buffer, 3, x);
    });
}

template <bool And>
BDFORGE_OFTEN void vbitwise(Core& core, const Event& event, std::uint8_t* buffer) {
    using T = std::uint64_t;
    const Wide<T> x = wide<T>(core, event, buffer, 0), y = wide<T>(core, event, buffer, 1);
    *reinterpret_cast<Wide<T>*>(core.at(event.a[2], buffer)) = And ? x & y : x | y;
}

template <class T>
inline std::uint64_t mask_of(const Lanes<T>& x, const Lanes<T>& y, bool negate) {
    std::uint64_t mask = 0;
    for (int i = 0; i < x.count; ++i) mask |= std::uint64_t((x.lane[i] < y.lane[i]) != negate) << i;
    return mask;
}

template <class T>
inline Lanes<T> chosen(const Lanes<T>& x, const Lanes<T>& y, std::uint64_t mask) {
    Lanes<T> d;
    for (int i = 0; i < d.count; ++i) d.lane[i] = mask >> i & 1 ? y.lane[i] : x.lane[i];
    return d;
}

// a: s1, s2, sign, then cmp, or d and cmp; o: bits, negate.
template <bool Choose>
void vcompare(Core& core, const Event& event, std::uint8_t* buffer) {
    const bool sign = word(core, event, buffer, 2) != 0, negate = event.o[1] != 0;
    of_width(event.o[0], [&](auto u, auto s) {
        using T = decltype(u);
        using S = decltype(s);
        const auto x = read<T>(core, event, buffer, 0), y = read<T>(core, event, buffer, 1);
        const std::uint64_t mask = sign ? mask_of(load<Lanes<S>>(&x), load<Lanes<S>>(&y), negate) : mask_of(x, y, negate);
        if (Choose) write(core, event, buffer, 3, chosen(x, y, mask));
        save(core.at(event.a[Choose ? 4 : 3], buffer), mask);
    });
}

// a: s1, s2, then cmp, or d and cmp; o: negate. Lanes of bf16.
template <bool Choose>
void vcompare_bf16(Core& core, const Event& event, std::uint8_t* buffer) {
    const auto x = read<std::uint16_t>(core, event, buffer, 0), y = read<std::uint16_t>(core, event, buffer, 1);
    Lanes<std::int16_t> p, q;
    for (int i = 0; i < x.count; ++i) {
        const int a = x.lane[i] & 0x7FFF, b = y.lane[i] & 0x7FFF;
        if (a > 0x7F80 || b > 0x7F80) return core.fail(kOpen, "comparisons with a NaN are open");
        p.lane[i] = std::int16_t(x.lane[i] >> 15 ? -a : a);
        q.lane[i] = std::int16_t(y.lane[i] >> 15 ? -b : b);
    }
    const std::uint64_t mask = mask_of(p, q, event.o[0] != 0);
    if (Choose) write(core, event, buffer, 2, chosen(x, y, mask));
    save(core.at(event.a[Choose ? 3 : 2], buffer), mask);
}

// Difference, positive difference, magnitude, negative, inverse; whether the result is beyond the greatest number.
template <class T>
inline bool arithmetic(int which, T a, T b, T& made) {
    constexpr T kTop = std::numeric_limits<T>::max();
    const std::int64_t x = a, y = b;
    std::int64_t value = 0;
    switch (which) {
        case 0: made = T(x - y); return false;
        case 1: made = T(std::max<std::int64_t>(x - y, 0)); return false;
        case 2: value = y < 0 ? -y : y; break;
        case 3: value = -y; break;
        case 4: made = T(~y); return false;
    }
    made = T(value);
    return value > (which == 2 ? std::int64_t(std::numeric_limits<std::make_signed_t<T>>::max()) : std::int64_t(kTop));
}

// a: s1, s2, sign, d, cmp; o: bits, which arithmetic, condition.
inline void vmarked(Core& core, const Event& event, std::uint8_t* buffer) {
    const auto run = [&](auto zero) {
        using T = decltype(zero);
        const auto x = read<T>(core, event, buffer, 0), y = read<T>(core, event, buffer, 1);
        Lanes<T> d;
        std::uint64_t mask = 0;
        for (int i = 0; i < d.count; ++i) {
            const T a = x.lane[i], b = y.lane[i];
            if (arithmetic(event.o[1], a, b, d.lane[i]))
                return core.fail(kOpen, "a lane beyond the greatest number is open");
            const bool conditions[] = {a < b, a >= b, b > 0, b < 0};
            mask |= std::uint64_t(conditions[event.o[2]]) << i;
        }
        write(core, event, buffer, 3, d);
        save(core.at(event.a[4], buffer), mask);
    };
    const bool sign = word(core, event, buffer, 2) != 0;
    of_width(event.o[0], [&](auto u, auto s) { sign ? run(s) : run(u); });
}

inline void veqz(Core& core, const Event& event, std::uint8_t* buffer) {
    of_width(event.o[0], [&](auto u, auto) {
        const auto x = read<decltype(u)>(core, event, buffer, 0);
        std::uint64_t mask = 0;
        for (int i = 0; i < x.count; ++i) mask |= std::uint64_t(x.lane[i] == 0) << i;
        save(core.at(event.a[1], buffer), mask);
    });
}

// a: s1, s2, mask, d; o: bits.
inline void vselect(Core& core, const Event& event, std::uint8_t* buffer) {
    const std::uint64_t mask = mask_at(core, event, buffer, 2);
    of_width(event.o[0], [&](auto u, auto) {
        using T = decltype(u);
        write(core, event, buffer, 3, chosen(read<T>(core, event, buffer, 0), read<T>(core, event, buffer, 1), mask));
    });
}

inline constexpr Named kTable[] = {
    {"vadd", vadd}, {"vadd_or_subtract", vadd_or_subtract}, {"vand", vbitwise<true>}, {"vor", vbitwise<false>}, {"vcompare", vcompare<false>}, {"vchoose", vcompare<true>},
    {"vcompare_bf16", vcompare_bf16<false>}, {"vchoose_bf16", vcompare_bf16<true>}, {"veqz", veqz}, {"vmarked", vmarked},
    {"vselect", vselect},
};

}  // namespace engine::lanes
