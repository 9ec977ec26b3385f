// Lanes that move up or down a vector.
#pragma once

#include "arithmetic.hpp"

namespace hostapi {

/// Lanes n to n + N - 1 of low followed by high. Lanes without a value stay so.
template <class T, unsigned N>
aie::vector<T, N> spliced(const char *call, const aie::vector<T, N> &low, const aie::vector<T, N> &high, unsigned n) {
    require_range(call, "number of lanes", n, 0, N);
    aie::vector<T, N> out;
    for (unsigned i = 0; i < N; ++i) {
        const auto &from = i + n < N ? low : high;
        if (const unsigned lane = (i + n) % N; from.has(lane))
            out.set(from.get(lane), i);
    }
    return out;
}

/// The same where lanes leave upwards: n of them come from the end of low.
template <class T, unsigned N>
auto spliced_up(const char *call, const aie::vector<T, N> &low, const aie::vector<T, N> &high, unsigned n) {
    require_range(call, "number of lanes", n, 0, N);
    return spliced(call, low, high, N - n);
}

}  // namespace hostapi

namespace aie {

/// Lane i becomes lane i + n; the first n lanes are undefined.
template <class T, unsigned N> auto shuffle_up(const vector<T, N> &v, unsigned n) {
    return hostapi::spliced_up("aie::shuffle_up", vector<T, N>(), v, n);
}
/// The first n lanes are the last n of `fill`.
template <class T, unsigned N> auto shuffle_up_fill(const vector<T, N> &v, const vector<T, N> &fill, unsigned n) {
    return hostapi::spliced_up("aie::shuffle_up_fill", fill, v, n);
}
template <class T, unsigned N> auto shuffle_up_rotate(const vector<T, N> &v, unsigned n) {
    return hostapi::spliced_up("aie::shuffle_up_rotate", v, v, n);
}
/// The first n lanes are lane 0 of v.
template <class T, unsigned N> auto shuffle_up_replicate(const vector<T, N> &v, unsigned n) {
    return hostapi::spliced_up("aie::shuffle_up_replicate", broadcast<T, N>(v.get(0)), v, n);
}

/// Lane i becomes lane i - n; the last n lanes are undefined.
template <class T, unsigned N> auto shuffle_down(const vector<T, N> &v, unsigned n) {
    return hostapi::spliced("aie::shuffle_down", v, vector<T, N>(), n);
}
/// The last n lanes are the first n of `fill`.
template <class T, unsigned N> auto shuffle_down_fill(const vector<T, N> &v, const vector<T, N> &fill, unsigned n) {
    return hostapi::spliced("aie::shuffle_down_fill", v, fill, n);
}
template <class T, unsigned N> auto shuffle_down_rotate(const vector<T, N> &v, unsigned n) {
    return hostapi::spliced("aie::shuffle_down_rotate", v, v, n);
}
/// The last n lanes are the last lane of v.
template <class T, unsigned N> auto shuffle_down_replicate(const vector<T, N> &v, unsigned n) {
    return hostapi::spliced("aie::shuffle_down_replicate", v, broadcast<T, N>(v.get(N - 1)), n);
}

}  // namespace aie
