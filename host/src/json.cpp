#include "bdforge/json.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "bdforge/error.hpp"

namespace bdforge {
namespace {

constexpr int depth_limit = 64;  // manifests need 5; deeper input must not exhaust the stack

void append_utf8(std::string& out, std::uint32_t code) {
    const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3F))); };
    if (code < 0x80) {
        out.push_back(static_cast<char>(code));
    } else if (code < 0x800) {
        out.push_back(static_cast<char>(0xC0 | (code >> 6)));
        tail(0);
    } else if (code < 0x10000) {
        out.push_back(static_cast<char>(0xE0 | (code >> 12)));
        tail(6);
        tail(0);
    } else {
        out.push_back(static_cast<char>(0xF0 | (code >> 18)));
        tail(12);
        tail(6);
        tail(0);
    }
}

class Parser {
public:
    Parser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    Json document() {
        Json value = parse_value(0);
        skip_space();
        if (at_ < text_.size()) fail("text after the end of the value");
        return value;
    }

private:
    [[noreturn]] void fail(const std::string& cause) const {
        const std::string_view before = text_.substr(0, at_);
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const std::size_t start = before.rfind('\n');
        const std::size_t column = start == std::string_view::npos ? at_ + 1 : at_ - start;
        throw ManifestError(where_ + ":" + std::to_string(line) + ":" + std::to_string(column) +
                            ": not JSON: " + cause + "; build the design again");
    }

    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    }

    bool taken(char wanted) {
        skip_space();
        if (at_ >= text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }

    void expect(char wanted) {
        if (!taken(wanted)) fail(std::string("expected '") + wanted + "'");
    }

    Json parse_value(int depth) {
        if (depth > depth_limit) fail("nested deeper than " + std::to_string(depth_limit));
        skip_space();
        if (at_ >= text_.size()) fail("the text ends where a value is expected");
        switch (text_[at_]) {
            case '{': return parse_object(depth);
            case '[': return parse_array(depth);
            case '"': return Json(parse_string());
            case 't': return parse_word("true", Json(true));
            case 'f': return parse_word("false", Json(false));
            case 'n': return parse_word("null", Json(nullptr));
            default: return parse_number();
        }
    }

    Json parse_word(std::string_view word, Json value) {
        if (text_.substr(at_, word.size()) != word) fail("unknown word");
        at_ += word.size();
        return value;
    }

    Json parse_object(int depth) {
        Json::Object members;
        ++at_;
        if (taken('}')) return Json(std::move(members));
        do {
            skip_space();
            if (peek() != '"') fail("expected a key in quotes");
            std::string key = parse_string();
            const auto same = [&](const auto& member) { return member.first == key; };
            if (std::any_of(members.begin(), members.end(), same)) fail("key \"" + key + "\" appears twice");
            expect(':');
            members.emplace_back(std::move(key), parse_value(depth + 1));
        } while (taken(','));
        expect('}');
        return Json(std::move(members));
    }

    Json parse_array(int depth) {
        Json::Array elements;
        ++at_;
        if (taken(']')) return Json(std::move(elements));
        do elements.push_back(parse_value(depth + 1));
        while (taken(','));
        expect(']');
        return Json(std::move(elements));
    }

    std::string parse_string() {
        std::string out;
        for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
            if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("a control character in a string");
            if (text_[at_] == '\\') {
                parse_escape(out);
            } else {
                out.push_back(text_[at_]);
            }
        }
        if (at_ >= text_.size()) fail("a string without end");
        ++at_;
        return out;
    }

    void parse_escape(std::string& out) {
        constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
        ++at_;
        if (peek() == 'u') {
            append_utf8(out, parse_code());
            return;
        }
        const std::size_t which = at_ < text_.size() ? names.find(text_[at_]) : std::string_view::npos;
        if (which == std::string_view::npos) fail("unknown escape");
        out.push_back(values[which]);
    }

    /// The code point of `uXXXX`, or of two of them that form a surrogate pair; stops at its last digit.
    std::uint32_t parse_code() {
        const std::uint32_t first = parse_hex();
        if (first < 0xD800 || first > 0xDFFF) return first;
        if (first > 0xDBFF || text_.substr(at_ + 1, 2) != "\\u") fail("half a surrogate pair");
        at_ += 2;
        const std::uint32_t second = parse_hex();
        if (second < 0xDC00 || second > 0xDFFF) fail("half a surrogate pair");
        return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    }

    std::uint32_t parse_hex() {
        std::uint32_t code = 0;
        for (int digit = 0; digit < 4; ++digit) {
            ++at_;
            const std::size_t value = at_ < text_.size() ? std::string_view("0123456789abcdef").find(lower(text_[at_]))
                                                         : std::string_view::npos;
            if (value == std::string_view::npos) fail("\\u needs four hexadecimal digits");
            code = code << 4 | static_cast<std::uint32_t>(value);
        }
        return code;
    }

    static char lower(char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; }

    std::size_t digits() {
        const std::size_t start = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        return at_ - start;
    }

    Json parse_number() {
        const std::size_t start = at_;
        if (peek() == '-') ++at_;
        const bool zero = peek() == '0';
        const std::size_t whole_digits = digits();
        if (whole_digits == 0) fail("expected a value");
        if (zero && whole_digits > 1) fail("a number that starts with 0");
        const bool whole = parse_fraction();
        const std::string literal(text_.substr(start, at_ - start));
        errno = 0;
        const Json value = whole ? Json(std::int64_t{std::strtoll(literal.c_str(), nullptr, 10)})
                                 : Json(std::strtod(literal.c_str(), nullptr));
        if (errno == ERANGE) fail("number " + literal + " is out of range");
        return value;
    }

    /// Skips fraction and exponent; whether there was neither.
    bool parse_fraction() {
        bool whole = true;
        if (peek() == '.') {
            whole = false;
            ++at_;
            if (digits() == 0) fail("a fraction without digits");
        }
        if (peek() == 'e' || peek() == 'E') {
            whole = false;
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            if (digits() == 0) fail("an exponent without digits");
        }
        return whole;
    }

    std::string_view text_;
    const std::string& where_;
    std::size_t at_ = 0;
};

}  // namespace

