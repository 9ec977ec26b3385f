#include "bdforge/manifest.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "bdforge/error.hpp"
#include "bdforge/program_check.hpp"
#include "files.hpp"
#include "program.hpp"

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

/// A type, and the elements of memory that hold it: `bits` of one, `block` rows of a line, `run` for each column.
struct Type {
    std::string_view name;
    std::uint32_t bits, block, run;
};
constexpr Type types[] = {{"int2", 2, 1, 1},   {"int4", 4, 1, 1},  {"int8", 8, 1, 1}, {"int16", 16, 1, 1},
                          {"int32", 32, 1, 1}, {"bf16", 16, 1, 1}, {"f32", 32, 1, 1}, {"bfp16", 8, 8, 9}};

/// How an operand lies in memory: whole bytes, but for packed B.
generator::Storage read_storage(const JsonView& dtype, const JsonView& layout, bool b) {
    const auto same = [&](const Type& type) { return type.name == dtype.text(); };
    const Type* type = std::find_if(std::begin(types), std::end(types), same);
    if (type == std::end(types)) dtype.refuse("a type that this library knows");
    if (layout.text() == "packed" && b) return {type->bits, generator::packed, 1, 1};
    if (layout.text() != "row" && layout.text() != "column") layout.refuse(b ? "row, column or packed" : "row or column");
    if (type->bits % 8 != 0) dtype.refuse("a type of whole bytes where B is not packed");
    return {type->bits, layout.text() == "row" ? generator::row_major : generator::column_major, type->block, type->run};
}

std::array<OperandFacts, 3> read_operands(const JsonView& arguments, const JsonView& layouts) {
    const std::vector<JsonView> all = arguments.elements();
    if (all.size() != 3) arguments.refuse("three operands A, B and C");
    constexpr const char* names[3][2] = {{"A", "a"}, {"B", "b"}, {"C", "c"}};
    std::array<OperandFacts, 3> operands;
    for (std::size_t i = 0; i < all.size(); ++i) {
        check_value(all[i].at("name"), names[i][0], "the order of a GEMM's arguments");
        const JsonView type = all[i].at("dtype");
        operands[i] = {type.text(), read_storage(type, layouts.at(names[i][1]), i == 1)};
    }
    return operands;
}

/// What streams are made from: a GEMM's program has M, K, N and three leading dimensions, and A, B and C first.
generator::Design read_streams(const Manifest& manifest, const JsonView& sequence, const JsonView& spec) {
    generator::Design streams = read_sequence(sequence);
    const JsonView program = sequence.at("program");
    const std::vector<std::string> wanted{"M", "K", "N", "lda", "ldb", "ldc"};
    if (streams.program.parameters != wanted) program.at("parameters").refuse("M, K, N, lda, ldb, ldc");
    if (streams.program.arguments.size() < manifest.operands.size())
        program.at("arguments").refuse("A, B and C, and what feeds an epilogue");
    streams.wide = spec.has("sequence") && text_or(spec.at("sequence"), "wait", "column") == "wide";
    try {
        generator::check(streams.program, streams.target);
    } catch (const generator::SequenceError& error) {
        throw ManifestError(manifest.file + ": " + error.what() + "; build the design again");
    }
    return streams;
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
                      read_operands(view.at("arguments"), view.at("spec").at("layouts")),
                      read_epilogue(view.at("spec")),
                      read_files(view.at("files")),
                      read_problems(view.at("problems")),
                      {},
                      Json(nullptr),
                      {}};
    manifest.streams = read_streams(manifest, view.at("sequence"), view.at("spec"));
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
