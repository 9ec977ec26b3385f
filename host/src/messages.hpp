#pragma once
/// What people are told: within bounds, and without characters that a terminal would obey.

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace bdforge {

/// Bytes of a message; what a program puts around one fits into 4 KiB with it.
constexpr std::size_t message_bytes = 3584;

/// A message as people get it: printable, its middle left out where it is longer than `message_bytes`.
std::string bounded(const std::string& message);

inline std::string_view shown(std::string_view text) { return text; }
template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
std::string shown(Number number) {
    return std::to_string(number);
}

/// The parts one behind another, numbers in decimal digits.
template <class... Parts>
std::string concat(const Parts&... parts) {
    std::string all;
    ((all += shown(parts)), ...);
    return all;
}

/// Texts with `between` between them.
template <class Texts>
std::string listed(const Texts& texts, std::string_view between = ", ") {
    std::string all;
    for (const auto& each : texts) all += concat(all.empty() ? "" : between, each);
    return all;
}

}  // namespace bdforge
