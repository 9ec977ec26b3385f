#pragma once
/// Every fault of this library is one of these types; `what()` says what, where, the limit and the next step, printable and
/// within 3584 bytes.

#include <stdexcept>
#include <string>

#include "bdforge.h"

namespace bdforge {

/// Any fault of this library; never thrown itself.
class Error : public std::runtime_error {
public:
    /// Its kind, as the C API names it.
    bdforge_status status() const { return status_; }

protected:
    Error(bdforge_status status, const std::string& what);

private:
    bdforge_status status_;
};

/// A fault of one kind.
template <bdforge_status kind>
class ErrorOf : public Error {
public:
    explicit ErrorOf(const std::string& what) : Error(kind, what) {}
};

/// A file that is missing, unreadable or not what its name says.
using FileError = ErrorOf<BDFORGE_FILE>;
/// A manifest that is malformed, incomplete or does not fit its design.
using ManifestError = ErrorOf<BDFORGE_MANIFEST>;
/// No NPU, another NPU than the design was built for, or a driver that refuses.
using DeviceError = ErrorOf<BDFORGE_DEVICE>;
/// Sizes, pointers or strides that a call cannot take.
using ArgumentError = ErrorOf<BDFORGE_ARGUMENT>;
/// Weights that are truncated, of another type or not ternary.
using WeightError = ErrorOf<BDFORGE_WEIGHTS>;
/// The device reports that a run failed.
using RunError = ErrorOf<BDFORGE_RUN>;
/// A run that had not completed in the time given; it may still be running.
using TimeoutError = ErrorOf<BDFORGE_TIMEOUT>;
/// A call at the wrong moment: waiting for nothing, starting twice.
using StateError = ErrorOf<BDFORGE_STATE>;

}  // namespace bdforge
