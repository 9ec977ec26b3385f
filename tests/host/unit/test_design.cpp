#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "files.hpp"
#include "state.hpp"
#include "unit.hpp"

using namespace bdforge;
using namespace unit;

namespace {

template <class Fault>
std::string refusal(const Device& device, const std::string& path, const LoadOptions& options = {}) {
    return message_of<Fault>([&] { Design::load(device, path, options); });
}

/// A manifest of the small design in which `from` is `to`, beside a file `name` with `content`.
std::string changed_design(const std::string& name, const std::string& from, const std::string& to) {
    std::string manifest = read_file(unit::data_folder() + "/small/manifest.json", 1 << 20, "");
    const std::size_t at = manifest.find(from);
    unit::check(at != std::string::npos, from + " is not in the manifest");
    manifest.replace(at, from.size(), to);
    std::ofstream(unit::data_folder() + "/changed/manifest.json") << manifest;
    const std::string path = unit::data_folder() + "/changed/" + name;
    std::ofstream(path) << "content";
    return path;
}

}  // namespace

UNIT_CASE("design", a_missing_file_is_named) {
    const Device device = scripted_device(std::make_shared<Script>());
    check_contains(refusal<FileError>(device, "/no/such/x.xclbin"), "/no/such/manifest.json: No such file");
    const std::string beside = unit::data_folder() + "/small/other.xclbin";
    check_contains(refusal<FileError>(device, beside),
                   beside + ": No such file or directory; build it with scons device=strix_halo");
}

UNIT_CASE("design", another_device_is_refused_by_name) {
    const auto script = std::make_shared<Script>();
    for (const char* other : {"NPU Phoenix", "RyzenAI-npu1", "something new"}) {
        const std::string fault = refusal<ManifestError>(scripted_device(script, other), design_path("small"));
        check_contains(fault,
                       "design small is for device strix_halo (npu2_2col), this one is \"" + std::string(other) + "\"");
    }
    check_equal(script->loads, 0U, "loads");
    LoadOptions any;
    any.any_device = true;
    Design::load(scripted_device(script, "something new"), design_path("small"), any);
    check_equal(script->loads, 1U, "loads");
}

UNIT_CASE("design", devices_of_one_array_take_the_same_design) {
    const std::pair<const char*, const char*> arrays[] = {
        {"NPU Phoenix", "npu1"}, {"NPU Hawk Point", "npu1"}, {"RyzenAI-npu1", "npu1"}, {"NPU Strix Halo", "npu2"},
        {"NPU Strix", "npu2"}, {"NPU Krackan 1", "npu2"}, {"RyzenAI-npu4", "npu2"}, {"RyzenAI-npu5", "npu2"},
        {"RyzenAI-npu6", "npu2"}, {"NPU STRIX", "npu2"}, {"something new", "none"}, {"", "none"}, {"RyzenAI-npu3", "none"},
    };
    for (const auto& [name, array] : arrays) {
        for (const std::string of : {"npu1", "npu2"}) {
            check_equal(has_array(name, of), array == of, std::string(name) + " has " + of);
            check_equal(has_array(name, of + "_2col"), array == of, std::string(name) + " has two columns of " + of);
        }
        check_equal(has_array(name, "npu"), false, std::string(name) + " has npu");
    }
}

UNIT_CASE("design", sequences_wait_in_ways_and_for_as_many_steps_as_there_are) {
    const auto loaded = [](const std::string& wait, std::size_t in_flight, const std::string& image = "small.xclbin") {
        LoadOptions options;
        options.sequence = {wait, in_flight};
        Design::load(unit::memory_device(), unit::data_folder() + "/small/" + image, options);
    };
    for (const std::size_t steps : {0, 1, 4}) loaded("column", steps);
    for (const std::size_t steps : {0, 1}) loaded("wide", steps);
    loaded("", 9);  // as the design says, whatever else
    const auto refused = [&](const std::string& wait, std::size_t in_flight) {
        return message_of<ArgumentError>([&] { loaded(wait, in_flight); });
    };
    check_contains(refused("column", 5), "sequence.in_flight = 5 is outside 0 to 4");
    check_contains(refused("wide", 2), "sequence.in_flight = 2 is outside 0 to 1");
    check_contains(refused("columns", 1), "sequence.wait = 'columns' is unknown; choose column or wide");
    loaded("", 0, "small.elf");
    check_contains(message_of<ArgumentError>([&] { loaded("column", 0, "small.elf"); }), "a full ELF brings its own sequences");
}

