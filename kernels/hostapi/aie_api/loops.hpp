// Loops that the API writes for a kernel.
#pragma once

#include <utility>

#include "fault.hpp"

namespace aie {

/// f(i) for i from 0 to n - 1; n is at least MinIterations, as the kernel promises.
template <unsigned MinIterations = 1, class F> void pipelined_loop(unsigned n, F &&f) {
    hostapi::require_range("aie::pipelined_loop", "count", n, MinIterations, 0xffffffff);
    for (unsigned i = 0; i < n; ++i)
        f(i);
}

/// f(), or f(i), Times times.
template <unsigned Times, class F> void unroll_times(F &&f) {
    for (unsigned i = 0; i < Times; ++i)
        if constexpr (requires { f(i); })
            f(i);
        else
            f();
}

/// f(i) for i from Start up to, without, End.
template <class T, T Start, T End, T Step = T(1), class F> void unroll_for(F &&f) {
    for (T i = Start; i < End; i += Step)
        f(i);
}

}  // namespace aie
