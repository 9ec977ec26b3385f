#include "bdforge/design.hpp"

#include <algorithm>
#include <cstring>

#include "bdforge/error.hpp"
#include "files.hpp"
#include "lines.hpp"
#include "placing.hpp"
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
    if (!device.is_npu() || options.any_device || has_array(device.name(), manifest.mlir_device)) return;
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

/// How a caller's B lies: as the design stores it, or row-major in whole bytes where the library packs it.
generator::Storage given_storage(const OperandFacts& b) {
    if (b.storage.order != generator::packed) return b.storage;
    return {std::max(b.storage.bits, 8U), generator::row_major, 1, 1};
}

std::shared_ptr<Buffer> resident(const std::shared_ptr<DesignState>& design, std::size_t bytes) {
    return design->context->allocate(1, bytes);
}

Weights as_weights(const std::shared_ptr<DesignState>& design, std::shared_ptr<Buffer> buffer, std::size_t K,
                   std::size_t N) {
    buffer->to_device();  // once: weights do not change
    return Weights(std::make_shared<WeightsState>(WeightsState{design, std::move(buffer), K, N}));
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
    if (device.is_npu()) check_image(manifest, path, full_elf);  // other devices read the manifest only
    auto state = std::make_shared<DesignState>(device, std::move(manifest), full_elf);
    state->context = device.backend().load({path, full_elf, state->manifest});
    return Design(std::move(state));
}

const Manifest& Design::manifest() const { return state_->manifest; }
const Device& Design::device() const { return state_->device; }

void Design::check(std::size_t M, std::size_t K, std::size_t N) const {
    state_->streams.generator().check({M, K, N, 0, 0});
}

Weights Design::pack(const void* weights, std::size_t K, std::size_t N, std::size_t stride) const {
    check(1, K, N);
    if (weights == nullptr) throw ArgumentError("pack: no weights were given; pass K x N values");
    const Lines lines("B", given_storage(state_->manifest.operands[1]), K, N);
    const std::size_t given = lines.stride(stride);
    lines.extent(given);  // refuses what no process holds
    std::shared_ptr<Buffer> buffer = resident(state_, state_->streams.generator().b_bytes(K, N));
    write_b(state_->manifest, state_->streams.generator(), {weights, K, N, given}, buffer->data());
    return as_weights(state_, std::move(buffer), K, N);
}

Weights Design::packed(const void* data, std::size_t bytes, std::size_t K, std::size_t N) const {
    check(1, K, N);
    const std::size_t needed = state_->streams.generator().b_bytes(K, N);
    if (data == nullptr) throw ArgumentError("packed: no weights were given");
    if (bytes != needed) {
        throw WeightError("packed weights of " + std::to_string(K) + " x " + std::to_string(N) + " take " +
                          std::to_string(needed) + " bytes, got " + std::to_string(bytes) +
                          "; the file is truncated, or packed for other tile sizes: pack the weights again");
    }
    std::shared_ptr<Buffer> buffer = resident(state_, bytes);
    std::memcpy(buffer->data(), data, bytes);
    return as_weights(state_, std::move(buffer), K, N);
}

std::size_t Weights::K() const { return state_->K; }
std::size_t Weights::N() const { return state_->N; }
std::size_t Weights::bytes() const { return state_->buffer->bytes(); }

}  // namespace bdforge
