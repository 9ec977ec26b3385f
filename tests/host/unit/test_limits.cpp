#include "sequencer.hpp"

#include <fstream>

#include "bdforge/error.hpp"
#include "manifest.hpp"
#include "files.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;

namespace {

std::string manifest() { return read_file(unit::data_folder() + "/small/manifest.json", 1 << 20, ""); }

/// The manifest with another K of its first problem.
std::string with_size(const std::string& size) {
    std::string text = manifest();
    const std::string from = "\"K\": 40";
    return text.replace(text.rfind(from), from.size(), "\"K\": " + size);
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + "1" + std::string(depth, ']'); }

}  // namespace

UNIT_CASE("limits", files_may_be_as_long_as_their_limit) {
    const std::string path = unit::data_folder() + "/nine";
    std::ofstream(path) << "123456789";
    check_equal(read_file(path, 9, ""), "123456789", "a file of the limit");
    check_contains(message_of<FileError>([&] { read_file(path, 8, "make it shorter"); }), "9 bytes, more than 8; make");
    std::ofstream(path, std::ios::trunc).flush();
    check_equal(read_file(path, 0, ""), "", "an empty file");
}

UNIT_CASE("limits", json_nests_to_its_depth) {
    Json::parse(nested(64), "m.json");
    check_contains(message_of<ManifestError>([] { Json::parse(nested(65), "m.json"); }), "nested deeper than 64");
}

UNIT_CASE("limits", sizes_of_built_problems_have_ends) {
    check_equal(parse_manifest(with_size("1099511627776"), "m.json").problems.at(0).sizes.at("K"),
                std::int64_t{1} << 40, "the largest size");
    check_equal(parse_manifest(with_size("1"), "m.json").problems.at(0).sizes.at("K"), 1, "the least size");
    for (const char* size : {"0", "1099511627777"})
        check_contains(message_of<ManifestError>([&] { parse_manifest(with_size(size), "m.json"); }),
                       std::string("sizes.K is ") + size + ", expected an integer from 1 to 1099511627776");
}

UNIT_CASE("limits", streams_fill_their_words) {
    const LoadedManifest small = parse_manifest(manifest(), "m.json");
    const sequence::Sequencer sequencer(small.source);
    const auto written = [&](std::size_t most) { return sequencer.words({33, 40, 70}, most).size(); };
    const std::size_t words = written(sequence::stream_words_max);
    check_equal(written(words), words, "as many as there are");
    check_contains(message_of<sequence::SequenceError>([&] { written(words - 1); }), "the stream is longer than");
}
