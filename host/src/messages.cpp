#include "messages.hpp"

#include <cstdio>

#include "bdforge/error.hpp"

namespace bdforge {
namespace {

/// The character of UTF-8 that `text` has from `at` on, and its bytes; 0 bytes where it has none.
struct Character {
    unsigned code;
    std::size_t bytes;
};

Character character_at(const std::string& text, std::size_t at) {
    const auto byte = [&](std::size_t i) {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return {first, 1};
    const std::size_t bytes = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    unsigned code = bytes == 0 ? 0 : first & (0xFFU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {0, 0};
        code = code << 6 | (byte(i) & 0x3F);
    }
    const bool longer = (bytes == 3 && code < 0x800) || (bytes == 4 && (code < 0x10000 || code > 0x10FFFF));
    return longer || (code >= 0xD800 && code < 0xE000) ? Character{0, 0} : Character{code, bytes};
}

/// C0 but tab and newline, DEL, C1, marks and overrides of writing direction, line separators.
bool is_control(unsigned code) {
    return (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7F && code < 0xA0) || code == 0x200E ||
           code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

/// `text` with control characters, and bytes that are no UTF-8, written as escapes.
std::string printable(const std::string& text) {
    std::string made;
    for (std::size_t at = 0; at < text.size();) {
        const auto [code, bytes] = character_at(text, at);
        char escape[16] = "";
        if (bytes == 0 || (bytes == 1 && is_control(code)))
            std::snprintf(escape, sizeof escape, "\\x%02x",
                          static_cast<unsigned>(static_cast<unsigned char>(text[at])));
        else if (is_control(code))
            std::snprintf(escape, sizeof escape, "\\u%04x", code);
        made += *escape != '\0' ? escape : text.substr(at, bytes);
        at += bytes == 0 ? 1 : bytes;
    }
    return made;
}

/// Whether a byte of UTF-8 goes on with a character.
bool goes_on(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string bounded(const std::string& message) {
    constexpr std::size_t tail = message_bytes / 4, head = message_bytes - tail - 64;
    const std::string shown = printable(message.substr(0, message_bytes));
    if (message.size() <= message_bytes && shown.size() <= message_bytes) return shown;
    std::size_t end = head;
    while (goes_on(shown[end])) --end;
    const std::string last =
        printable(message.size() <= message_bytes ? message : message.substr(message.size() - message_bytes));
    std::size_t start = last.size() - tail;
    while (goes_on(last[start])) ++start;
    return concat(shown.substr(0, end), " [... the middle of ", message.size(), " bytes ...] ", last.substr(start));
}

Error::Error(bdforge_status status, const std::string& what) : std::runtime_error(bounded(what)), status_(status) {}

}  // namespace bdforge
