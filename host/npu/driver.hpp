#pragma once
// The kernel driver amdxdna as XRT's user-space driver sees it, for each open device file: known by
// what it is, so that every copy of a descriptor is the same device, however it was made.

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "context.hpp"
#include "objects.hpp"

namespace npu {

/// Images that this program has opened, the last one first, a NUL before each: a configuration comes from one of them.
std::string opened_images();

class Driver {
public:
    /// `memory`: a file of memory, which the driver's own mappings are of; `folder`: answers to get_info in `info/`, by
    /// parameter.
    Driver(bdforge::emulated::File memory, std::string folder);

    /// The descriptor of `memory`.
    int memory() const { return memory_.number(); }

    /// Answers an ioctl: 0, or -1 with errno.
    int ioctl(unsigned number, std::uint64_t argument);

private:
    void serve(Ioctl number, std::uint64_t argument);
    void create_context(CreateContext& wanted);
    void configure(const ConfigureContext& wanted);
    void create_object(CreateObject& wanted);
    void object_info(ObjectInfo& wanted) const;
    void close_object(std::uint32_t handle);
    void execute(Execute& wanted);
    void information(GetInfo& wanted) const;
    void array(GetArray& wanted) const;
    std::vector<ContextEntry> entries() const;
    std::shared_ptr<Context> context(std::uint32_t handle) const;

    const bdforge::emulated::File memory_;
    const std::string folder_;
    mutable std::mutex guard_;  // of what follows; not held while an array works
    Objects objects_;
    std::map<std::uint32_t, std::shared_ptr<Context>> contexts_;
    std::uint32_t next_context_ = 1;
};

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
