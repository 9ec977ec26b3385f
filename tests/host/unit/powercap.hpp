#pragma once
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "unit.hpp"

namespace unit {

/// A powercap of two packages, with parts that must not be counted twice.
class Powercap {
public:
    Powercap() {
        std::filesystem::remove_all(folder);
        for (const auto& [zone, name] : {std::pair("intel-rapl:0", "package-0"), std::pair("intel-rapl:0:0", "core"),
                                         std::pair("intel-rapl:1", "package-1"), std::pair("intel-rapl:2", "psys")}) {
            std::filesystem::create_directories(folder + "/" + zone);
            write(std::string(zone) + "/name", name);
            write(std::string(zone) + "/max_energy_range_uj", "10000000");
            write(std::string(zone) + "/energy_uj", "9000000");
        }
    }
    ~Powercap() { std::filesystem::remove_all(folder); }

    void write(const std::string& file, const std::string& text) const { std::ofstream(folder + "/" + file) << text << '\n'; }

    const std::string folder = data_folder() + "/powercap";
};

}  // namespace unit
