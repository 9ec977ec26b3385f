#include "bdforge/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "bdforge/error.hpp"
#include "bdforge/program_check.hpp"
#include "files.hpp"
#include "program.hpp"

namespace bdforge {
namespace {

constexpr std::size_t manifest_limit_bytes = std::size_t{16} << 20;
constexpr std::int64_t size_max = std::int64_t{1} << 40;

std::string text_or(const JsonView& view, const std::string& key, const std::string& otherwise) {
    return view.has(key) ? view.at(key).text() : otherwise;
}

/// What streams are made from.
generator::Design read_streams(const JsonView& view) {
    const JsonView sequence = view.at("sequence");
    generator::Design streams = read_sequence(sequence);
    streams.wide = sequence.at("wide").boolean();
    try {
        generator::check(streams.program, streams.target);
    } catch (const generator::SequenceError& error) {
        throw ManifestError(view.file() + ": " + error.what() + "; build the design again");
    }
    return streams;
}

/// A path below the manifest's folder; ManifestError for others.
std::string below(const JsonView& member) {
    const std::string text = member.text();
    const std::filesystem::path path(text);
    bool inside = path.is_relative() && text.find('\0') == std::string::npos, named = false;
    for (const auto& part : path) {
        inside = inside && part != "..";
        named = named || part != ".";
    }
    if (!inside || !named) member.refuse("a path below the manifest's folder");
    return text;
}

std::map<std::string, BuiltFile> read_files(const JsonView& files) {
    std::map<std::string, BuiltFile> read;
    for (const auto& [role, file] : files.members()) {
        const bool hashed = file.is_object();
        read[role] = hashed ? BuiltFile{below(file.at("path")), file.at("sha256").text()} : BuiltFile{below(file), ""};
    }
    return read;
}

/// ManifestError for a file that links lead out of the manifest's folder.
void check_links(const Manifest& manifest) {
    namespace fs = std::filesystem;
    std::error_code failed;
    const fs::path folder = fs::canonical(fs::absolute(manifest.file).parent_path(), failed);
    for (const auto& [role, file] : manifest.files) {
        const fs::path real = fs::weakly_canonical(folder / file.path, failed);
        const auto [last, other] = std::mismatch(folder.begin(), folder.end(), real.begin(), real.end());
        if (!failed && last == folder.end()) continue;
        throw ManifestError(manifest.file + ": files." + role + " is " + file.path +
                            ", which links to a place outside of the design's folder; build the design again");
    }
}

/// Problems, of which sizes are parameters of the sequence program.
std::vector<BuiltProblem> read_problems(const JsonView& problems, const std::vector<std::string>& parameters) {
    std::vector<BuiltProblem> read;
    for (const JsonView& problem : problems.elements()) {
        BuiltProblem built{problem.at("sequence").text(), {}};
        const JsonView sizes = problem.at("sizes");
        for (const std::string& name : parameters)
            if (sizes.has(name)) built.sizes[name] = sizes.at(name).integer(1, size_max);
        read.push_back(std::move(built));
    }
    return read;
}

}  // namespace

Manifest parse_manifest(const std::string& text, const std::string& file) {
    Json content = Json::parse(text, file);
    const JsonView view(content, file);
    if (const JsonView schema = view.at("schema"); schema.integer(0, INT64_MAX) != manifest_schema) {
        schema.refuse(std::to_string(manifest_schema) + ", the schema of this library");
    }
    Manifest manifest{file,
                      view.at("kind").text(),
                      view.at("design").text(),
                      view.at("spec_hash").text(),
                      view.at("device").text(),
                      view.at("mlir_device").text(),
                      text_or(view, "kernel", "MLIR_AIE"),  // aiecc's own names
                      text_or(view, "elf_kernel", "main"),
                      read_files(view.at("files")),
                      {},
                      read_streams(view),
                      Json(nullptr),
                      {}};
    manifest.problems = read_problems(view.at("problems"), manifest.streams.program.parameters);
    manifest.content = std::move(content);
    return manifest;
}

Manifest load_manifest(const std::string& path) {
    Manifest manifest = parse_manifest(
        read_file(path, manifest_limit_bytes, "build the design, which writes it beside the xclbin"), path);
    check_links(manifest);
    return manifest;
}

std::string manifest_beside(const std::string& image_path) { return folder_of(image_path) + "manifest.json"; }

}  // namespace bdforge
