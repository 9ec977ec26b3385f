#pragma once
/// A strict JSON reader (RFC 8259) as far as manifests need one: no duplicate keys, no trailing text, bounded depth.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bdforge {

/// A JSON value. Numbers without fraction and exponent are int64, others double.
struct Json {
    using Array = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;  // in the order of the text
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> value;

    /// Reads `text`; ManifestError names `where`, line and column of the first fault.
    static Json parse(std::string_view text, const std::string& where);
};

/// A value with its place, for messages such as `manifest.json: tile.k is "x", expected a number`.
class JsonView {
public:
    JsonView(const Json& json, std::string file, std::string place = "")
        : json_(&json), file_(std::move(file)), place_(std::move(place)) {}

    /// Member `key`; ManifestError when this is no object or has no such key.
    JsonView at(const std::string& key) const;
    /// Whether this is an object with a member `key`.
    bool has(const std::string& key) const;
    /// All elements; ManifestError when this is no array.
    std::vector<JsonView> elements() const;
    /// All members; ManifestError when this is no object.
    std::vector<std::pair<std::string, JsonView>> members() const;
    /// The text; ManifestError when this is no string.
    const std::string& text() const;
    /// The integer; ManifestError when this is none, or outside `lowest` to `highest`.
    std::int64_t integer(std::int64_t lowest, std::int64_t highest) const;
    /// The number; ManifestError when this is none.
    double real() const;
    /// The truth value; ManifestError when this is none.
    bool boolean() const;
    bool is_object() const { return std::holds_alternative<Json::Object>(json_->value); }
    bool is_list() const { return std::holds_alternative<Json::Array>(json_->value); }
    bool is_text() const { return std::holds_alternative<std::string>(json_->value); }

    const std::string& file() const { return file_; }
    [[noreturn]] void refuse(const std::string& expected) const;

private:
    template <class Kind>
    const Kind& as(const char* expected) const;
    const Json* find(const std::string& key) const;
    std::string described() const;

    const Json* json_;
    std::string file_;
    std::string place_;
};

}  // namespace bdforge
