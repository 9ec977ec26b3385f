#include "driver.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>

namespace npu {
namespace {

using Identity = std::pair<dev_t, ino_t>;

struct Device {
    pid_t process;
    std::shared_ptr<Driver> driver;
};

/// Lives as long as the process: XRT closes late.
struct Devices {
    std::mutex guard;
    std::map<Identity, Device> by_file;
};

Devices& devices() {
    static auto* const all = new Devices;
    return *all;
}

std::optional<Identity> identity(int file) {
    const int before = errno;
    struct stat facts {};
    const bool open = fstat(file, &facts) == 0;
    errno = before;
    return open ? std::optional<Identity>({facts.st_dev, facts.st_ino}) : std::nullopt;
}

/// The device behind a descriptor, if any; with the guard held.
std::map<Identity, Device>::iterator found(int file) {
    auto& known = devices().by_file;
    if (known.empty()) return known.end();
    const auto its = identity(file);
    const auto place = its ? known.find(*its) : known.end();
    return place == known.end() || place->second.process != getpid() ? known.end() : place;
}

/// Whether a descriptor of this process means a file, beside one that is known.
bool is_open(const Identity& wanted, int beside) {
    DIR* const all = opendir("/proc/self/fd");
    if (all == nullptr) return true;  // better late than while it is used
    bool open = false;
    while (const dirent* entry = readdir(all)) {
        const int file = std::atoi(entry->d_name);
        open |= entry->d_name[0] != '.' && file != beside && identity(file) == wanted;
    }
    closedir(all);
    return open;
}

}  // namespace

int open_device(const std::string& folder) {
    const int file = memfd_create("accel", MFD_CLOEXEC);
    bdforge::emulated::File own(file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 0));
    const auto its = identity(own.number());
    if (!its) {
        close(file);
        errno = EMFILE;
        return -1;
    }
    auto driver = std::make_shared<Driver>(std::move(own), folder);
    const std::lock_guard<std::mutex> lock(devices().guard);
    devices().by_file.insert_or_assign(*its, Device{getpid(), std::move(driver)});
    return file;
}

std::shared_ptr<Driver> device(int file) {
    const std::lock_guard<std::mutex> lock(devices().guard);
    const auto place = found(file);
    return place == devices().by_file.end() ? nullptr : place->second.driver;
}

Leaving::Leaving(int file) {
    const std::lock_guard<std::mutex> lock(devices().guard);
    if (const auto place = found(file); place != devices().by_file.end()) device_ = place->first;
}

Leaving::~Leaving() {
    if (!device_) return;
    const int before = errno;
    std::map<Identity, Device>::node_type last;  // ends when nothing is locked
    {
        const std::lock_guard<std::mutex> lock(devices().guard);
        const auto place = devices().by_file.find(*device_);
        if (place != devices().by_file.end() && !is_open(*device_, place->second.driver->memory()))
            last = devices().by_file.extract(place);
    }
    last = {};
    errno = before;
}

}  // namespace npu
