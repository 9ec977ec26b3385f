#pragma once
// Reading `manifest.json`.

#include <cstdint>
#include <string>

#include "bdforge/design.hpp"
#include "json.hpp"
#include "sequence_program.hpp"

namespace bdforge {

/// The manifest's schema that this library reads.
constexpr std::int64_t manifest_schema = 3;

/// A manifest with what only the library needs of it. `content`: everything in it.
struct LoadedManifest : Manifest {
    sequence::Source source;  // what instruction streams are made from
    Json content;

    JsonView view() const { return JsonView(content, file); }
};

/// Reads a manifest; FileError when it cannot be read, ManifestError names the first thing that is missing or wrong, such
/// as a file that a link leads out of its folder.
LoadedManifest load_manifest(const std::string& path);

/// The manifest in `text`; `file` heads every message.
LoadedManifest parse_manifest(const std::string& text, const std::string& file);

/// The manifest beside an xclbin or ELF: `manifest.json` in its folder.
std::string manifest_beside(const std::string& image_path);

}  // namespace bdforge