UNIT_CASE("design", no_more_steps_are_under_way_than_the_program_allows) {
    const auto words = [](const std::string& in_flight_max, std::size_t in_flight) {
        const std::string path = changed_design("small.xclbin", "\"in_flight_max\": 4", "\"in_flight_max\": " + in_flight_max);
        LoadedManifest manifest = load_manifest(unit::data_folder() + "/changed/manifest.json");
        const auto context = unit::memory_device().backend().load({path, false, manifest});
        const auto stream = Streams(manifest, {"column", in_flight}).get(*context, false, {200, 64, 200, 0, 0, 0});
        Buffer& made = *stream->instructions;
        const auto* const bytes = static_cast<const char*>(made.data());
        return std::vector<char>(bytes, bytes + made.bytes());
    };
    check_equal(words("1", 4), words("1", 1), "4 steps of at most 1");
    check_equal(words("2", 0), words("4", 2), "as many as there may be of at most 2");
    check_equal(words("4", 0), words("4", 4), "as many as there may be of at most 4");
    check_equal(words("4", 1) == words("4", 4), false, "1 step at a time is as 4");
}

UNIT_CASE("design", files_of_a_manifest_lie_in_its_folder) {
    const Device device = scripted_device(std::make_shared<Script>());
    const std::string folder = unit::data_folder() + "/changed/", first = "\"host_kernels\": {\"path\": \"";
    std::filesystem::create_directories(folder + "inside");
    for (const auto& [link, to] : {std::pair{"link", "../small/small.mlir"}, {"links", "../small"}, {"loop", "loop"}, {"own", "small.mlir"}}) {
        std::filesystem::remove(folder + link);
        std::filesystem::create_symlink(to, folder + link);
    }
    const auto with = [&](const std::string& path) { return changed_design("small.xclbin", first, first + path + "\", \"was\": \""); };
    for (const char* path : {"../evil.so", "/evil.so", "inside/../../evil.so", "", ".", "..", "a\\u0000b", "link", "links/small.mlir", "loop", "inside/../small.mlir"})
        check_contains(refusal<ManifestError>(device, with(path)), "files.host_kernels");
    for (const char* path : {"own", "inside/none"})
        check_contains(refusal<ManifestError>(device, with(path)), "files.xclbin.sha256");  // which is checked later
}

UNIT_CASE("design", another_spec_is_refused_by_its_hash) {
    const Device device = scripted_device(std::make_shared<Script>());
    LoadOptions options;
    options.spec_hash = "0123456789abcdef";
    check_contains(refusal<ManifestError>(device, design_path("small"), options),
                   "this program was made for 0123456789abcdef");
    options.spec_hash = Design::load(device, design_path("small")).manifest().spec_hash;
    Design::load(device, design_path("small"), options);
}

UNIT_CASE("design", a_file_of_another_build_is_refused) {
    const auto script = std::make_shared<Script>();
    const Device device = scripted_device(script);
    const std::string hash = "\"sha256\": \"" + sha256("no xclbin");
    std::string path = changed_design("small.xclbin", hash, "\"sha256\": \"" + sha256("other"));
    check_contains(refusal<ManifestError>(device, path), "files.xclbin.sha256 is not that of " + path);
    path = changed_design("small.xclbin", hash, "\"sha256\": \"");
    check_contains(refusal<ManifestError>(device, path), "files.xclbin.sha256 is not that of " + path);
    path = changed_design("a.xclbin", hash, "\"sha256\": \"" + sha256("content"));
    check_contains(refusal<ManifestError>(device, path),
                   "files.xclbin is small.xclbin, but a.xclbin is to be loaded; give the manifest that belongs to it");
    check_equal(script->loads, 0U, "loads");
    Design::load(device, changed_design("small.xclbin", hash, "\"sha256\": \"" + sha256("content")));
    check_equal(script->loads, 1U, "loads");
}

UNIT_CASE("design", a_file_that_the_manifest_does_not_list_is_refused) {
    const Device device = scripted_device(std::make_shared<Script>());
    check_contains(refusal<ManifestError>(device, changed_design("small.xclbin", "\"xclbin\": {", "\"other\": {")),
                   "files.xclbin is missing, this design was built without; build it with scons device=strix_halo "
                   "format=xclbin");
    check_contains(refusal<ManifestError>(device, changed_design("small.elf", "\"elf\": {", "\"other\": {")),
                   "files.elf is missing, this design was built without; build it with scons device=strix_halo "
                   "format=elf");
}

