#include "bdforge/manifest.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

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
    if (sizes.n % sizes.t != 0) tile.at("n").refuse("a multiple of t = " + std::to_string(sizes.t));
    return sizes;
}

/// How an operand lies in memory: whole bytes, but for packed B.
generator::Storage read_storage(const JsonView& view, bool b) {
    const auto number = [&](const char* name, std::int64_t lowest, std::int64_t highest) {
        return static_cast<std::uint32_t>(view.at(name).integer(lowest, highest));
    };
    const generator::Storage storage{number("bits", 1, 64), number("order", generator::row_major, generator::packed),
                                     number("block", 1, 64), number("run", 1, 4096)};
    if (storage.order == generator::packed && !b) view.at("order").refuse("row- or column-major for A and C");
    if (storage.order != generator::packed && storage.bits % 8 != 0) view.at("bits").refuse("whole bytes");
    return storage;
}

std::array<OperandFacts, 3> read_operands(const JsonView& arguments, const JsonView& storages) {
    const std::vector<JsonView> all = arguments.elements();
    if (all.size() != 3) arguments.refuse("three operands A, B and C");
    constexpr const char* names[3][2] = {{"A", "a"}, {"B", "b"}, {"C", "c"}};
    constexpr std::string_view types[] = {"int2", "int4", "int8", "int16", "int32", "bf16", "f32", "bfp16"};
    std::array<OperandFacts, 3> operands;
    for (std::size_t i = 0; i < all.size(); ++i) {
        check_value(all[i].at("name"), names[i][0], "the order of a GEMM's arguments");
        const JsonView type = all[i].at("dtype");
        if (std::find(std::begin(types), std::end(types), type.text()) == std::end(types))
            type.refuse("a type that this library knows");
        operands[i] = {type.text(), read_storage(storages.at(names[i][1]), i == 1)};
    }
    return operands;
}

/// Whether C is A B as it is. Scales and biases on the array are refused: this library does not bring them there.
bool read_epilogue(const JsonView& spec) {
    if (!spec.has("epilogue")) return true;
    const JsonView epilogue = spec.at("epilogue");
    for (const char* fed : {"scale", "bias"}) {
        if (epilogue.at(fed).boolean())
            epilogue.at(fed).refuse("false: this library brings no scales or biases to cores");
    }
    return epilogue.at("shift").integer(0, 31) == 0 && !epilogue.at("relu").boolean();
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
                      read_operands(view.at("arguments"), view.at("runtime").at("operands")),
                      read_epilogue(view.at("spec")),
                      read_files(view.at("files")),
                      read_problems(view.at("problems")),
                      Json(nullptr),
                      {}};
    const std::int64_t group = 4 * manifest.tile.t;  // columns that share the bytes of packed ternary weights
    if (manifest.operands[1].type == "int2" && manifest.tile.n % group != 0)
        view.at("tile").at("n").refuse("a multiple of 4 t = " + std::to_string(group));
    manifest.content = std::move(content);
    return manifest;
}

Manifest load_manifest(const std::string& path) {
    return parse_manifest(read_file(path, manifest_limit_bytes, "build the design, which writes it beside the xclbin"),
                          path);
}

std::string manifest_beside(const std::string& image_path) { return folder_of(image_path) + "manifest.json"; }

}  // namespace bdforge
