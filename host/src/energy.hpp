#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace bdforge {

/// Energy that the processor's packages take, array and cores together, by RAPL's counters in Linux's powercap; other
/// programs' share is in it.
class Energy {
public:
    /// Finds the packages below `folder`.
    explicit Energy(std::string folder);

    void start();
    void stop();

    /// "1.234 J of package-0, 0.123 J a run", or in one sentence why there is none.
    std::string summary(std::size_t runs) const;

private:
    struct Package {
        std::string folder, name;
        std::uint64_t before = 0, after = 0, range = 0;  // microjoules; counters begin again behind `range`
    };

    void read(std::uint64_t Package::*place);

    std::vector<Package> packages_;
    std::string fault_;
};

/// Where powercap is: BDFORGE_POWERCAP, or where Linux has it.
std::string powercap_folder();

}  // namespace bdforge
