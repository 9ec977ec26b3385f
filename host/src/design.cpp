#include "bdforge/design.hpp"

#include <filesystem>

#include "bdforge/error.hpp"
#include "files.hpp"
#include "state.hpp"
#include "messages.hpp"

namespace bdforge {
namespace {

constexpr std::size_t image_limit_bytes = std::size_t{1} << 30;

/// The file that is loaded: in a built design's folder the xclbin that its manifest names.
std::string image_of(const std::string& path, const LoadOptions& options) {
    std::error_code fault;
    if (!std::filesystem::is_directory(path, fault)) return path;
    const std::string folder = path + '/';
    const LoadedManifest manifest = load_manifest(options.manifest.empty() ? folder + "manifest.json" : options.manifest);
    const auto found = manifest.files.find("xclbin");
    return folder + (found == manifest.files.end() ? manifest.design + ".xclbin" : found->second.path);
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
    if (!device.backend().takes_images() || options.any_device || has_array(device.name(), manifest.mlir_device))
        return;
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

Design Design::load(const Device& device, const std::string& built, const LoadOptions& options) {
    const std::string path = image_of(built, options);
    const bool full_elf = path.ends_with(".elf");
    LoadedManifest manifest = load_manifest(options.manifest.empty() ? manifest_beside(path) : options.manifest);
    check_spec(manifest, options);
    check_device(manifest, device, options);
    if (full_elf && !options.sequence.wait.empty())
        throw ArgumentError(path + ": a full ELF brings its own sequences; load the xclbin to choose how they wait");
    if (device.backend().takes_images() || full_elf) check_image(manifest, path, full_elf);
    auto state = std::make_shared<DesignState>(device, std::move(manifest), full_elf, options.sequence);
    state->context = device.backend().open({path, full_elf, state->manifest});
    return Design(std::move(state));
}

void check_array(const DesignState& one, const DesignState& other) {
    if (one.context == other.context) return;
    throw ArgumentError(one.manifest.design + " is not loaded on the array of " + other.manifest.design +
                        "; load designs of one image on one Device, or let each run by itself");
}

const Manifest& Design::manifest() const { return state_->manifest; }
const Device& Design::device() const { return state_->device; }

namespace {

/// Makes sequences wait as `options` say; docs/sequences.md tells why a wide wait is for one step.
sequence::Source waiting(sequence::Source source, const SequenceOptions& options) {
    if (options.wait.empty()) return source;
    source.wide = options.wait == "wide";
    if (!source.wide && options.wait != "column")
        throw ArgumentError("sequence.wait = '" + options.wait + "' is unknown; choose column or wide");
    const std::size_t most = source.wide ? 1 : source.target.queue_entries;
    if (options.in_flight > most) {
        throw ArgumentError(concat("sequence.in_flight = ", options.in_flight, " is outside 0 to ", most,
                                 ", the steps that sequence.wait = ", options.wait,
                                 " allows at a time; 0 takes the most"));
    }
    const auto asked = static_cast<std::uint32_t>(options.in_flight == 0 ? most : options.in_flight);
    source.program.in_flight = std::min(asked, source.program.in_flight_max);
    return source;
}

}  // namespace

constexpr std::size_t streams_max = 256;  // a text's cache has another size with each token

Streams::Streams(const LoadedManifest& manifest, const SequenceOptions& options)
    : manifest_(manifest), sequencer_(waiting(manifest.source, options)) {}

std::shared_ptr<const Stream> Streams::get(Context& context, bool full_elf, const sequence::Parameters& parameters) {
    std::promise<Made> promise;
    std::unique_lock<std::mutex> lock(guard_);
    const auto [place, first] = made_.try_emplace(parameters);
    if (first) place->second = promise.get_future().share(), order_.push_back(parameters);
    const std::shared_future<Made> found = place->second;
    if (order_.size() > streams_max) made_.erase(order_.front()), order_.pop_front();  // jobs keep theirs
    lock.unlock();
    if (!first) return found.get();
    try {
        promise.set_value(make(context, full_elf, parameters));
    } catch (...) {
        promise.set_exception(std::current_exception());
        lock.lock();
        made_.erase(parameters), std::erase(order_, parameters);  // memory may be there the next time
    }
    return found.get();
}

Streams::Made Streams::make(Context& context, bool full_elf, const sequence::Parameters& parameters) {
    if (full_elf) return std::make_shared<const Stream>(Stream{nullptr, built_sequence(parameters)});
    const std::vector<std::uint32_t> words = named([&] { return sequencer_.words(parameters); });
    const std::lock_guard<std::mutex> lock(device_);
    return std::make_shared<const Stream>(Stream{context.instructions(words), "", words.size()});
}

/// The ELF's sequence for a problem: those that the build knows have no gaps.
std::string Streams::built_sequence(const sequence::Parameters& parameters) const {
    const sequence::Program& program = manifest_.source.program;
    for (const auto& [name, sizes] : manifest_.problems) {
        sequence::Parameters built;
        for (const std::string& parameter : program.parameters)
            built.push_back(sizes.contains(parameter) ? sizes.at(parameter) : 0);
        if (built == parameters && !name.empty()) return name;  // a template has none
    }
    throw ArgumentError(
        concat(manifest_.design, ": its ELF holds no sequence for ", shape_of(program, parameters),
             " without strides; add the problem to the design's spec, or load the xclbin, which runs any size"));
}

}  // namespace bdforge
