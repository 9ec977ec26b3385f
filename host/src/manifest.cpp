#include "bdforge/manifest.hpp"

#include "bdforge/error.hpp"
#include "files.hpp"

namespace bdforge {
namespace {

constexpr std::size_t manifest_limit_bytes = std::size_t{16} << 20;
constexpr std::int64_t tile_max = 1 << 20;
constexpr std::int64_t array_max = 64;  // far above any NPU; the sequence generator checks what the device has

std::string text_or(const JsonView& view, const std::string& key, const std::string& otherwise) {
    return view.has(key) ? view.at(key).text() : otherwise;
}

void check_value(const JsonView& view, const std::string& wanted, const std::string& why) {
    if (view.text() != wanted) view.refuse("\"" + wanted + "\", " + why);
}

TileSizes read_tile(const JsonView& tile) {
    const auto size = [&](const char* name) { return tile.at(name).integer(1, tile_max); };
    const TileSizes sizes{size("m"), size("k"), size("n"), size("k_mt"), size("r"), size("s"), size("t")};
    if (sizes.k_mt % sizes.k != 0) tile.at("k_mt").refuse("a multiple of k = " + std::to_string(sizes.k));
    if (sizes.k % sizes.s != 0) tile.at("k").refuse("a multiple of s = " + std::to_string(sizes.s));
    if (sizes.n % (4 * sizes.t) != 0) tile.at("n").refuse("a multiple of 4 t = " + std::to_string(4 * sizes.t));
    return sizes;
}

/// The operands this library packs and moves: int8 times ternary, int32 out.
void check_arguments(const JsonView& arguments) {
    constexpr const char* only = "the only one that this library takes";
    const std::vector<JsonView> all = arguments.elements();
    if (all.size() != 3) arguments.refuse("three operands A, B and C");
    const char* expected[3][2] = {{"A", "int8"}, {"B", "uint8"}, {"C", "int32"}};
    for (std::size_t i = 0; i < all.size(); ++i) {
        check_value(all[i].at("name"), expected[i][0], "the order of a GEMM's arguments");
        check_value(all[i].at("dtype"), expected[i][1], only);
    }
}

std::map<std::string, BuiltFile> read_files(const JsonView& files) {
    std::map<std::string, BuiltFile> read;
    for (const auto& [role, file] : files.members()) {
        const bool hashed = file.is_object();
        read[role] = hashed ? BuiltFile{file.at("path").text(), file.at("sha256").text()} : BuiltFile{file.text(), ""};
    }
    return read;
}

std::vector<BuiltProblem> read_problems(const JsonView& problems) {
    std::vector<BuiltProblem> read;
    for (const JsonView& problem : problems.elements()) {
        const auto size = [&](const char* name) { return problem.at(name).integer(1, tile_max); };
        read.push_back({problem.at("sequence").text(), size("M"), size("K"), size("N")});
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
    check_value(view.at("kind"), "gemm", "the only kind that this library runs");
    check_arguments(view.at("arguments"));
    Manifest manifest{file,
                      view.at("design").text(),
                      view.at("spec_hash").text(),
                      view.at("device").text(),
                      view.at("mlir_device").text(),
                      text_or(view, "kernel", "MLIR_AIE"),  // aiecc's own names
                      text_or(view, "elf_kernel", "main"),
                      read_tile(view.at("tile")),
                      view.at("array").at("rows").integer(1, array_max),
                      view.at("array").at("columns").integer(1, array_max),
                      read_files(view.at("files")),
                      read_problems(view.at("problems")),
                      Json(nullptr)};
    manifest.content = std::move(content);
    return manifest;
}

Manifest load_manifest(const std::string& path) {
    return parse_manifest(read_file(path, manifest_limit_bytes, "build the design, which writes it beside the xclbin"),
                          path);
}

std::string manifest_beside(const std::string& image_path) { return folder_of(image_path) + "manifest.json"; }

}  // namespace bdforge
