#pragma once
// What the parts of the C API share: handles, and statuses of exceptions.

#include <chrono>
#include <string>
#include <vector>

#include "bdforge.h"
#include "bdforge/bdforge.hpp"
#include "extent.hpp"

struct bdforge_device {
    bdforge::Device device;
};
struct bdforge_design {
    bdforge::Design design;
};
struct bdforge_weights {
    bdforge::Resident resident;
};
struct bdforge_job {
    bdforge::Job job;
    std::vector<bdforge::OperandShape> operands = job.operands();
};
struct bdforge_gemm {
    explicit bdforge_gemm(bdforge::Gemm made) : gemm(std::move(made)), job{gemm.job()} {}
    bdforge::Gemm gemm;
    bdforge_job job;
};
struct bdforge_batch {
    bdforge::Batch batch;
};

namespace bdforge::c_api {

/// The message of this thread's last failed call.
std::string& message();
/// The status of the exception that is being handled, whose text becomes the message.
bdforge_status status_of_exception() noexcept;

/// Calls `act`; no exception gets out.
template <class Act>
bdforge_status guarded(Act act) noexcept {
    try {
        message().clear();
        act();
        return BDFORGE_OK;
    } catch (...) {
        return status_of_exception();
    }
}

template <class Pointer>
Pointer* given(Pointer* pointer, const char* name) {
    if (pointer == nullptr) throw ArgumentError(std::string(name) + " is NULL; pass what the call before it made");
    return pointer;
}

/// Clears `out`, then sets it to what `make` returns.
template <class Handle, class Make>
bdforge_status made(Handle** out, Make make) noexcept {
    return guarded([&] {
        *given(out, "the handle's place") = nullptr;
        *out = new Handle{make()};
    });
}

inline std::chrono::milliseconds milliseconds(unsigned count) { return std::chrono::milliseconds{count}; }

/// The entries of a caller's list.
template <class Entry>
std::vector<Entry> listed(const char* name, const Entry* entries, std::size_t count) {
    bytes_of(name, count, sizeof *entries);
    if (count > 0) given(entries, name);
    return {entries, entries + count};
}

}  // namespace bdforge::c_api
