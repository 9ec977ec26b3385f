#pragma once
/// What a host must know of a built design: `manifest.json` beside the xclbin.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bdforge/json.hpp"
#include "bdforge/program.hpp"

namespace bdforge {

/// The manifest's schema that this library reads.
constexpr std::int64_t manifest_schema = 3;

/// A file of the build, relative to the manifest's folder and below it. `sha256` is "" where the build does not record it.
struct BuiltFile {
    std::string path;
    std::string sha256;
};

/// A problem whose sequence is part of the build: the only ones that a full ELF can run. Sizes by parameter.
struct BuiltProblem {
    std::string sequence;
    std::map<std::string, std::int64_t> sizes;
};

/// How sequences wait for a step's tokens, column by column or all by one wait; docs/sequences.md has what is guaranteed.
struct SequenceOptions {
    /// "column" or "wide"; "": as the design says, `in_flight` too.
    std::string wait;
    /// Steps at a time: 1 to 4, wide only 1; 0: the most.
    std::size_t in_flight = 0;
};

/// A manifest, checked. `file` is its own path, `content` everything in it.
struct Manifest {
    std::string file;
    std::string kind;         // the operator's, such as "gemm"
    std::string design;
    std::string spec_hash;
    std::string device;       // the product it was built for, such as "strix_halo"
    std::string mlir_device;  // its array, such as "npu2"
    std::string kernel;       // name of the xclbin's kernel
    std::string elf_kernel;   // name of the full ELF's kernel; its instances are sequences
    std::map<std::string, BuiltFile> files;
    std::vector<BuiltProblem> problems;
    generator::Design streams;             // what instruction streams are made from
    Json content;
    SequenceOptions sequence;  // other than the design's

    /// `content` with its place, for reading more of it.
    JsonView view() const { return JsonView(content, file); }
};

/// Reads a manifest; FileError when it cannot be read, ManifestError names the first thing that is missing or wrong, such
/// as a file that a link leads out of its folder.
Manifest load_manifest(const std::string& path);

/// The manifest in `text`; `file` heads every message.
Manifest parse_manifest(const std::string& text, const std::string& file);

/// The manifest beside an xclbin or ELF: `manifest.json` in its folder.
std::string manifest_beside(const std::string& image_path);

}  // namespace bdforge
