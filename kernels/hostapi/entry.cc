// How a host calls the kernels of a shared library: as one core of the array, with faults as text.
#include <aie_api/aie.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <exception>
#include <utility>

namespace {

constexpr int arguments_max = 24;

using StateBytes = std::array<unsigned char, sizeof(hostapi::CoreState)>;
static_assert(std::ranges::count(std::bit_cast<StateBytes>(hostapi::CoreState{}), 0) == sizeof(StateBytes),
              "callers begin with zeros");

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

void call_as_core(void *function, hostapi::CoreState &core, const uint64_t *args, int count) {
    hostapi::require_range("hostapi_call", "argument count", count, 0, arguments_max);
    hostapi::core_state = core;
    try {
        call(function, args, count);
    } catch (...) {
        core = hostapi::core_state;
        throw;
    }
    core = hostapi::core_state;
}

}  // namespace

/// Bytes that a core remembers between calls, its rounding and saturation: zeros as after a reset. The caller has them,
/// for each core of each array.
extern "C" size_t hostapi_state_bytes() { return sizeof(hostapi::CoreState); }

/// Calls `function`, an extern "C" kernel, as the core that `state` is of, with `count` (0 to 24) pointers or integers of
/// at most 64 bit. Returns 0, or 1 after a refusal, with one sentence in `message` (`size` bytes, cut, NUL-terminated).
/// Different cores may be called from different threads.
extern "C" int hostapi_call(void *function, void *state, const uint64_t *args, int count, char *message, size_t size) {
    try {
        call_as_core(function, *static_cast<hostapi::CoreState *>(state), args, count);
        return 0;
    } catch (const std::exception &error) {
        std::snprintf(message, size, "%s", error.what());
        return 1;
    }
}
