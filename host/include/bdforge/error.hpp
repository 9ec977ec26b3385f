#pragma once
/// Every fault of this library is one of these types; `what()` says what, where, the limit and the next step, printable and
/// within `message_bytes`.

#include <stdexcept>
#include <string>

#include "bdforge/messages.hpp"

namespace bdforge {

/// Any fault of this library; never thrown itself.
class Error : public std::runtime_error {
public:
    explicit Error(const std::string& what) : std::runtime_error(bounded(what)) {}
};

/// A file that is missing, unreadable or not what its name says.
class FileError : public Error {
public:
    using Error::Error;
};

/// A manifest that is malformed, incomplete or does not fit its design.
class ManifestError : public Error {
public:
    using Error::Error;
};

/// No NPU, another NPU than the design was built for, or a driver that refuses.
class DeviceError : public Error {
public:
    using Error::Error;
};

/// Sizes, pointers or strides that a call cannot take.
class ArgumentError : public Error {
public:
    using Error::Error;
};

/// Weights that are truncated, of another type or not ternary.
class WeightError : public Error {
public:
    using Error::Error;
};

/// The device reports that a run failed.
class RunError : public Error {
public:
    using Error::Error;
};

/// A run that had not completed in the time given; it may still be running.
class TimeoutError : public Error {
public:
    using Error::Error;
};

/// A call at the wrong moment: waiting for nothing, starting twice.
class StateError : public Error {
public:
    using Error::Error;
};

}  // namespace bdforge
