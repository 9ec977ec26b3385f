#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "files.hpp"
#include "backend.hpp"
#include "npu/log.hpp"
#include "unit.hpp"

using bdforge::missing_for_npu;
using namespace unit;

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

UNIT_CASE("machine", a_fault_of_a_device_is_a_line_and_all_of_it_stands_in_the_log) {
    const std::string log = unit::data_folder() + "/device.log", errors = unit::data_folder() + "/errors";
    const auto told = [&](const std::string& text) {
        const int before = dup(STDERR_FILENO), file = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(file, STDERR_FILENO);
        npu::report("context 1", text);
        std::fflush(stderr);
        dup2(before, STDERR_FILENO);
        close(before), close(file);
        return bdforge::read_file(errors, 1000, "");
    };
    const std::string start = "bdforge device: context 1: ", end = " [all of it: " + log + "]\n", most(300, 'a');
    for (const char* none : {"", "/no/such/folder/log"}) {
        *none == '\0' ? unsetenv("BDFORGE_DEVICE_LOG") : setenv("BDFORGE_DEVICE_LOG", none, 1);
        check_equal(told("first\nsecond " + most + "a"), start + "first\nsecond " + most + "a\n", "all, where there is no log");
    }
    setenv("BDFORGE_DEVICE_LOG", log.c_str(), 1);
    check_equal(told("first\nsecond"), start + "first" + end, "the first line");
    check_equal(told(most), start + most + end, "a line of 300 characters");
    check_equal(told(most + "b"), start + most + " ..." + end, "a line of 301");
    setenv("BDFORGE_DEVICE_TRACE", "1", 1);
    npu::trace("what was asked for");
    const std::string logged = bdforge::read_file(log, 2000, ""), process = " process " + std::to_string(getpid()) + ": ";
    const std::string lines[] = {"context 1: first\nsecond\n", "context 1: " + most + "\n", "context 1: " + most + "b\n", "what was asked for\n"};
    std::size_t at = 0;
    for (const std::string& line : lines) {  // each behind its day and second
        check_equal(logged.substr(at + 19, process.size() + line.size()), process + line, "in the log");
        at += 19 + process.size() + line.size();
    }
    check_equal(at, logged.size(), "bytes of the log");
    unsetenv("BDFORGE_DEVICE_LOG");
}
