#include "energy.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

namespace bdforge {

Energy::Energy(std::string folder) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        Package package{entry.path().string(), {}};
        std::ifstream(package.folder + "/name") >> package.name;  // others: cores, dram, the whole board
        if (package.name.rfind("package", 0) == 0) packages_.push_back(std::move(package));
    }
    std::sort(packages_.begin(), packages_.end(), [](const auto& one, const auto& other) { return one.name < other.name; });
    if (packages_.empty()) fault_ = folder + " has no package's counter; Linux shows them with the driver intel_rapl_msr, not in most virtual machines";
}

void Energy::read(std::uint64_t Package::*place) {
    for (Package& package : packages_) {
        const std::string file = package.folder + "/energy_uj";
        if (!(std::ifstream(file) >> package.*place)) fault_ = file + " cannot be read; run this as root, or: sudo chmod a+r " + file;
    }
}

void Energy::start() {
    for (Package& package : packages_) std::ifstream(package.folder + "/max_energy_range_uj") >> package.range;
    read(&Package::before);
}

void Energy::stop() { read(&Package::after); }

std::string Energy::summary(std::size_t runs) const {
    if (!fault_.empty()) return "not read: " + fault_;
    double joules = 0;
    std::string names;
    for (const Package& package : packages_) {
        const bool again = package.after < package.before;
        joules += 1e-6 * static_cast<double>(package.after + (again ? package.range : 0) - package.before);
        names += (names.empty() ? "" : ", ") + package.name;
    }
    char text[120];
    std::snprintf(text, sizeof text, ", %.4f J a run (RAPL: all that ran)", joules / static_cast<double>(runs));
    char all[40];
    std::snprintf(all, sizeof all, "%.3f J of ", joules);
    return all + names + text;
}

std::string powercap_folder() {
    const char* const named = std::getenv("BDFORGE_POWERCAP");
    return named == nullptr ? "/sys/class/powercap" : named;
}

}  // namespace bdforge
