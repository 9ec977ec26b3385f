// Lane movement.
#pragma once

#include <utility>

#include "transpose_bytes.hpp"
#include "vector.hpp"

namespace hostapi {

/// out[i] = v[source(i)] for M lanes.
template <unsigned M, class T, unsigned N, class F>
auto gathered(const char *call, const aie::vector<T, N> &v, F source) {
    v.read(call);
    aie::vector<T, M> out;
    for (unsigned i = 0; i < M; ++i)
        out.put(i, v.at(source(i)));
    out.write();
    return out;
}

template <class T> void require_step(const char *call, unsigned step, unsigned lanes) {
    require_range(call, "step", step, 1, lanes);
    if (!is_power_of_two(step))
        fail(call, "step " + std::to_string(step) + " is not a power of two");
    if (step * element<T>::bits < 8)
        fail(call, "step " + std::to_string(step) + " is shorter than a byte; 4-bit lanes move in pairs");
}

/// Whether the real headers turn N lanes T (detail/aie2/transpose.hpp, which both architectures share): a shuffle has
/// modes for one or two registers of 512 bits. Vectors below 256 bits are refused to be safe.
template <class T, unsigned N>
inline constexpr bool has_transpose = N >= 16 && N * element<T>::bits >= 256 && N * element<T>::bits <= 1024;

}  // namespace hostapi

namespace aie {

/// v as rows x columns row-major; the result is columns x rows row-major.
template <class T, unsigned N>
HOSTAPI_INLINE vector<T, N> transpose(const vector<T, N> &v, unsigned rows, unsigned columns) {
    static_assert(hostapi::has_transpose<T, N>, "aie::transpose: no shuffle mode for so many lanes of this type, only for "
                                                "256 to 1024 bit of 16 lanes or more; put parts together by "
                                                "interleave_zip");
    if (rows * columns != N)
        hostapi::fail("aie::transpose", std::to_string(rows) + " x " + std::to_string(columns) + " is not the vector's "
                                            + std::to_string(N) + " lanes");
    v.read("aie::transpose");
    vector<T, N> turned;
    if constexpr (hostapi::element<T>::bits == 8 && N == 64)
        if (rows == 8) {
            hostapi::transpose_8x8_bytes(v.raw(), turned.write());
            return turned;
        }
    for (unsigned column = 0; column < columns; ++column)
        for (unsigned row = 0; row < rows; ++row)
            turned.put(column * rows + row, v.at(row * columns + column));
    turned.write();
    return turned;
}

/// Chunks of `step` lanes in the order a0 b0 a1 b1 ..., cut in two.
template <class T, unsigned N>
std::pair<vector<T, N>, vector<T, N>> interleave_zip(const vector<T, N> &a, const vector<T, N> &b, unsigned step) {
    hostapi::require_step<T>("aie::interleave_zip", step, N);
    const auto both = concat(a, b);
    const auto zipped = hostapi::gathered<2 * N>("aie::interleave_zip", both, [=](unsigned i) {
        const unsigned chunk = i / step;
        return (chunk % 2) * N + chunk / 2 * step + i % step;
    });
    return {zipped.template extract<N>(0), zipped.template extract<N>(1)};
}

/// The even and the odd chunks of `step` lanes of a followed by b: the inverse of interleave_zip.
template <class T, unsigned N>
std::pair<vector<T, N>, vector<T, N>> interleave_unzip(const vector<T, N> &a, const vector<T, N> &b, unsigned step) {
    hostapi::require_step<T>("aie::interleave_unzip", step, N);
    const auto both = concat(a, b);
    const auto chunks = [&](unsigned odd) {
        return hostapi::gathered<N>("aie::interleave_unzip", both,
                                    [=](unsigned i) { return (2 * (i / step) + odd) * step + i % step; });
    };
    return {chunks(0), chunks(1)};
}

template <class T, unsigned N> vector<T, N / 2> filter_even(const vector<T, N> &v, unsigned step = 1) {
    hostapi::require_step<T>("aie::filter_even", step, N / 2);
    return hostapi::gathered<N / 2>("aie::filter_even", v,
                                    [=](unsigned i) { return 2 * (i / step) * step + i % step; });
}

template <class T, unsigned N> vector<T, N / 2> filter_odd(const vector<T, N> &v, unsigned step = 1) {
    hostapi::require_step<T>("aie::filter_odd", step, N / 2);
    return hostapi::gathered<N / 2>("aie::filter_odd", v,
                                    [=](unsigned i) { return (2 * (i / step) + 1) * step + i % step; });
}

template <class T, unsigned N> vector<T, N> reverse(const vector<T, N> &v) {
    return hostapi::gathered<N>("aie::reverse", v, [](unsigned i) { return N - 1 - i; });
}

}  // namespace aie
