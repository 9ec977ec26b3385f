#pragma once
#include <exception>
#include <string>

#include "bdforge/error.hpp"

namespace bdforge {

/// XRT's text without the blanks and newlines that some of its messages start or end with.
inline std::string trimmed(const std::string& text) {
    constexpr const char* blanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string::npos) return "no reason given";
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Calls `act`; what XRT throws becomes a `Fault`: what was tried, XRT's reason, the next step.
/// XRT throws half a dozen types (std::runtime_error, std::system_error, xrt_core::error, xrt::run::aie_error);
/// all derive from std::exception, and the text is all that can be relied upon.
template <class Fault, class Act>
auto guarded(const std::string& what, const std::string& next_step, Act act) -> decltype(act()) {
    try {
        return act();
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        throw Fault(what + ": " + trimmed(error.what()) + "; " + next_step);
    }
}

}  // namespace bdforge
