#pragma once
// Cases that register themselves, and checks that say where and what.

#include <cstdint>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace unit {

/// Registers a case; always true.
bool add(const std::string& group, const std::string& name, std::function<void()> body);

/// Folder with what the Python side made: manifests of small designs.
const std::string& data_folder();

/// An instruction stream of the small design, 64 x 64 x 128, that the Python side made.
std::vector<std::uint32_t> recorded_words();

class Failure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

inline void check(bool holds, const std::string& what) {
    if (!holds) throw Failure(what);
}

template <class Got, class Expected>
void check_equal(const Got& got, const Expected& expected, const std::string& what) {
    if (got == expected) return;
    std::ostringstream text;
    text << what << ": got " << got << ", expected " << expected;
    throw Failure(text.str());
}

inline void check_contains(const std::string& text, const std::string& part) {
    if (text.find(part) == std::string::npos) throw Failure("\"" + part + "\" is not in \"" + text + "\"");
}

/// What `act` throws, which must be a `Fault` and nothing else.
template <class Fault, class Act>
std::string message_of(Act act) {
    try {
        act();
    } catch (const Fault& fault) {
        return fault.what();
    }
    throw Failure("nothing was thrown");
}

}  // namespace unit

#define UNIT_CASE(group, name)                                           \
    static void name();                                                  \
    static const bool registered_##name = unit::add(group, #name, name); \
    static void name()
