// Cascades and streams of a core. Kernels that use them compile; a call of one of these faults, as a kernel of C++ runs
// to its end at once and nobody stands at its channels. On the emulated array, kernels in Python have them.
#pragma once

#include "native.hpp"

namespace hostapi {

template <class T> T no_channel(const char *call) {
    fail(call, "kernels in C++ reach no cascade and no stream on the emulated array; write this kernel in Python, or "
               "pass what it sends by a buffer");
}

}  // namespace hostapi

#define HOSTAPI_CASCADE(lanes, type)                                                                         \
    inline v##lanes##type get_scd_v##lanes##type() { return hostapi::no_channel<v##lanes##type>("get_scd"); }
HOSTAPI_CASCADE(64, int8) HOSTAPI_CASCADE(64, uint8) HOSTAPI_CASCADE(32, int16) HOSTAPI_CASCADE(32, uint16)
HOSTAPI_CASCADE(32, bfloat16) HOSTAPI_CASCADE(16, int32) HOSTAPI_CASCADE(16, uint32) HOSTAPI_CASCADE(16, float)
HOSTAPI_CASCADE(16, acc32) HOSTAPI_CASCADE(8, acc64) HOSTAPI_CASCADE(16, acc64) HOSTAPI_CASCADE(16, accfloat)
#undef HOSTAPI_CASCADE
template <hostapi::lanes X> void put_mcd(const X &) {
    hostapi::no_channel<int>("put_mcd");
}

inline int get_ss() { return hostapi::no_channel<int>("get_ss"); }
inline int get_ss(bool &) { return hostapi::no_channel<int>("get_ss"); }
inline void put_ms(int, bool = false) { hostapi::no_channel<int>("put_ms"); }
