#pragma once
// Open device files of this process: known by what they are, so that every copy of a descriptor is the same device,
// however it was made.

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "driver.hpp"

namespace npu {

/// A new descriptor of a new device, or -1 with errno. Its memory is the file that stands for the device, so that mapping
/// it needs no help.
int open_device(const std::string& folder);

/// The driver behind a descriptor. Null for other files, and in processes that were forked from the one that opened it:
/// their contexts are not theirs.
std::shared_ptr<Driver> device(int file);

/// While it lives, a descriptor is closed or comes to mean another file. A device whose last one it was ends then.
class Leaving {
public:
    explicit Leaving(int file);
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    ~Leaving();

private:
    std::optional<std::pair<dev_t, ino_t>> device_;
};

}  // namespace npu
