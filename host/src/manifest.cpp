#include "manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "bdforge/error.hpp"
#include "files.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

constexpr std::size_t manifest_limit_bytes = std::size_t{16} << 20, changes_limit_bytes = std::size_t{256} << 20;
constexpr std::int64_t size_max = std::int64_t{1} << 40;

std::string text_or(const JsonView& view, const std::string& key, const std::string& otherwise) {
    return view.has(key) ? view.at(key).text() : otherwise;
}

/// What streams are made from, checked.
sequence::Source read_source(const JsonView& view) {
    sequence::Source source = sequence::read_sequence(view.at("sequence"));
    try {
        sequence::check(source);
    } catch (const sequence::SequenceError& error) {
        throw ManifestError(view.file() + ": " + error.what() + "; build the design again");
    }
    return source;
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

LoadedManifest parse_manifest(const std::string& text, const std::string& file) {
    Json content = Json::parse(text, file);
    const JsonView view(content, file);
    if (const JsonView schema = view.at("schema"); schema.integer(0, INT64_MAX) != manifest_schema)
        schema.refuse(concat(manifest_schema, ", the schema of this library"));
    LoadedManifest manifest{};  // member by member: GCC 12 destroys aggregates twice whose initialisation throws
    manifest.file = file;
    for (const auto& [member, name] : {std::pair(&Manifest::kind, "kind"), std::pair(&Manifest::design, "design"),
                                       std::pair(&Manifest::spec_hash, "spec_hash"), std::pair(&Manifest::device, "device"),
                                       std::pair(&Manifest::mlir_device, "mlir_device")})
        manifest.*member = view.at(name).text();
    manifest.kernel = text_or(view, "kernel", "MLIR_AIE");  // aiecc's own names
    manifest.elf_kernel = text_or(view, "elf_kernel", "main");
    manifest.files = read_files(view.at("files"));
    manifest.source = read_source(view);
    manifest.problems = read_problems(view.at("problems"), manifest.source.program.parameters);
    manifest.content = std::move(content);
    return manifest;
}

namespace {

/// What the program changes the array's configuration to, from the file beside the manifest.
std::vector<sequence::Change> changes_of(const LoadedManifest& manifest) {
    const std::size_t count = manifest.source.program.configurations;
    if (count == 0) return {};
    const auto found = manifest.files.find("configurations");
    if (found == manifest.files.end())
        throw ManifestError(manifest.file + ": files.configurations is missing; run bdforge compose");
    const std::string path = folder_of(manifest.file) + found->second.path;
    const std::string content = read_file(path, changes_limit_bytes, "run bdforge compose");
    if (!found->second.sha256.empty() && found->second.sha256 != sha256(content))
        throw ManifestError(manifest.file + ": files.configurations.sha256 is not that of " + path +
                            "; they come from different builds, run bdforge compose again");
    try {
        return sequence::read_changes(content, manifest.source.target, count);
    } catch (const sequence::SequenceError& error) {
        throw ManifestError(path + ": " + error.what() + "; run bdforge compose again");
    }
}

}  // namespace

LoadedManifest load_manifest(const std::string& path) {
    LoadedManifest manifest = parse_manifest(
        read_file(path, manifest_limit_bytes, "build the design, which writes it beside the xclbin"), path);
    check_links(manifest);
    manifest.source.changes = changes_of(manifest);
    return manifest;
}

std::string manifest_beside(const std::string& image_path) { return folder_of(image_path) + "manifest.json"; }

}  // namespace bdforge