Json Json::parse(std::string_view text, const std::string& where) { return Parser(text, where).document(); }

const Json* JsonView::find(const std::string& key) const {
    const auto* object = std::get_if<Json::Object>(&json_->value());
    if (!object) return nullptr;
    const auto same = [&](const auto& member) { return member.first == key; };
    const auto found = std::find_if(object->begin(), object->end(), same);
    return found == object->end() ? nullptr : &found->second;
}

JsonView JsonView::at(const std::string& key) const {
    const std::string place = place_.empty() ? key : place_ + "." + key;
    if (!is_object()) refuse("an object");
    if (const Json* member = find(key)) return JsonView(*member, file_, place);
    throw ManifestError(file_ + ": " + place + " is missing; build the design again with this version of bdforge");
}

bool JsonView::has(const std::string& key) const { return find(key) != nullptr; }

bool JsonView::is_object() const { return std::holds_alternative<Json::Object>(json_->value()); }

bool JsonView::is_list() const { return std::holds_alternative<Json::Array>(json_->value()); }

bool JsonView::is_text() const { return std::holds_alternative<std::string>(json_->value()); }

std::vector<JsonView> JsonView::elements() const {
    const auto* array = std::get_if<Json::Array>(&json_->value());
    if (!array) refuse("a list");
    std::vector<JsonView> views;
    for (std::size_t i = 0; i < array->size(); ++i) {
        views.emplace_back((*array)[i], file_, place_ + "[" + std::to_string(i) + "]");
    }
    return views;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
    const auto* object = std::get_if<Json::Object>(&json_->value());
    if (!object) refuse("an object");
    std::vector<std::pair<std::string, JsonView>> views;
    for (const auto& member : *object) views.emplace_back(member.first, at(member.first));
    return views;
}

const std::string& JsonView::text() const {
    const auto* string = std::get_if<std::string>(&json_->value());
    if (!string) refuse("a text");
    return *string;
}

std::int64_t JsonView::integer(std::int64_t lowest, std::int64_t highest) const {
    const auto* number = std::get_if<std::int64_t>(&json_->value());
    if (!number || *number < lowest || *number > highest) {
        refuse("an integer from " + std::to_string(lowest) + " to " + std::to_string(highest));
    }
    return *number;
}

double JsonView::real() const {
    if (const auto* whole = std::get_if<std::int64_t>(&json_->value())) return static_cast<double>(*whole);
    const auto* number = std::get_if<double>(&json_->value());
    if (!number) refuse("a number");
    return *number;
}

bool JsonView::boolean() const {
    const auto* flag = std::get_if<bool>(&json_->value());
    if (!flag) refuse("true or false");
    return *flag;
}

void JsonView::refuse(const std::string& expected) const {
    throw ManifestError(file_ + ": " + (place_.empty() ? "the manifest" : place_) + " is " + described() +
                        ", expected " + expected + "; build the design again");
}

std::string JsonView::described() const {
    struct Description {
        std::string operator()(std::nullptr_t) const { return "null"; }
        std::string operator()(bool flag) const { return flag ? "true" : "false"; }
        std::string operator()(std::int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return std::to_string(number); }
        std::string operator()(const std::string& text) const { return "\"" + text.substr(0, 80) + "\""; }
        std::string operator()(const Json::Array&) const { return "a list"; }
        std::string operator()(const Json::Object&) const { return "an object"; }
    };
    return std::visit(Description{}, json_->value());
}

}  // namespace bdforge