UNIT_CASE("design", weights_of_impossible_sizes_are_refused) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const std::vector<std::int8_t> weights(64);
    const auto refused = [&](std::size_t K, std::size_t N, std::size_t stride = 0) {
        return message_of<ArgumentError>([&] { design.pack(weights.data(), K, N, stride); });
    };
    check_contains(refused(0, 8), "small: K = 0 is outside 1 to 1048576");
    check_contains(refused(8, 0), "small: N = 0 is outside 1 to 1048576");
    check_contains(refused(8, (1 << 20) + 1), "N = 1048577 is outside");
    check_contains(refused(SIZE_MAX, 8), "is outside 1 to 1048576");
    check_contains(refused(1 << 19, 8), "K = 524288 could overflow the sums; at most 262143");
    check_contains(refused(8, 8, 7), "B: a stride of 7 is below the 8 elements of a line");
    check_contains(message_of<ArgumentError>([&] { design.pack(nullptr, 8, 8); }), "B: no array was given");
}

UNIT_CASE("design", columns_of_one_weight_alone_are_packed_and_what_is_beside_them_is_refused) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    constexpr std::size_t K = 40, N = 66;  // beyond a whole tile and a whole one
    std::vector<std::int8_t> weights(K * N), a(K, 1);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::int8_t>(i % N % 3) - 1;
    a[K - 1] = 100;  // the last row counts apart
    Gemm gemm(design, 1, design.pack(weights.data(), K, N));
    std::vector<std::int32_t> c(N, -1);
    gemm.run(a.data(), 0, c.data(), 0);
    for (std::size_t column = 0; column < N; ++column)
        check_equal(c[column], (static_cast<std::int32_t>(column % 3) - 1) * 139, "the sum of column " + std::to_string(column));
    for (const std::size_t place : {std::size_t{0}, N - 1, N, K * N - 1}) {
        for (const int value : {-2, 2}) {
            std::vector<std::int8_t> wrong = weights;
            wrong[place] = static_cast<std::int8_t>(value);
            check_contains(message_of<WeightError>([&] { design.pack(wrong.data(), K, N); }),
                           "row " + std::to_string(place / N) + ", column " + std::to_string(place % N) + " is " +
                               std::to_string(value) + ", expected -1 to 1");
        }
    }
}

UNIT_CASE("design", truncated_packed_weights_are_refused) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const std::vector<std::uint8_t> bytes(64 * 64 / 4, 0x55);
    design.packed(bytes.data(), bytes.size(), 64, 64);
    const std::string fault = message_of<WeightError>([&] { design.packed(bytes.data(), bytes.size() - 1, 64, 64); });
    check_contains(fault, "packed B of K = 64, N = 64 takes 1024 bytes, got 1023; the file is truncated");
}

UNIT_CASE("design", packed_bytes_are_those_of_some_weights) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    constexpr std::size_t K = 40, N = 66;
    std::vector<std::int8_t> weights(K * N);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::int8_t>(i % 5 % 3) - 1;
    const Weights made = design.pack(weights.data(), K, N);
    const auto* const begin = static_cast<const std::uint8_t*>(made.state()->buffer->data());
    const std::vector<std::uint8_t> good(begin, begin + made.bytes());
    design.packed(good.data(), good.size(), K, N);
    std::size_t of_values = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
        std::vector<std::uint8_t> wrong = good;
        wrong[i] |= 0x03;  // the code behind the last one that there is
        const std::string told = message_of<WeightError>([&] { design.packed(wrong.data(), wrong.size(), K, N); });
        if (const bool padding = told.find("expected -1 to 1") == std::string::npos; !padding) ++of_values;
        else check_contains(told, "packed B of K = 40, N = 66 by small: byte " + std::to_string(i) + " is ");
    }
    unit::check(0 < of_values && of_values < good.size(), "both weights and padding were tried");
}

UNIT_CASE("design", weights_that_hold_no_b_are_refused) {
    const Design design = Design::load(unit::emulated_device(), design_path("small"));
    const Resident a(design, "A", {{"M", 20}, {"K", 40}});
    check_contains(message_of<ArgumentError>([&] { Gemm(design, 20, Weights(a)); }), "no B");
}

UNIT_CASE("design", opening_an_npu_without_xrt_or_npu_says_so) {
    check_contains(message_of<DeviceError>([] { Device::open("0"); }), "device 0: ");
}
