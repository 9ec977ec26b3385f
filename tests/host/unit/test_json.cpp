#include "bdforge/error.hpp"
#include "json.hpp"
#include "files.hpp"
#include "unit.hpp"

using bdforge::Json;
using bdforge::JsonView;
using bdforge::ManifestError;
using namespace unit;

namespace {

std::string text_of(const std::string& json) { return JsonView(Json::parse(json, "m.json"), "m.json").text(); }

std::string unparsed(const std::string& json) {
    return message_of<ManifestError>([&] { Json::parse(json, "m.json"); });
}

}  // namespace

UNIT_CASE("json", values_are_read_with_their_types) {
    const Json json = Json::parse(R"( {"a": [1, -2, 2.5e1, true, null], "b": {"c": "x"}} )", "m.json");
    const JsonView view(json, "m.json");
    check_equal(view.at("a").elements().size(), 5U, "elements");
    check_equal(view.at("a").elements()[1].integer(-5, 5), -2, "integer");
    check_equal(view.at("a").elements()[1].integer(-2, -2), -2, "integer at both ends");
    check_equal(view.at("a").elements()[2].real(), 25.0, "fraction");
    check_equal(view.at("a").elements()[1].real(), -2.0, "whole number as one");
    check_equal(view.at("a").elements()[3].boolean(), true, "truth");
}

UNIT_CASE("json", numbers_are_whole_unless_they_have_a_fraction_or_an_exponent) {
    const auto read = [](const char* text) {
        const Json json = Json::parse(text, "m.json");
        const auto* const whole = std::get_if<std::int64_t>(&json.value);
        return whole ? "whole " + std::to_string(*whole) : "real " + std::to_string(std::get<double>(json.value));
    };
    const std::pair<const char*, const char*> numbers[] = {
        {"0", "whole 0"}, {"-0", "whole 0"}, {"-7", "whole -7"}, {"10", "whole 10"}, {"0.5", "real 0.500000"},
        {"-1.25", "real -1.250000"}, {"1E3", "real 1000.000000"}, {"1e3", "real 1000.000000"},
        {"1e+3", "real 1000.000000"}, {"25e-1", "real 2.500000"}, {"2.5E-1", "real 0.250000"}, {" 8\t\r\n", "whole 8"},
    };
    for (const auto& [text, expected] : numbers) check_equal(read(text), expected, text);
    for (const char* text : {"-", "+1", ".5", "00", "-01", "1e+", "1.e3", "0x10", "1 2", "1e999", "-1e999", "NaN", "- 1"})
        check_contains(text + (": " + unparsed(text)), text + std::string(": m.json:1:"));
    check_equal(std::get<double>(Json::parse("1.7976931348623157e308", "").value), 1.7976931348623157e308, "the largest");
}

UNIT_CASE("json", numbers_have_ends_that_belong_to_them) {
    const Json json = Json::parse("7", "m.json");
    const JsonView view(json, "m.json");
    check_equal(view.integer(7, 7), 7, "both ends");
    for (const auto& [low, high] : {std::pair(8, 9), std::pair(5, 6)})
        check_contains(message_of<ManifestError>([&, low = low, high = high] { view.integer(low, high); }),
                       "the manifest is 7, expected an integer from " + std::to_string(low) + " to " + std::to_string(high));
}

UNIT_CASE("json", words_are_what_they_say) {
    const auto read = [](const char* text) { return Json::parse(text, "m.json").value; };
    check_equal(std::get<bool>(read("true")), true, "true");
    check_equal(std::get<bool>(read("false")), false, "false");
    check_equal(std::holds_alternative<std::nullptr_t>(read("null")), true, "null");
    check_equal(std::get<Json::Array>(read(" [ ] ")).size(), 0U, "an empty list");
    check_equal(std::get<Json::Object>(read(" { } ")).size(), 0U, "an empty object");
    for (const char* text : {"truth", "True", "falsE", "nul", "{\"a\": 1,}", "{\"a\" 1}", "{a: 1}", "[1 2]", "{1: 2}", "[}"})
        check_contains(text + (": " + unparsed(text)), ": not JSON: ");
}

UNIT_CASE("json", escapes_become_utf8) {
    check_equal(text_of(R"("a\n\"\\\/\u00e9\u20ac\ud83d\ude00")"), "a\n\"\\/\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80",
                "text");
}

