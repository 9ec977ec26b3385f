#include "bdforge/error.hpp"
#include "manifest.hpp"
#include "files.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;

namespace {

std::string text() { return read_file(unit::data_folder() + "/small/manifest.json", 1 << 20, ""); }

/// The manifest with the first `from` replaced.
std::string with(const std::string& from, const std::string& to) {
    std::string changed = text();
    const std::size_t at = changed.find(from);
    unit::check(at != std::string::npos, from + " is not in the manifest");
    return changed.replace(at, from.size(), to);
}

std::string refusal(const std::string& changed) {
    return message_of<ManifestError>([&] { parse_manifest(changed, "m.json"); });
}

}  // namespace

UNIT_CASE("manifest", a_built_design_is_read) {
    const LoadedManifest manifest = load_manifest(unit::data_folder() + "/small/manifest.json");
    check_equal(manifest.design, "small", "design");
    check_equal(manifest.device, "strix_halo", "device");
    check_equal(manifest.mlir_device, "npu2_2col", "array");
    check_equal(manifest.kernel, "MLIR_AIE", "kernel");
    check_equal(manifest.kind, "gemm", "kind");
    check_equal(manifest.problems.at(0).sizes.at("K"), 40, "K");
    check_equal(manifest.problems.at(0).sequence, "gemm_33x40x70", "sequence");
}

UNIT_CASE("manifest", mismatches_are_named) {
    check_contains(refusal(with("\"schema\": 3", "\"schema\": 1")),
                   "m.json: schema is 1, expected 3, the schema of this library");
    check_contains(refusal(with("\"schema\": 3", "\"schema\": 4")), "m.json: schema is 4, expected 3");
    for (const std::string member : {"schema", "kind", "design", "device", "mlir_device", "files", "sequence", "wide"})
        check_contains(refusal(with("\"" + member + "\": ", "\"_" + member + "\": ")), member + " is missing");
    check_contains(refusal(with("\"spec_hash\"", "\"spec_hush\"")), "m.json: spec_hash is missing");
    check_contains(refusal(with("\"gemm_33x40x70\"", "7")), "problems[0].sequence is 7, expected a text");
}

UNIT_CASE("manifest", names_of_kernels_and_hashes_of_files_are_read_where_they_stand) {
    const LoadedManifest manifest = parse_manifest(with("\"kernel\": \"MLIR_AIE\", \"elf_kernel\": \"main\"",
                                                  "\"kernel\": \"K\", \"elf_kernel\": \"E\""),
                                             "m.json");
    check_equal(manifest.kernel, "K", "kernel");
    check_equal(manifest.elf_kernel, "E", "kernel of the ELF");
    check_equal(manifest.files.at("xclbin").path, "small.xclbin", "path");
    check_equal(manifest.files.at("xclbin").sha256, sha256("no xclbin"), "hash");
    const LoadedManifest unnamed = parse_manifest(with("\"kernel\": \"MLIR_AIE\", \"elf_kernel\": \"main\", ", ""), "m.json");
    check_equal(unnamed.kernel + " " + unnamed.elf_kernel, "MLIR_AIE main", "kernels of a manifest that names none");
    const LoadedManifest plain = parse_manifest(with("\"mlir\": ", "\"list\": \"a/b\", \"mlir\": "), "m.json");
    check_equal(plain.files.at("list").path + plain.files.at("list").sha256, "a/b", "a file without a hash");
    const LoadedManifest without = parse_manifest(with("\"sha256\": \"" + sha256("no xclbin"), "\"sha256\": \""), "m.json");
    check_equal(without.files.at("xclbin").sha256, "", "no hash");
}

UNIT_CASE("manifest", streams_wait_as_it_says) {
    for (const bool wide : {false, true}) {
        const std::string found = with("\"wide\": false", wide ? "\"wide\": true" : "\"wide\": false");
        check_equal(parse_manifest(found, "m.json").source.wide, wide, "wide");
    }
}

UNIT_CASE("manifest", programs_that_cannot_run_are_refused_with_the_manifest) {
    check_contains(refusal(with("{\"when\": ", "{\"when\": 99")), "names value 99");
}

UNIT_CASE("manifest", lies_beside_the_design) {
    check_equal(manifest_beside("a/b/c.xclbin"), "a/b/manifest.json", "folder");
    check_equal(manifest_beside("c.xclbin"), "manifest.json", "no folder");
}
