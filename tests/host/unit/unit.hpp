#pragma once
// Cases that register themselves, and checks that say where and what.

#include <cstdlib>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include <cxxabi.h>

namespace unit {

/// Registers a case; always true.
bool add(const char* group, const char* name, void (*body)());

/// Folder with what the Python side made: manifests of small designs.
const std::string& data_folder();

/// An instruction stream of the small design, 64 x 64 x 128, that the Python side made.
std::vector<std::uint32_t> recorded_words();

class Failure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A line of a test: as a default argument that of the call.
struct Where {
    const char* file;
    int line;
};
constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }

[[noreturn]] inline void fail(const std::string& what, Where at) {
    const std::string path = at.file;
    throw Failure(path.substr(path.rfind('/') + 1) + ":" + std::to_string(at.line) + ": " + what);
}

inline void check(bool holds, const std::string& what, Where at = here()) {
    if (!holds) fail(what, at);
}

/// A value in text from which it could be read again; of a text the text itself.
template <class Value>
std::string shown(const Value& value) {
    std::ostringstream text;
    if constexpr (std::is_floating_point_v<Value>) text.precision(std::numeric_limits<Value>::max_digits10);
    if constexpr (std::is_integral_v<Value>)
        text << +value;
    else
        text << value;
    return text.str();
}

template <class Got, class Expected>
void check_equal(const Got& got, const Expected& expected, const std::string& what, Where at = here()) {
    if (!(got == expected)) fail(what + ": got " + shown(got) + ", expected " + shown(expected), at);
}

/// Element by element: says how many differ, and of the first one what is there.
template <class Element>
void check_equal(const std::vector<Element>& got, const std::vector<Element>& expected, const std::string& what, Where at = here()) {
    check_equal(got.size(), expected.size(), what + ": number of elements", at);
    std::vector<std::size_t> differing;
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!(got[i] == expected[i])) differing.push_back(i);
    if (differing.empty()) return;
    const std::size_t first = differing.front();
    fail(what + ": " + shown(differing.size()) + " of " + shown(got.size()) + " differ, from [" + shown(first) + "] to [" +
             shown(differing.back()) + "]; [" + shown(first) + "] is " + shown(got[first]) + ", expected " + shown(expected[first]),
         at);
}

inline void check_contains(const std::string& text, const std::string& part, Where at = here()) {
    if (text.find(part) == std::string::npos) fail("\"" + part + "\" is not in \"" + text + "\"", at);
}

inline std::string name_of(const std::type_info& type) {
    const std::unique_ptr<char, void (*)(void*)> made(abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), std::free);
    return made ? made.get() : type.name();
}

constexpr const char* nothing = "(nothing was thrown)";

/// What `act` throws, which must be a `Fault` and nothing else; `nothing` where it does not, which contains no message, so
/// that the check of the message says both.
template <class Fault, class Act>
[[nodiscard]] std::string message_of(Act act, Where at = here()) {
    try {
        act();
    } catch (const Fault& fault) {
        return fault.what();
    } catch (const Failure&) {
        throw;
    } catch (const std::exception& other) {
        fail(name_of(typeid(other)) + " instead of " + name_of(typeid(Fault)) + ": " + other.what(), at);
    }
    return nothing;
}

}  // namespace unit

#define UNIT_CASE(group, name)                                           \
    static void name();                                                  \
    static const bool registered_##name = unit::add(group, #name, name); \
    static void name()
