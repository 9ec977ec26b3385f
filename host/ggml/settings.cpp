#include "settings.hpp"

#include <cstdio>
#include <mutex>
#include <set>

#include "device_server.hpp"
#include "messages.hpp"

namespace bdforge::ggml {
namespace {

constexpr std::size_t digits_most = 6;

std::size_t number(const char* name) {
    const std::string text = setting(name);
    const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || text.size() > digits_most)
        throw ArgumentError(
            concat(name, "=", text.substr(0, 2 * digits_most), " is no number of rows; give 1 to 999999, or unset it"));
    return text.empty() ? 0 : std::stoul(text);
}

}  // namespace

std::string device_name() {
    std::string name = setting("BDFORGE_GGML_DEVICE");
    return name.empty() ? std::string(1, '0') : name;  // g++ 12 warns of "0"
}

Settings settings() {
    Settings found{setting("BDFORGE_GGML_DESIGN"), device_name(), number("BDFORGE_GGML_ROWS"),
                   !setting("BDFORGE_GGML_COUNTS").empty()};
    if (found.design.empty())
        throw ArgumentError(
            "BDFORGE_GGML_DESIGN is not set; name the folder of a built design, such as "
            "build/strix_halo/gemm_i8_i2_bf16 "
            "of 'scons design=gemm_i8_i2_bf16' (target host for the emulated array)");
    return found;
}

void say(const std::string& line) { std::fprintf(stderr, "bdforge: %s\n", line.c_str()); }

void say_once(const std::string& about, const std::string& line) {
    static std::mutex guard;
    static std::set<std::string> said;
    {
        const std::lock_guard<std::mutex> lock(guard);
        if (!said.insert(about).second) return;
    }
    say(line);
}

}  // namespace bdforge::ggml
