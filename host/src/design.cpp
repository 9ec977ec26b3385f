#include "bdforge/design.hpp"

#include "bdforge/error.hpp"
#include "files.hpp"
#include "state.hpp"

namespace bdforge {
namespace {

constexpr std::size_t image_limit_bytes = std::size_t{1} << 30;

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string name_of(const std::string& path) { return path.substr(folder_of(path).size()); }

[[noreturn]] void mismatch(const Manifest& manifest, const std::string& what) {
    throw ManifestError(manifest.file + ": " + what);
}

void check_spec(const Manifest& manifest, const LoadOptions& options) {
    if (options.spec_hash.empty() || options.spec_hash == manifest.spec_hash) return;
    mismatch(manifest, "spec_hash is " + manifest.spec_hash + ", this program was made for " + options.spec_hash +
                           "; build the design that the program belongs to");
}

void check_device(const Manifest& manifest, const Device& device, const LoadOptions& options) {
    if (!device.backend().takes_images() || options.any_device || has_array(device.name(), manifest.mlir_device)) return;
    mismatch(manifest, "design " + manifest.design + " is for device " + manifest.device + " (" + manifest.mlir_device +
                           "), this one is \"" + device.name() +
                           "\"; build it with scons device=..., or load it with "
                           "any_device if the name is new");
}

/// The image must be the manifest's, by name and by content.
void check_image(const Manifest& manifest, const std::string& path, bool full_elf) {
    const std::string role = full_elf ? "elf" : "xclbin";
    const std::string way = "build it with scons device=" + manifest.device + " format=" + role;
    const std::string content = read_file(path, image_limit_bytes, way);
    const auto found = manifest.files.find(role);
    if (found == manifest.files.end()) {
        mismatch(manifest, "files." + role + " is missing, this design was built without; " + way);
    }
    if (name_of(found->second.path) != name_of(path)) {
        mismatch(manifest, "files." + role + " is " + found->second.path + ", but " + name_of(path) +
                               " is to be loaded; give the manifest that belongs to it");
    }
    if (found->second.sha256 == sha256(content)) return;
    mismatch(manifest, "files." + role + ".sha256 is not that of " + path +
                           "; they come from different builds, build the design again");
}

}  // namespace

Design Design::load(const Device& device, const std::string& path, const LoadOptions& options) {
    const bool full_elf = ends_with(path, ".elf");
    Manifest manifest = load_manifest(options.manifest.empty() ? manifest_beside(path) : options.manifest);
    check_spec(manifest, options);
    check_device(manifest, device, options);
    if (full_elf && !options.sequence.wait.empty())
        throw ArgumentError(path + ": a full ELF brings its own sequences; load the xclbin to choose how they wait");
    manifest.sequence = options.sequence;
    if (device.backend().takes_images() || full_elf) check_image(manifest, path, full_elf);
    auto state = std::make_shared<DesignState>(device, std::move(manifest), full_elf);
    state->context = device.backend().load({path, full_elf, state->manifest});
    return Design(std::move(state));
}

const Manifest& Design::manifest() const { return state_->manifest; }
const Device& Design::device() const { return state_->device; }

}  // namespace bdforge
