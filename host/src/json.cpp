#include "json.hpp"

#include <algorithm>
#include <charconv>

#include "bdforge/error.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

constexpr int depth_limit = 64;  // manifests need 5; deeper input must not exhaust the stack

void append_utf8(std::string& out, std::uint32_t code) {
    if (code < 0x80) return out.push_back(static_cast<char>(code));
    const int tails = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out.push_back(static_cast<char>(0xF00 >> (tails + 1) | code >> 6 * tails));
    for (int left = tails; left-- > 0;) out.push_back(static_cast<char>(0x80 | (code >> 6 * left & 0x3F)));
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
        throw ManifestError(concat(where_, ":", line, ":", column, ": not JSON: ", cause, "; build the design again"));
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
        if (depth > depth_limit) fail(concat("nested deeper than ", depth_limit));
        skip_space();
        if (at_ >= text_.size()) fail("the text ends where a value is expected");
        switch (text_[at_]) {
            case '{': return parse_object(depth);
            case '[': return parse_array(depth);
            case '"': return Json{parse_string()};
            case 't': return parse_word("true", Json{true});
            case 'f': return parse_word("false", Json{false});
            case 'n': return parse_word("null", Json{nullptr});
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
        if (taken('}')) return Json{std::move(members)};
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
        return Json{std::move(members)};
    }

    Json parse_array(int depth) {
        Json::Array elements;
        ++at_;
        if (taken(']')) return Json{std::move(elements)};
        do elements.push_back(parse_value(depth + 1));
        while (taken(','));
        expect(']');
        return Json{std::move(elements)};
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
        const char* const digits = text_.data() + at_ + 1;
        if (text_.size() - at_ < 5 || std::from_chars(digits, digits + 4, code, 16).ptr != digits + 4)
            fail("\\u needs four hexadecimal digits");
        at_ += 4;
        return code;
    }

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
        const std::string_view literal = text_.substr(start, at_ - start);
        return whole ? read<std::int64_t>(literal) : read<double>(literal);
    }

    template <class Number>
    Json read(std::string_view literal) const {
        Number number{};
        if (std::from_chars(literal.data(), literal.data() + literal.size(), number).ec != std::errc{})
            fail(concat("number ", literal, " is out of range"));
        return Json{number};
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
    const auto* object = std::get_if<Json::Object>(&json_->value);
    if (!object) return nullptr;
    const auto found =
        std::find_if(object->begin(), object->end(), [&](const auto& member) { return member.first == key; });
    return found == object->end() ? nullptr : &found->second;
}

template <class Kind>
const Kind& JsonView::as(const char* expected) const {
    if (const auto* found = std::get_if<Kind>(&json_->value)) return *found;
    refuse(expected);
}

JsonView JsonView::at(const std::string& key) const {
    const std::string place = place_.empty() ? key : place_ + "." + key;
    as<Json::Object>("an object");
    if (const Json* member = find(key)) return JsonView(*member, file_, place);
    throw ManifestError(file_ + ": " + place + " is missing; build the design again with this version of bdforge");
}

bool JsonView::has(const std::string& key) const { return find(key) != nullptr; }

std::vector<JsonView> JsonView::elements() const {
    std::vector<JsonView> views;
    for (const Json& element : as<Json::Array>("a list"))
        views.emplace_back(element, file_, bdforge::concat(place_, "[", views.size(), "]"));
    return views;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
    std::vector<std::pair<std::string, JsonView>> views;
    for (const auto& [name, member] : as<Json::Object>("an object")) views.emplace_back(name, at(name));
    return views;
}

const std::string& JsonView::text() const { return as<std::string>("a text"); }

bool JsonView::boolean() const { return as<bool>("true or false"); }

std::int64_t JsonView::integer(std::int64_t lowest, std::int64_t highest) const {
    const auto* number = std::get_if<std::int64_t>(&json_->value);
    if (!number || *number < lowest || *number > highest)
        refuse(bdforge::concat("an integer from ", lowest, " to ", highest));
    return *number;
}

double JsonView::real() const {
    if (const auto* whole = std::get_if<std::int64_t>(&json_->value)) return static_cast<double>(*whole);
    return as<double>("a number");
}

void JsonView::refuse(const std::string& expected) const {
    throw ManifestError(bdforge::concat(file_, ": ", place_.empty() ? std::string("the manifest") : place_, " is ",
                                      described(), ", expected ", expected, "; build the design again"));
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
    return std::visit(Description{}, json_->value);
}

}  // namespace bdforge