UNIT_CASE("json", code_points_take_one_byte_more_from_these_on) {
    const std::pair<const char*, const char*> ends[] = {
        {"\\u007f", "\x7F"},         {"\\u0080", "\xC2\x80"},     {"\\u07ff", "\xDF\xBF"},
        {"\\u0800", "\xE0\xA0\x80"}, {"\\ud7ff", "\xED\x9F\xBF"}, {"\\ue000", "\xEE\x80\x80"},
        {"\\uffff", "\xEF\xBF\xBF"}, {"\\ud800\\udc00", "\xF0\x90\x80\x80"}, {"\\udbff\\udfff", "\xF4\x8F\xBF\xBF"},
    };
    check_equal(text_of(R"("\u00AF\u20Ac")"), "\xC2\xAF\xE2\x82\xAC", "digits of both cases");
    for (const auto& [escape, bytes] : ends) check_equal(text_of("\"" + std::string(escape) + "\""), bytes, escape);
    for (const char* half : {"\\udbff\\udbff", "\\udbff\\ue000", "\\udc00\\udc00", "\\udfff"})
        check_contains(half + (": " + unparsed("\"" + std::string(half) + "\"")), "half a surrogate pair");
}

UNIT_CASE("json", faults_name_line_and_column) {
    check_contains(unparsed("{\n  \"a\": 1,\n  \"a\": 2}"), "m.json:3:6: not JSON: key \"a\" appears twice");
    check_contains(unparsed("[1, 2"), "m.json:1:6: not JSON: expected ']'");
    check_contains(unparsed("{} x"), "text after the end");
    check_contains(unparsed("[01]"), "a number that starts with 0");
    check_contains(unparsed("[1.]"), "a fraction without digits");
    check_contains(unparsed("[1e]"), "an exponent without digits");
    check_contains(unparsed("[99999999999999999999]"), "out of range");
    check_contains(unparsed("\"\\ud800x\""), "half a surrogate pair");
    check_contains(unparsed("\"\\q\""), "unknown escape");
    check_contains(unparsed("\"a\nb\""), "a control character");
    check_contains(unparsed("\"\x1F\""), "a control character");
    check_equal(text_of("\" \""), " ", "what follows control characters");
    check_contains(unparsed("\"abc"), "a string without end");
    check_contains(unparsed("[tru]"), "unknown word");
    check_contains(unparsed("[1,]"), "expected a value");
    check_contains(unparsed(""), "the text ends");
}

UNIT_CASE("json", wrong_types_name_their_place) {
    const Json json = Json::parse(R"({"tile": {"k": "x"}, "list": [1, {"n": 3}]})", "m.json");
    const JsonView view(json, "m.json");
    const auto message = [](auto act) { return message_of<ManifestError>(act); };
    check_contains(message([&] { view.at("tile").at("k").integer(1, 9); }),
                   "tile.k is \"x\", expected an integer from 1 to 9");
    check_contains(message([&] { view.at("list").elements()[1].at("n").integer(5, 9); }), "list[1].n is 3");
    check_contains(message([&] { view.at("tile").at("m"); }), "m.json: tile.m is missing");
    check_contains(message([&] { view.at("list").at("x"); }), "list is a list, expected an object");
    check_contains(message([&] { view.at("tile").elements(); }), "expected a list");
    check_contains(message([&] { view.at("list").text(); }), "expected a text");
    check_contains(message([&] { view.boolean(); }), "the manifest is an object, expected true or false");
}

UNIT_CASE("json", no_damaged_text_crashes) {
    const std::string whole = bdforge::read_file(unit::data_folder() + "/small/manifest.json", 1 << 20, "");
    const std::string kept = whole.substr(0, 600) + "}";
    const auto survives = [](const std::string& text) {
        try {
            Json::parse(text, "m.json");
        } catch (const ManifestError&) {
            return;
        }
    };
    for (std::size_t end = 0; end < kept.size(); ++end) survives(kept.substr(0, end));
    for (std::size_t at = 0; at < kept.size(); ++at) {
        for (const char other : {'"', '{', ']', '\\', '\0', '\xFF', '9'}) {
            std::string damaged = kept;
            damaged[at] = other;
            survives(damaged);
        }
    }
}
