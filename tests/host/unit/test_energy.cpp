#include <filesystem>

#include "cli/measure.hpp"
#include "powercap.hpp"

using bdforge::cli::Energy;
using namespace unit;

UNIT_CASE("energy", packages_are_summed_over_the_end_of_their_counters) {
    const Powercap powercap;
    Energy energy(powercap.folder);
    energy.start();
    powercap.write("intel-rapl:0/energy_uj", "9500000");
    powercap.write("intel-rapl:1/energy_uj", "250000");
    powercap.write("intel-rapl:0:0/energy_uj", "9400000");
    energy.stop();
    check_equal(energy.summary(5), std::string("1.750 J of package-0, package-1, 0.3500 J a run (RAPL: all that ran)"), "told");
}

UNIT_CASE("energy", what_is_missing_is_told_in_one_sentence) {
    const Powercap powercap;
    Energy energy(powercap.folder);
    std::filesystem::remove(powercap.folder + "/intel-rapl:1/energy_uj");
    energy.start();
    energy.stop();
    check_contains(energy.summary(1), "not read: " + powercap.folder + "/intel-rapl:1/energy_uj cannot be read; run this as root");
    Energy none(powercap.folder + "/no");
    none.start();
    none.stop();
    check_contains(none.summary(1), "not read: " + powercap.folder + "/no has no package's counter");
}
