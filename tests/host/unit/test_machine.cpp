#include <algorithm>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>

#include "machine.hpp"
#include "unit.hpp"

using bdforge::missing_for_npu;
using unit::check_contains;
using unit::check_equal;

UNIT_CASE("machine", the_first_thing_that_an_npu_lacks_is_named) {
    const std::filesystem::path root = unit::data_folder() + "/machine", node = root / "dev/accel/accel0";
    const auto missing = [&] { return missing_for_npu(root.string() + "/"); };
    check_contains(missing(), "the kernel driver amdxdna is not loaded; Linux 6.14");
    std::filesystem::create_directories(root / "sys/module/amdxdna");
    check_contains(missing(), "there is no /dev/accel/accel*; load the driver");
    std::filesystem::create_directories(node.parent_path());
    check_contains(missing(), "there is no /dev/accel/accel*");
    std::filesystem::create_symlink("/no/such/node", node);
    check_contains(missing(), "cannot open " + node.string() + "; sudo usermod -aG render");
    std::filesystem::remove(node);
    std::ofstream{node};
    rlimit before{};
    getrlimit(RLIMIT_MEMLOCK, &before);
    const auto with = [&](rlim_t bytes) {
        const rlimit other{bytes, before.rlim_max};
        unit::check(setrlimit(RLIMIT_MEMLOCK, &other) == 0, "setrlimit");
        const std::string found = missing();
        setrlimit(RLIMIT_MEMLOCK, &before);
        return found;
    };
    constexpr rlim_t heap = rlim_t{64} << 20;  // and something beside it
    check_contains(with(std::min(heap, before.rlim_max)), "may not lock the 64 MiB that XRT locks; sudo prlimit");
    if (before.rlim_max > heap) check_equal(with(heap + 1), "", "more than the heap");
    const bool enough = before.rlim_cur == RLIM_INFINITY || before.rlim_cur > rlim_t{64} << 20;
    check_equal(missing() == "", enough, "with the limit of this login");
}
