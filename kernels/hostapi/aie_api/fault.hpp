// Run-time refusals: what the device would do silently, the host reports.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

namespace hostapi {

/// A kernel did what is undefined or silently wrong on the device. The message is one sentence for its author.
class Fault : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(const char *call, const std::string &what) {
    throw Fault(std::string(call) + ": " + what);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_undefined(const char *call, const char *what, unsigned lane) {
    fail(call, std::string("lane ") + std::to_string(lane) + " of the " + what
                   + " was never written, so the device reads garbage; start from aie::zeros, a load or a product");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_alignment(const char *call, unsigned lanes, const void *address,
                                                                 unsigned alignment) {
    char text[240];
    const auto past = static_cast<unsigned>(reinterpret_cast<unsigned long long>(address) % alignment);
    std::snprintf(text, sizeof text,
                  "%u lanes at address %p, which is %u bytes past a %u-byte boundary; the device would drop the low "
                  "address bits, so make the buffer and every step a multiple of %u bytes",
                  lanes, address, past, alignment, alignment);
    fail(call, text);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_range(const char *call, const char *what, long long value,
                                                             long long low, long long high) {
    fail(call, std::string(what) + " " + std::to_string(value) + " is outside " + std::to_string(low) + " to "
                   + std::to_string(high));
}

inline void require_range(const char *call, const char *what, long long value, long long low, long long high) {
    if (value < low || value > high) [[unlikely]]
        fail_range(call, what, value, low, high);
}

}  // namespace hostapi
