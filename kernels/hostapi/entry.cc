// How a host calls the kernels of a shared library: as one core of the array, with faults as text.
#include <aie_api/aie.hpp>

#include <array>
#include <cstdio>
#include <exception>
#include <utility>

namespace {

constexpr int cores_max = 1024;
constexpr int arguments_max = 8;

std::array<hostapi::CoreState, cores_max> cores;

template <size_t> using Argument = uint64_t;

template <size_t... I> void call_with(void *function, const uint64_t *args, std::index_sequence<I...>) {
    reinterpret_cast<void (*)(Argument<I>...)>(function)(args[I]...);
}

template <size_t Count = 0> void call(void *function, const uint64_t *args, int count) {
    if (count == Count)
        return call_with(function, args, std::make_index_sequence<Count>());
    if constexpr (Count < arguments_max)
        call<Count + 1>(function, args, count);
}

void call_as_core(void *function, int core, const uint64_t *args, int count) {
    hostapi::require_range("hostapi_call", "core", core, 0, cores_max - 1);
    hostapi::require_range("hostapi_call", "argument count", count, 0, arguments_max);
    hostapi::core_state = cores[core];
    try {
        call(function, args, count);
    } catch (...) {
        cores[core] = hostapi::core_state;
        throw;
    }
    cores[core] = hostapi::core_state;
}

}  // namespace

/// Rounding and saturation of all cores as after a reset.
extern "C" void hostapi_reset() { cores.fill({}); }

/// Calls `function`, an extern "C" kernel, as core `core` (0 to 1023) with `count` (0 to 8) pointers or integers of at
/// most 64 bit. Returns 0, or 1 after a refusal, with one sentence in `message` (`size` bytes, cut, NUL-terminated).
/// Different cores may be called from different threads.
extern "C" int hostapi_call(void *function, int core, const uint64_t *args, int count, char *message, size_t size) {
    try {
        call_as_core(function, core, args, count);
        return 0;
    } catch (const std::exception &error) {
        std::snprintf(message, size, "%s", error.what());
        return 1;
    }
}
